//! What goes when a manager applies less than before: fields that it applied last time and not now, and that
//! nobody else owns.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ManagerCx;
use super::entries::{Entry, Managed};
use crate::fields::FieldSet;
use crate::schema::Schema;
use crate::typed::{self, Owner};

/// Removes from `merged` what the applying manager (whose entry is `id` now and was `last`) gave up.
pub(super) fn prune(
    merged: Value,
    managed: &Managed<'_>,
    last: &Entry<'_>,
    id: &str,
    cx: &ManagerCx<'_>,
) -> Result<Value, String> {
    let one_version = managed.entries.values().all(|e| e.api_version == cx.api_version);
    if one_version && last.api_version == cx.api_version {
        return Ok(prune_in_one_version(merged, managed, last, id, cx.schema));
    }
    prune_across_versions(merged, managed, last, cx)
}

/// Where all managers use one version, what goes are the fields that were given up and the named fields around
/// them, as far as nobody owns them.
fn prune_in_one_version(
    merged: Value,
    managed: &Managed<'_>,
    last: &Entry<'_>,
    id: &str,
    schema: &Schema,
) -> Value {
    let given_up = match managed.entries.get(id) {
        Some(now) => last.fields().difference(now.fields()),
        None => last.fields().clone(),
    };
    let owners: Vec<Owner<'_>> = managed
        .entries
        .values()
        .map(|e| e.unread().map_or_else(|| Owner::Set(e.fields()), Owner::Json))
        .collect();
    let gone = typed::unowned(&given_up, &owners, schema);
    if gone.is_empty() { merged } else { typed::remove(merged, &gone, schema) }
}

/// The general case, which is the reference's algorithm: all that was applied goes, then comes back what anyone
/// owns, and what the manager never owned.
fn prune_across_versions(
    merged: Value,
    managed: &Managed<'_>,
    last: &Entry<'_>,
    cx: &ManagerCx<'_>,
) -> Result<Value, String> {
    if last.fields().is_empty() {
        return Ok(merged);
    }
    let Some(last_schema) = schema(&last.api_version, cx) else { return Ok(merged) };
    let at_last = convert(&merged, &last.api_version, cx)?;
    let last_fields = typed::with_named_parents(last.fields(), &last_schema);
    let pruned = typed::remove(at_last.clone(), &last_fields, &last_schema);

    // Back comes what anyone owns, the applied configuration included; first in the version of the last apply,
    // so that conversions have the fields that they need.
    let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for entry in managed.entries.values() {
        let set = owned.entry(&entry.api_version).or_default();
        *set = set.union(entry.fields());
    }
    let mut merged_now = at_last.clone();
    let mut pruned_now = pruned;
    let mut version_now = last.api_version.as_str();
    let first = owned.remove_entry(last.api_version.as_str());
    for (version, set) in first.into_iter().chain(owned) {
        let Some(schema) = schema(version, cx) else { continue };
        if version != version_now {
            merged_now = convert(&merged_now, version, cx)?;
            pruned_now = convert(&pruned_now, version, cx)?;
            version_now = version;
        }
        let names = |set: &FieldSet| typed::with_named_parents(set, &schema);
        let kept = names(&typed::with_empty_lists(&pruned_now, &schema)).union(&names(&set));
        let gone = names(&typed::field_set(&merged_now, &schema)).difference(&kept);
        pruned_now = typed::remove(merged_now.clone(), &gone, &schema);
    }

    // And what the manager didn't own: only what it had applied may go.
    if version_now != last.api_version {
        pruned_now = convert(&pruned_now, &last.api_version, cx)?;
    }
    let names = |set: &FieldSet| typed::with_named_parents(set, &last_schema);
    let kept = names(&typed::with_empty_lists(&pruned_now, &last_schema));
    let all = names(&typed::field_set(&at_last, &last_schema));
    let gone = all.difference(&kept).intersection(&last_fields);
    let out = typed::remove(at_last, &gone, &last_schema);
    convert(&out, cx.api_version, cx)
}

fn schema(version: &str, cx: &ManagerCx<'_>) -> Option<Schema> {
    if version == cx.api_version { Some(cx.schema.clone()) } else { cx.versions.schema(version) }
}

/// The object in a version; as it is, if that is its version.
fn convert(object: &Value, version: &str, cx: &ManagerCx<'_>) -> Result<Value, String> {
    if object.get("apiVersion").and_then(Value::as_str) == Some(version) {
        return Ok(object.clone());
    }
    cx.versions
        .convert(object, version)
        .map_err(|e| format!("failed to convert object at version {version}: {e}"))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::entries::Operation;
    use super::super::{OneVersion, apply, managed_fields, update};
    use super::*;

    pub(in super::super) fn schema() -> Schema {
        Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}, "c": {"type": "string"}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}},
            "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "x": {"type": "string"},
                    "inner": {"type": "object", "properties": {"y": {"type": "string"}}}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
        }}}}))
        .unwrap()
    }

    /// Parts of one object: no two configurations disagree, so that only what is given up matters.
    pub(in super::super) fn configuration() -> impl Strategy<Value = Value> {
        prop::collection::vec(any::<bool>(), 16).prop_map(|has| {
            let mut spec = json!({});
            let mut put = |i: usize, pointer: &[&str], value: Value| {
                if has[i] {
                    let mut at = &mut spec;
                    for part in pointer {
                        at = &mut at[*part];
                    }
                    *at = value;
                }
            };
            put(0, &["a", "b"], json!("1"));
            put(1, &["a", "c"], json!("1"));
            put(2, &["labels", "x"], json!("1"));
            put(3, &["labels", "y"], json!("1"));
            put(4, &["list"], json!(["1"]));
            put(5, &["free", "m", "n"], json!(1));
            put(6, &["free", "m", "o"], json!([1]));
            let set: Vec<&str> =
                ["p", "q"].into_iter().zip(&has[7..]).filter(|(_, h)| **h).map(|(s, _)| s).collect();
            if has[9] || !set.is_empty() {
                spec["set"] = json!(set);
            }
            let mut items = Vec::new();
            for (name, at) in [("i", 10), ("j", 13)] {
                if has[at] {
                    let mut item = json!({"name": name});
                    if has[at + 1] {
                        item["x"] = json!("1");
                    }
                    if has[at + 2] {
                        item["inner"] = json!({"y": "1"});
                    }
                    items.push(item);
                }
            }
            if !items.is_empty() {
                spec["items"] = json!(items);
            }
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// The short way removes what the reference's algorithm removes.
        #[test]
        fn both_ways_are_one(
            start in configuration(), other in configuration(), first in configuration(), then in configuration()
        ) {
            let schema = schema();
            let none = FieldSet::new();
            let cx = |manager: &'static str| ManagerCx {
                schema: &schema, api_version: "example.com/v1", kind: "Thing", manager, subresource: "",
                now: "2024-01-01T00:00:00Z", reset: &none, versions: &OneVersion,
            };
            let mut live = start;
            update(&Value::Null, &mut live, &cx("updater"));
            let live = apply(&live, &other, &cx("other"), true).unwrap();
            let live = apply(&live, &first, &cx("m"), true).unwrap();

            let mut managed = Managed::decode(managed_fields(&live), true).unwrap();
            let set = typed::field_set(&then, &schema);
            let now = Entry::new("m", Operation::Apply, "example.com/v1", "", set);
            let id = now.id();
            let last = managed.entries.remove(&id);
            managed.entries.insert(id.clone(), now);
            if let Some(last) = last {
                let mut merged = live.clone();
                typed::merge(&mut merged, &then, &schema);
                let short = prune_in_one_version(merged.clone(), &managed, &last, &id, &schema);
                let long = prune_across_versions(merged, &managed, &last, &cx("m")).unwrap();
                prop_assert_eq!(short, long);
            }
        }
    }
}
