//! Who owns the replicas: managed fields of an object seen from its Scale, and back.
//!
//! A manager that owns the object's replicas owns `spec.replicas` of the Scale. What it no longer owns there is
//! taken from it here. As in the reference, an entry that comes from a Scale has no time.

use serde_json::{Map, Value, json};

const SCALE: &str = "autoscaling/v1";

/// Entries of the Scale. `paths` gives the replicas' path of each version (`group/version`) that has a scale.
pub fn to_scale(entries: &Value, paths: &dyn Fn(&str) -> Option<String>) -> Value {
    let owned = |e: &&Value| path_of(e, paths).is_some_and(|p| has(&e["fieldsV1"], &p));
    let entries = entries.as_array().into_iter().flatten().filter(owned);
    entries
        .map(|e| {
            let mut entry = e.clone();
            entry["apiVersion"] = SCALE.into();
            entry["fieldsV1"] = fields(&["spec", "replicas"]);
            entry
        })
        .collect()
}

/// Entries of the object after its Scale was written with `scale_entries`. `known` says which versions exist;
/// `version` is the one that the request was made in. Entries come sorted as the reference sorts them: applied
/// ones first, then by time, then by manager.
pub fn to_parent(
    parent_entries: &Value,
    scale_entries: &Value,
    version: &str,
    known: &dyn Fn(&str) -> bool,
    paths: &dyn Fn(&str) -> Option<String>,
) -> Value {
    let mut scale: Vec<&Value> = scale_entries.as_array().into_iter().flatten().collect();
    let mut out: Vec<Value> = Vec::new();
    for entry in parent_entries.as_array().into_iter().flatten() {
        if !known(entry["apiVersion"].as_str().unwrap_or_default()) {
            continue;
        }
        let Some(path) = path_of(entry, paths).filter(|p| has(&entry["fieldsV1"], p)) else {
            out.push(entry.clone());
            continue;
        };
        if let Some(at) = scale.iter().position(|s| identity(s) == identity(entry)) {
            out.push(entry.clone());
            scale.remove(at);
            continue;
        }
        let mut rest = entry.clone();
        remove(&mut rest["fieldsV1"], &path);
        if rest["fieldsV1"].as_object().is_some_and(|f| !f.is_empty()) {
            out.push(rest);
        }
    }
    let path = paths(version);
    for entry in scale {
        let Some(path) = path.as_deref().filter(|_| has(&entry["fieldsV1"], ".spec.replicas")) else {
            continue;
        };
        let mut entry = entry.clone();
        entry["apiVersion"] = version.into();
        entry["fieldsV1"] = fields(&names(path).collect::<Vec<_>>());
        if let Some(e) = entry.as_object_mut() {
            e.remove("time");
        }
        out.push(entry);
    }
    out.sort_by_cached_key(|e| {
        let get = |k: &str| e[k].as_str().unwrap_or_default().to_owned();
        (get("operation"), get("time"), get("manager"), get("apiVersion"), get("subresource"))
    });
    out.into()
}

fn path_of(entry: &Value, paths: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    paths(entry["apiVersion"].as_str()?)
}

/// What makes an entry the same manager's: for updates the version counts as well.
fn identity(entry: &Value) -> (&Value, &Value, &Value, Option<&Value>) {
    let version = (entry["operation"] != "Apply").then(|| &entry["apiVersion"]);
    (&entry["manager"], &entry["operation"], &entry["subresource"], version)
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// A field set that holds one path only.
fn fields(names: &[&str]) -> Value {
    names.iter().rev().fold(json!({}), |inner, name| json!({ format!("f:{name}"): inner }))
}

/// Whether a field set holds a path itself, not only something below it.
fn has(fields: &Value, path: &str) -> bool {
    let found = names(path).try_fold(fields, |at, name| at.get(format!("f:{name}")));
    found.and_then(Value::as_object).is_some_and(|f| f.is_empty() || f.contains_key("."))
}

fn remove(fields: &mut Value, path: &str) {
    fn step(map: &mut Map<String, Value>, names: &mut dyn Iterator<Item = &str>) {
        let Some(name) = names.next() else {
            map.remove(".");
            return;
        };
        let key = format!("f:{name}");
        let Some(Value::Object(inner)) = map.get_mut(&key) else { return };
        step(inner, names);
        // A field that stands for itself is written `{}`; one without itself or anything below is gone.
        if inner.is_empty() {
            map.remove(&key);
        } else if inner.len() == 1 && inner.contains_key(".") {
            inner.clear();
        }
    }
    if let Value::Object(map) = fields {
        step(map, &mut names(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(version: &str) -> Option<String> {
        version.starts_with("example.com/").then(|| ".spec.replicas".to_owned())
    }

    fn known(version: &str) -> bool {
        version.starts_with("example.com/")
    }

    fn entry(manager: &str, operation: &str, version: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": version, "fieldsType": "FieldsV1",
            "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    #[test]
    fn the_owner_of_replicas_owns_them_in_the_scale() {
        let parent = json!([
            entry("a", "Update", "example.com/v1", json!({"f:spec": {".": {}, "f:replicas": {}}})),
            entry("b", "Apply", "example.com/v1", json!({"f:spec": {"f:image": {}}})),
        ]);
        let want = json!([entry("a", "Update", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}))]);
        assert_eq!(to_scale(&parent, &paths), want);
    }

    #[test]
    fn a_write_through_the_scale_takes_the_replicas_over() {
        let parent = json!([
            entry("b", "Update", "example.com/v1", json!({"f:spec": {".": {}, "f:replicas": {}}})),
            entry("c", "Update", "example.com/v2", json!({"f:spec": {"f:replicas": {}}})),
        ]);
        let mut scaled = entry("hpa", "Update", "autoscaling/v1", json!({"f:spec": {"f:replicas": {}}}));
        scaled["subresource"] = "scale".into();
        let mut taken = entry("hpa", "Update", "example.com/v1", json!({"f:spec": {"f:replicas": {}}}));
        taken["subresource"] = "scale".into();
        taken.as_object_mut().map(|e| e.remove("time"));
        let want = json!([taken, entry("b", "Update", "example.com/v1", json!({"f:spec": {}}))]);
        assert_eq!(to_parent(&parent, &json!([scaled]), "example.com/v1", &known, &paths), want);
    }

    #[test]
    fn an_applier_keeps_what_it_has() {
        let parent = json!([entry("a", "Apply", "example.com/v1", json!({"f:spec": {"f:replicas": {}}}))]);
        let scale = to_scale(&parent, &paths);
        assert_eq!(to_parent(&parent, &scale, "example.com/v1", &known, &paths), parent);
    }
}
