//! Built-in types against what the reference answered: each line of `builtin/recorded.jsonl` is one write.
//!
//! `new` is the object as the client meant it (patches already applied), `old` what was there; `object` is what came
//! back, `causes` what was wrong. Server-set metadata is left out, times and addresses are renamed as the recorder
//! renames them (`<time>`, `<ip>`), and long texts are cut with `…`.

use homeostat_model::{Entropy, GroupVersion};
use homeostat_resources::{Cx, Resource, builtin};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Deserialize)]
struct Case {
    scenario: String,
    step: usize,
    resource: String,
    version: String,
    #[serde(default)]
    subresource: String,
    old: Option<Value>,
    new: Value,
    object: Option<Value>,
    causes: Option<Vec<(Option<String>, Option<String>)>>,
    /// Paths that the recorder was told to leave out.
    #[serde(default)]
    ignore: Vec<String>,
}

/// What the recorder couldn't know or admission plugins added; not the strategies' business.
fn tidy(value: &mut Value) {
    if value["kind"] == "Pod"
        && let Some(spec) = value["spec"].as_object_mut()
    {
        for key in ["tolerations", "priority", "preemptionPolicy"] {
            spec.remove(key);
        }
    }
    value["metadata"].as_object_mut().unwrap().remove("selfLink");
    if let Some(list) = value["metadata"].get_mut("finalizers").and_then(Value::as_array_mut) {
        list.retain(|f| !f.as_str().is_some_and(|f| f.ends_with("-protection")));
        if list.is_empty() {
            value["metadata"].as_object_mut().unwrap().remove("finalizers");
        }
    }
    if value["kind"] == "Node"
        && let Some(spec) = value["spec"].as_object_mut()
        && spec.get("taints").is_some_and(|t| t.to_string().contains("not-ready"))
    {
        spec.remove("taints");
    }
    if value["kind"] == "CertificateSigningRequest"
        && let Some(spec) = value["spec"].as_object_mut()
    {
        // Who asks is known to the API server alone.
        for key in ["uid", "extra", "username"] {
            spec.remove(key);
        }
    }
    if value["kind"] == "Service"
        && let Some(spec) = value["spec"].as_object_mut()
    {
        for key in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(key);
        }
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().unwrap().remove("nodePort");
        }
    }
}

/// The same, where `want` may say `<time>` and the like for any text, and long texts end in `…`.
fn same(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (_, Value::String(w)) if w.starts_with('<') && w.ends_with('>') => !got.is_null(),
        (_, Value::String(w)) if w.starts_with("uid") && got.is_string() => true,
        (Value::String(g), Value::String(w)) => {
            g == w || w.strip_suffix(" …").is_some_and(|w| g.starts_with(w))
        }
        (Value::Object(g), Value::Object(w)) => {
            g.len() == w.len() && w.iter().all(|(k, w)| g.get(k).is_some_and(|g| same(g, w)))
        }
        (Value::Array(g), Value::Array(w)) => g.len() == w.len() && g.iter().zip(w).all(|(g, w)| same(g, w)),
        _ => got == want,
    }
}

/// Where two values differ.
fn differences(got: &Value, want: &Value, path: &str, found: &mut Vec<String>) {
    match (got, want) {
        _ if same(got, want) => {}
        (Value::Object(g), Value::Object(w)) => {
            let keys: std::collections::BTreeSet<_> = g.keys().chain(w.keys()).collect();
            for key in keys {
                let path = format!("{path}.{key}");
                match (g.get(key), w.get(key)) {
                    (Some(g), Some(w)) => differences(g, w, &path, found),
                    (g, w) => found.push(format!("{path}: got {g:?}, want {w:?}")),
                }
            }
        }
        (Value::Array(g), Value::Array(w)) if g.len() == w.len() => {
            for (i, (g, w)) in g.iter().zip(w).enumerate() {
                differences(g, w, &format!("{path}[{i}]"), found);
            }
        }
        _ => found.push(format!("{path}: got {got}, want {want}")),
    }
}

fn check(resources: &[Arc<Resource>], case: &Case) -> Result<(), String> {
    let entropy = Entropy::seeded(1);
    let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    let cx = Cx {
        now: "2026-01-02T03:04:05Z".parse().unwrap(),
        entropy: &entropy,
        user: "admin",
        groups: &groups,
        subresource: &case.subresource,
    };
    let resource = resources.iter().find(|r| r.id.to_string() == case.resource).ok_or("no such resource")?;
    let gv = GroupVersion::new(resource.id.group.clone(), &*case.version);
    let s = &resource.strategy;
    let (mut new, mut old) = (case.new.clone(), case.old.clone());
    // Tolerations that an admission plugin adds to every pod, before rules see it.
    for pod in [Some(&mut new), old.as_mut()].into_iter().flatten() {
        if pod["kind"] == "Pod"
            && let Some(list) = pod["spec"]["tolerations"].as_array_mut()
        {
            list.retain(|t| !t["key"].as_str().is_some_and(|k| k.starts_with("node.kubernetes.io/")));
        }
    }
    s.default(&gv, &mut new);
    let mut again = new.clone();
    s.default(&gv, &mut again);
    if again != new {
        return Err(format!("defaulting twice differs\n{new}\n{again}"));
    }
    let errors = match &old {
        None => {
            let uid = case.object.as_ref().map_or(Value::Null, |o| o["metadata"]["uid"].clone());
            new["metadata"]["uid"] = if uid.is_null() { "uid4".into() } else { uid };
            s.prepare_create(&cx, &mut new);
            let name = new["metadata"]["name"].as_str().unwrap_or_default();
            let mut errors: Vec<_> = s
                .validate_name(name, false)
                .into_iter()
                .map(|w| homeostat_model::field::Error::invalid("metadata.name", name, w))
                .collect();
            if name.is_empty() {
                errors.clear();
            }
            errors.extend(s.validate(&cx, &new));
            errors
        }
        Some(old) if case.subresource.is_empty() => {
            s.prepare_update(&cx, &mut new, old);
            s.validate_update(&cx, &new, old)
        }
        Some(old) => {
            s.prepare_status(&cx, &mut new, old);
            s.validate_status(&cx, &new, old)
        }
    };
    match (&case.object, &case.causes) {
        (Some(want), _) => {
            if !errors.is_empty() {
                let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
                return Err(format!("refused: {}", all.join("; ")));
            }
            let mut want = want.clone();
            for side in [&mut new, &mut want] {
                tidy(side);
                let uid = side["metadata"].as_object_mut().unwrap();
                uid.remove("uid");
            }
            if case.old.is_none() && new["metadata"]["name"].is_null() {
                new["metadata"]["name"] = want["metadata"]["name"].clone();
            }
            for path in &case.ignore {
                let pointer = format!("/{}", path.replace('.', "/"));
                for side in [&mut new, &mut want] {
                    if let Some((parent, key)) = pointer.rsplit_once('/')
                        && let Some(parent) = side.pointer_mut(parent).and_then(Value::as_object_mut)
                    {
                        parent.remove(key);
                    }
                }
            }
            let mut found = Vec::new();
            differences(&new, &want, "", &mut found);
            if !found.is_empty() {
                return Err(found.join("; "));
            }
        }
        (None, Some(want)) => {
            let mut got: Vec<(String, String)> = errors.iter().map(|e| (e.path.clone(), e.body())).collect();
            let missing: Vec<_> = want
                .iter()
                .filter(|(field, text)| {
                    let field = field.clone().unwrap_or_default();
                    let at = got.iter().position(|(f, t)| {
                        *f == field
                            && text.as_ref().is_none_or(|w| same(&t.as_str().into(), &w.as_str().into()))
                    });
                    at.map(|at| got.remove(at)).is_none()
                })
                .collect();
            // Rules of metadata are the API server's.
            let missing: Vec<_> = missing
                .into_iter()
                .filter(|(f, _)| {
                    !f.as_deref().is_some_and(|f| {
                        f.starts_with("metadata.") && !f.starts_with("metadata.name") && !f.contains("taints")
                    })
                })
                .collect();
            if !missing.is_empty() || !got.is_empty() {
                return Err(format!("\n  missing {missing:?}\n  surplus {got:?}"));
            }
        }
        (None, None) => return Err("the case says nothing".into()),
    }
    Ok(())
}

#[test]
fn writes_are_answered_as_the_reference_answered_them() {
    let resources = builtin::resources();
    let mut failures = Vec::new();
    let mut count = 0;
    for line in include_str!("builtin/recorded.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        count += 1;
        if let Err(why) = check(&resources, &case) {
            let verb = if case.old.is_none() { "create" } else { "update" };
            failures.push(format!("{} step {} ({verb} {}): {why}", case.scenario, case.step, case.resource));
        }
    }
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
}

/// Every place of a value, as JSON pointers.
fn places(value: &Value, at: String, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.replace('~', "~0").replace('/', "~1"), v)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        let at = format!("{at}/{key}");
        found.push(at.clone());
        places(value, at, found);
    }
}

#[test]
fn no_object_makes_a_strategy_panic() {
    let resources = builtin::resources();
    let entropy = Entropy::seeded(7);
    let junk = [
        json!(null),
        json!("x y"),
        json!(-1),
        json!([]),
        json!({}),
        json!([null, 1, {"name": 2}]),
        json!(true),
    ];
    for line in include_str!("builtin/recorded.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let resource = resources.iter().find(|r| r.id.to_string() == case.resource).unwrap();
        let gv = GroupVersion::new(resource.id.group.clone(), &*case.version);
        let mut all = Vec::new();
        places(&case.new, String::new(), &mut all);
        for _ in 0..8 {
            let pick = |n: usize| usize::try_from(entropy.below(n as u64)).unwrap();
            let mut object = case.new.clone();
            *object.pointer_mut(&all[pick(all.len())]).unwrap() = junk[pick(junk.len())].clone();
            let s = &resource.strategy;
            s.default(&gv, &mut object);
            for subresource in ["", "status", "approval", "finalize", "resize", "ephemeralcontainers"] {
                let now = "2026-01-02T03:04:05Z".parse().unwrap();
                let cx = Cx { now, entropy: &entropy, user: "u", groups: &[], subresource };
                let (mut created, mut updated, mut status) = (object.clone(), object.clone(), object.clone());
                s.prepare_create(&cx, &mut created);
                s.validate(&cx, &created);
                s.prepare_update(&cx, &mut updated, &case.new);
                s.validate_update(&cx, &updated, &case.new);
                s.prepare_status(&cx, &mut status, &case.new);
                s.validate_status(&cx, &status, &case.new);
                s.warnings(&cx, &created, Some(&case.new));
            }
            let now = "2026-01-02T03:04:05Z".parse().unwrap();
            s.row(&object, now);
            s.selectable(&object);
            s.spec_changed(&object, &case.new);
            s.grace_period(&object, None);
            for version in &resource.versions {
                s.convert(&mut object.clone(), &version.gv);
            }
        }
    }
}
