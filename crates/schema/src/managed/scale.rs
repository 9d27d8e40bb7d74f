//! Ownership through the scale subresource: a Scale shows the managers of the object's replicas, and what happens
//! to them there is carried back into the object.
//!
//! A Scale is `autoscaling/v1` and has its replicas at `.spec.replicas`; the object's are wherever its definition
//! says. Read the object's entries with [`to_scale`], update or apply the Scale, and bring the result home with
//! [`to_object`].

use std::collections::BTreeMap;

use serde_json::Value;

use super::entries::{Entry, Managed};
use crate::fields::{FieldSet, PathElement};

const SCALE: &str = "autoscaling/v1";

/// For each version of the resource, the path of its replicas; `None` where a version has no scale.
pub type Paths = BTreeMap<String, Option<Vec<PathElement>>>;

/// The path of fields that `.spec.replicas` of a definition means.
pub fn path(dotted: &str) -> Vec<PathElement> {
    dotted.split('.').filter(|part| !part.is_empty()).map(PathElement::field).collect()
}

/// managedFields of the Scale of an object with these managedFields.
pub fn to_scale(object: Option<&Value>, paths: &Paths) -> Result<Option<Value>, String> {
    let mut out = Managed::default();
    for entry in Managed::decode(object, true)?.entries.into_values() {
        let Some(Some(path)) = paths.get(&entry.api_version) else { continue };
        if entry.fields().has(path) {
            let mut own = Entry::new(
                &entry.manager,
                entry.operation,
                SCALE,
                &entry.subresource,
                FieldSet::of(&["spec.replicas"]),
            );
            own.time = entry.time;
            out.insert(own);
        }
    }
    Ok(out.encode())
}

/// managedFields of the object after its Scale (with managedFields `scale` now) was written in a request of
/// `api_version` of the object.
pub fn to_object(
    object: Option<&Value>,
    scale: Option<&Value>,
    paths: &Paths,
    api_version: &str,
) -> Result<Option<Value>, String> {
    let replicas = [PathElement::field("spec"), PathElement::field("replicas")];
    let mut scale = Managed::decode(scale, true)?;
    let mut out = Managed::default();
    for (_, mut entry) in Managed::decode(object, true)?.entries {
        let Some(path) = paths.get(&entry.api_version) else { continue };
        if let Some(path) = path.as_ref().filter(|p| entry.fields().has(p)) {
            let in_scale =
                Entry::new(&entry.manager, entry.operation, SCALE, &entry.subresource, FieldSet::new());
            if scale.entries.remove(&in_scale.id()).is_none() {
                // Taken from it through the Scale.
                let mut gone = FieldSet::new();
                gone.insert(path);
                let left = entry.fields().difference(&gone);
                if left.is_empty() {
                    continue;
                }
                entry.set_fields(left);
            }
        }
        out.insert(entry);
    }
    for entry in scale.entries.into_values() {
        let Some(Some(path)) = paths.get(api_version) else { continue };
        if !entry.fields().has(&replicas) {
            continue;
        }
        let mut fields = FieldSet::new();
        fields.insert(path);
        // The reference gives an owner that is new to the object no time.
        let mut own = Entry::new(&entry.manager, entry.operation, api_version, &entry.subresource, fields);
        if let Some(previous) = out.entries.get(&own.id()) {
            own.set_fields(own.fields().union(previous.fields()));
            own.time.clone_from(&previous.time);
        }
        out.insert(own);
    }
    Ok(out.encode())
}
