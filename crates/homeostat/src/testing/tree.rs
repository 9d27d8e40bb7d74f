//! The objects of a namespace as a tree of owners, in a text that reads well in a diff.
//!
//! Each object is a line: its kind, its name, and what its status says in a word. Nothing is in it that differs from
//! run to run: no times, versions, uids.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::snapshot::{Objects, Place};

/// What every namespace has, which says nothing about a test.
const USUAL: &[(&str, &str)] = &[("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];
/// Kinds that say nothing about it either.
const NOISE: &[&str] = &["Event.events.k8s.io", "Lease.coordination.k8s.io", "Endpoints"];

/// The tree as text, each line ended.
pub(super) fn text(objects: &Objects) -> String {
    let shown = |(kind, _, name): &Place| {
        !NOISE.contains(&kind.as_str()) && !USUAL.contains(&(kind.as_str(), name.as_str()))
    };
    let objects: Vec<(&Place, &Value)> = objects.iter().filter(|(place, _)| shown(place)).collect();
    let uid_of = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let here: BTreeMap<String, usize> =
        objects.iter().enumerate().map(|(i, (_, object))| (uid_of(object), i)).collect();
    let mut roots = Vec::new();
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (i, (_, object)) in objects.iter().enumerate() {
        match owner(object).and_then(|uid| here.get(uid)) {
            Some(owner) if *owner != i => children.entry(*owner).or_default().push(i),
            _ => roots.push(i),
        }
    }
    let mut out = String::new();
    for root in roots {
        line(&mut out, "", "", objects[root]);
        below(&mut out, "", root, &objects, &children, 0);
    }
    out
}

/// Deeper than any owners go.
const DEEPEST: usize = 16;

fn below(
    out: &mut String,
    indent: &str,
    of: usize,
    objects: &[(&Place, &Value)],
    children: &BTreeMap<usize, Vec<usize>>,
    depth: usize,
) {
    let Some(list) = children.get(&of).filter(|_| depth < DEEPEST) else { return };
    for (n, child) in list.iter().enumerate() {
        let is_last = n + 1 == list.len();
        let (branch, rest) = if is_last { ("└── ", "    ") } else { ("├── ", "│   ") };
        line(out, indent, branch, objects[*child]);
        below(out, &format!("{indent}{rest}"), *child, objects, children, depth + 1);
    }
}

/// The uid of the controlling owner, or of the first where none controls.
fn owner(object: &Value) -> Option<&str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|o| o["controller"] == true).or_else(|| owners.first())?;
    owner["uid"].as_str()
}

fn line(out: &mut String, indent: &str, branch: &str, (place, object): (&Place, &Value)) {
    let (kind, _, name) = place;
    let facts = facts(object);
    let sep = if facts.is_empty() { "" } else { "  " };
    let _ = writeln!(out, "{indent}{branch}{kind}/{name}{sep}{}", facts.join(", "));
}

/// What an object's status says in words.
fn facts(object: &Value) -> Vec<String> {
    let mut facts = Vec::new();
    let status = &object["status"];
    let number = |value: &Value| value.as_i64();
    let (has, ready) = (number(&status["replicas"]), number(&status["readyReplicas"]));
    if has.or(ready).is_some()
        && let Some(wanted) = number(&object["spec"]["replicas"]).or(has)
    {
        facts.push(format!("ready {}/{wanted}", ready.unwrap_or(0)));
    }
    if let Some(phase) = status["phase"].as_str() {
        facts.push(phase.to_owned());
    }
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        match text("status") {
            "True" => facts.push(text("type").to_owned()),
            other => {
                let no = if other == "False" { "not " } else { "unknown " };
                let reason = text("reason");
                let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
                facts.push(format!("{no}{}{why}", text("type")));
            }
        }
    }
    for field in ["data", "stringData", "binaryData"] {
        if let Some(keys) = object[field].as_object().filter(|m| !m.is_empty()) {
            facts.push(format!("{field}: {}", keys.keys().cloned().collect::<Vec<_>>().join(" ")));
        }
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        facts.push("being deleted".to_owned());
    }
    facts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn owners_come_before_what_they_own() {
        let mut objects = Objects::new();
        let mut put = |kind: &str, name: &str, owner: &str, rest: Value| {
            let mut object = rest;
            object["metadata"] = json!({"uid": format!("{kind}/{name}")});
            if !owner.is_empty() {
                object["metadata"]["ownerReferences"] = json!([{"uid": owner, "controller": true}]);
            }
            objects.insert((kind.into(), Some("n".into()), name.into()), object);
        };
        put("ServiceAccount", "default", "", json!({}));
        put("Redis.example.com", "a", "", json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 1}}));
        put(
            "StatefulSet.apps",
            "a",
            "Redis.example.com/a",
            json!({"spec": {"replicas": 2}, "status": {"replicas": 2}}),
        );
        put("Service", "a", "Redis.example.com/a", json!({}));
        put("ConfigMap", "a", "gone", json!({"data": {"x": "1", "y": "2"}}));
        let conditions = json!([{"type": "Ready", "status": "False", "reason": "Starting"}, {"type": "Bound", "status": "True"}]);
        put(
            "Pod",
            "a-0",
            "StatefulSet.apps/a",
            json!({"status": {"phase": "Running", "conditions": conditions}}),
        );
        put("Pod", "a-1", "StatefulSet.apps/a", json!({"status": {"phase": "Pending"}}));
        let expect = "\
ConfigMap/a  data: x y
Redis.example.com/a  ready 1/2
├── Service/a
└── StatefulSet.apps/a  ready 0/2
    ├── Pod/a-0  Running, not Ready (Starting), Bound
    └── Pod/a-1  Pending
";
        assert_eq!(text(&objects), expect);
    }
}
