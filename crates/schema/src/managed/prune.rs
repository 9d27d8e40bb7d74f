//! What goes when a manager applies less than before: fields that it applied last time and not now, and that
//! nobody else owns.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ManagerCx;
use super::entries::{Entry, Managed};
use crate::fields::FieldSet;
use crate::schema::Schema;
use crate::typed;

/// Removes from `merged` what the applying manager (whose entry is `id` now and was `last`) gave up.
pub(super) fn prune(
    merged: Value,
    managed: &Managed<'_>,
    last: &Entry<'_>,
    id: &str,
    cx: &ManagerCx<'_>,
) -> Result<Value, String> {
    if last.fields().is_empty() {
        return Ok(merged);
    }
    // Nothing was given up: what was applied names all parents of what it owns, so nothing of it could go.
    if let Some(now) = managed.entries.get(id)
        && last.api_version == now.api_version
        && last.fields().is_subset(now.fields())
    {
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
        let kept = names(&typed::field_set(&pruned_now, &schema)).union(&names(&set));
        let gone = names(&typed::field_set(&merged_now, &schema)).difference(&kept);
        pruned_now = typed::remove(merged_now.clone(), &gone, &schema);
    }

    // And what the manager didn't own: only what it had applied may go.
    if version_now != last.api_version {
        pruned_now = convert(&pruned_now, &last.api_version, cx)?;
    }
    let names = |set: &FieldSet| typed::with_named_parents(set, &last_schema);
    let kept = names(&typed::field_set(&pruned_now, &last_schema));
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
