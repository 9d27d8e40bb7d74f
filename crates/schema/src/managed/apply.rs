//! Server-side apply: the applied configuration is merged into the object, fields that its manager applied
//! before and no longer does go (unless someone else has them), and the manager owns what it applied.

use serde_json::{Map, Value};

use super::conflict::ApplyError;
use super::entries::{Entry, Managed, Operation};
use super::unchanged::{self, Alike};
use super::update::{TransferError, UNOWNED, put_managed_fields, reconcile, transfer, update_with};
use super::{ManagerCx, last_applied, managed_fields, prune, text};
use crate::fields::FieldSet;
use crate::typed;

/// The manager that owns what was there before an object was first applied.
const BEFORE: &str = "before-first-apply";

/// Applies a configuration to an object (null or empty when it doesn't exist yet) and returns the object with its
/// managedFields. Both are in the version of the request.
///
/// The result is not defaulted: default it, and compare it to the live object, before it is stored. An apply that
/// changes nothing keeps its entry's time; one that only adds an owner makes an entry without a time.
pub fn apply(live: &Value, applied: &Value, cx: &ManagerCx<'_>, force: bool) -> Result<Value, ApplyError> {
    let is_kubectl = cx.manager == last_applied::KUBECTL;
    let alike = unchanged::compare(live, applied, cx);
    if alike == Alike::Wholly && !is_kubectl {
        return Ok(live.clone());
    }
    let decode = || Managed::decode(managed_fields(live), true);
    let managed =
        decode().map_err(|e| ApplyError::Failed(format!("failed to decode managed fields: {e}")))?;
    let field = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("apiVersion") != cx.api_version || field("kind") != cx.kind {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", gvk(applied))));
    }
    let (mut object, managed) = match apply_with(live, applied, managed, cx, force, alike) {
        Err(ApplyError::Conflicts(conflicts)) if is_kubectl => {
            let Some(allowed) = last_applied::proven(live, cx) else {
                return Err(ApplyError::Conflicts(conflicts));
            };
            let left: Vec<_> = conflicts.into_iter().filter(|c| !allowed.has(&c.path.0)).collect();
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            apply_with(live, applied, decode().unwrap_or_default(), cx, true, alike)?
        }
        other => other?,
    };
    if is_kubectl {
        last_applied::refresh(&mut object, applied);
    }
    put_managed_fields(&mut object, managed.encode());
    Ok(object)
}

fn apply_with<'a>(
    live: &'a Value,
    applied: &Value,
    mut managed: Managed<'a>,
    cx: &ManagerCx<'_>,
    force: bool,
    alike: Alike,
) -> Result<(Value, Managed<'a>), ApplyError> {
    if managed.is_empty() {
        managed = update_with(&Value::Null, live, managed, cx, BEFORE)
            .map_err(|e| ApplyError::Failed(format!("failed to create manager for existing fields: {e}")))?;
    }
    if managed_fields(applied).is_some() {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    let set = match alike {
        Alike::Wholly | Alike::InFields => None,
        Alike::Unknown => Some(typed::checked_field_set(applied, cx.schema).map_err(|e| {
            ApplyError::Failed(format!("failed to create typed patch object ({}): {e}", describe(applied)))
        })?),
    };
    let mut managed = reconcile(managed, cx);
    let mut new = without_managed_fields(live);
    typed::checked_merge(&mut new, applied, cx.schema).map_err(|e| {
        ApplyError::Failed(format!("failed to create typed live object ({}): {e}", describe(live)))
    })?;
    let mut entry = Entry::new(cx.manager, Operation::Apply, cx.api_version, cx.subresource, FieldSet::new());
    let id = entry.id();
    let own = match set {
        // The entry is right as it is.
        None => None,
        Some(mut set) => {
            set.subtract_recursive(cx.reset);
            let last = managed.entries.remove(&id);
            entry.time = last.as_ref().and_then(|l| l.time.clone());
            let mut own = set.clone();
            own.subtract(&UNOWNED);
            // While others are asked what they own, the manager owns what names the object, too.
            entry.set_fields(set);
            managed.entries.insert(id.clone(), entry);
            if let Some(last) = last {
                new = prune::prune(new, &managed, &last, &id, cx)
                    .map_err(|e| ApplyError::Failed(format!("failed to prune fields: {e}")))?;
            }
            Some(own)
        }
    };
    let changes = transfer(live, &new, &mut managed, cx, Some(&id), force).map_err(|e| match e {
        TransferError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
        TransferError::Failed(why) => ApplyError::Failed(why),
    })?;
    if own.as_ref().is_some_and(FieldSet::is_empty) {
        managed.entries.remove(&id);
    } else if let Some(entry) = managed.entries.get_mut(&id) {
        if let Some(own) = own {
            entry.set_fields(own);
        }
        if changes.changed {
            entry.time = Some(cx.now.to_owned());
        }
    }
    Ok((new, managed))
}

fn without_managed_fields(object: &Value) -> Value {
    let Value::Object(map) = object else { return Value::Object(Map::new()) };
    let copy = |(key, value): (&String, &Value)| match (key.as_str(), value) {
        ("metadata", Value::Object(metadata)) => {
            let rest = metadata.iter().filter(|(k, _)| *k != "managedFields");
            (key.clone(), Value::Object(rest.map(|(k, v)| (k.clone(), v.clone())).collect()))
        }
        _ => (key.clone(), value.clone()),
    };
    Value::Object(map.iter().map(copy).collect())
}

/// `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value) -> String {
    format!("{}/{}; {}", text(object, "namespace"), text(object, "name"), gvk(object))
}

/// As Go prints a GroupVersionKind.
fn gvk(object: &Value) -> String {
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let api_version = field("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={}", field("kind"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::prune::tests::{configuration, schema};
    use super::super::{OneVersion, update};
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// What is told before merging is what merging would have told.
        #[test]
        fn the_short_ways_are_right(
            start in configuration(), other in configuration(), first in configuration(),
            then in configuration(), same in 0..4u8, value in "[12]"
        ) {
            let schema = schema();
            let none = FieldSet::of(&["spec.free"]);
            let cx = |manager: &'static str| ManagerCx {
                schema: &schema, api_version: "example.com/v1", kind: "Thing", manager, subresource: "",
                now: "2024-01-01T00:00:00Z", reset: &none, versions: &OneVersion,
            };
            let mut live = start;
            update(&Value::Null, &mut live, &cx("updater"));
            let live = apply(&live, &other, &cx("other"), true).unwrap();
            let live = apply(&live, &first, &cx("m"), true).unwrap();
            // Mostly the same again, or the same with another value.
            let mut then = if same > 0 { first } else { then };
            if same == 2 && let Some(a) = then.pointer_mut("/spec/a/b") {
                *a = json!(value);
            }
            let short = apply(&live, &then, &cx("m"), false);
            let managed = Managed::decode(managed_fields(&live), true).unwrap();
            let long = apply_with(&live, &then, managed, &cx("m"), false, Alike::Unknown).map(|(mut object, managed)| {
                put_managed_fields(&mut object, managed.encode());
                object
            });
            prop_assert_eq!(short, long);
        }
    }
}
