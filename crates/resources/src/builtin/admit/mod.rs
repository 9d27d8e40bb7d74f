//! The pure parts of the reference's built-in admission plugins: what they add to objects, and what they refuse.
//!
//! Each is a function of the object and of the objects it is measured against (limit ranges, quotas, classes), which
//! the API server reads and hands in. It does no I/O and keeps no state. Texts are the reference's; the API server
//! wraps them as 403 `… is forbidden: TEXT`.

pub mod disruption;
pub mod limits;
pub mod pods;
pub mod quota;

use serde_json::{Value, json};

use super::value::object;

/// StorageObjectInUseProtection: claims and volumes leave only when nobody uses them. For creates.
pub fn protect_storage(kind: &str, new: &mut Value) {
    let finalizer = match kind {
        "PersistentVolumeClaim" => "kubernetes.io/pvc-protection",
        "PersistentVolume" => "kubernetes.io/pv-protection",
        "VolumeAttributesClass" => "kubernetes.io/vac-protection",
        _ => return,
    };
    let list = object(new, "metadata").entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.iter().any(|f| f == finalizer)
    {
        list.push(finalizer.into());
    }
}

/// TaintNodesByCondition: a new node takes no pods until the node lifecycle controller has seen it ready. For
/// creates; only for servers that run that controller.
pub fn taint_new_node(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let list = object(node, "spec").entry("taints").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.contains(&taint)
    {
        list.push(taint);
    }
}

/// DefaultStorageClass: the class that a claim without one gets: the newest of those marked as default, of several
/// the first by name.
pub fn default_storage_class<'a>(classes: impl IntoIterator<Item = &'a Value>) -> Option<&'a str> {
    let mark = "storageclass.kubernetes.io/is-default-class";
    let marked =
        classes.into_iter().filter(|c| c["metadata"]["annotations"].get(mark).is_some_and(|v| v == "true"));
    let name = |c: &'a Value| c["metadata"]["name"].as_str().unwrap_or_default();
    let newest = marked.max_by(|a, b| {
        let time = |c: &'a Value| c["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        time(a).cmp(time(b)).then_with(|| name(b).cmp(name(a)))
    });
    newest.map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_protected_once() {
        let mut claim = json!({"metadata": {"name": "c"}});
        protect_storage("PersistentVolumeClaim", &mut claim);
        protect_storage("PersistentVolumeClaim", &mut claim);
        assert_eq!(claim["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    }

    #[test]
    fn the_newest_default_class_wins() {
        let class = |name: &str, time: &str, default: &str| {
            json!({"metadata": {
                "name": name, "creationTimestamp": time,
                "annotations": {"storageclass.kubernetes.io/is-default-class": default},
            }})
        };
        let old = class("old", "2026-01-01T00:00:00Z", "true");
        let (a, b) = (class("a", "2026-01-02T00:00:00Z", "true"), class("b", "2026-01-02T00:00:00Z", "true"));
        let off = class("off", "2026-01-03T00:00:00Z", "false");
        assert_eq!(default_storage_class([&old, &b, &a, &off]), Some("a"));
        assert_eq!(default_storage_class([&off]), None);
    }
}
