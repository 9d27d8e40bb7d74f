//! Server-side apply: the applied configuration is merged into the object, fields that its manager applied
//! before and no longer does go (unless someone else has them), and the manager owns what it applied.

use serde_json::{Map, Value};

use super::conflict::ApplyError;
use super::entries::{Entry, Managed, Operation};
use super::update::{TransferError, UNOWNED, put_managed_fields, reconcile, transfer, update_with};
use super::{ManagerCx, last_applied, managed_fields, prune, text, unchanged};
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
    if !is_kubectl && unchanged::changes_nothing(live, applied, cx) {
        return Ok(live.clone());
    }
    let decode = || Managed::decode(managed_fields(live), true);
    let managed =
        decode().map_err(|e| ApplyError::Failed(format!("failed to decode managed fields: {e}")))?;
    let field = |name: &str| applied.get(name).and_then(Value::as_str).unwrap_or_default();
    if field("apiVersion") != cx.api_version || field("kind") != cx.kind {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", gvk(applied))));
    }
    let (mut object, managed) = match apply_with(live, applied, managed, cx, force) {
        Err(ApplyError::Conflicts(conflicts)) if is_kubectl => {
            let Some(allowed) = last_applied::proven(live, cx) else {
                return Err(ApplyError::Conflicts(conflicts));
            };
            let left: Vec<_> = conflicts.into_iter().filter(|c| !allowed.has(&c.path.0)).collect();
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            apply_with(live, applied, decode().unwrap_or_default(), cx, true)?
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
) -> Result<(Value, Managed<'a>), ApplyError> {
    if managed.is_empty() {
        managed = update_with(&Value::Null, live, managed, cx, BEFORE)
            .map_err(|e| ApplyError::Failed(format!("failed to create manager for existing fields: {e}")))?;
    }
    if managed_fields(applied).is_some() {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    let set = typed::checked_field_set(applied, cx.schema).map_err(|e| {
        ApplyError::Failed(format!("failed to create typed patch object ({}): {e}", describe(applied)))
    })?;
    let mut managed = reconcile(managed, cx);
    let mut new = without_managed_fields(live);
    typed::checked_merge(&mut new, applied, cx.schema).map_err(|e| {
        ApplyError::Failed(format!("failed to create typed live object ({}): {e}", describe(live)))
    })?;

    let mut set = set;
    set.subtract_recursive(cx.reset);
    let mut entry = Entry::new(cx.manager, Operation::Apply, cx.api_version, cx.subresource, set);
    let id = entry.id();
    let last = managed.entries.remove(&id);
    let mut own = entry.fields().clone();
    own.subtract(&UNOWNED);
    // The entry as it will be; most applies own what the last one did.
    let json = own.to_value();
    let as_before = last.as_ref().is_some_and(|last| last.is_written(cx.api_version, &json));
    entry.time = last.as_ref().and_then(|l| l.time.clone());
    managed.entries.insert(id.clone(), entry);
    if let Some(last) = last
        && !as_before
    {
        new = prune::prune(new, &managed, &last, &id, cx)
            .map_err(|e| ApplyError::Failed(format!("failed to prune fields: {e}")))?;
    }
    let changes = transfer(live, &new, &mut managed, cx, Some(&id), force).map_err(|e| match e {
        TransferError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
        TransferError::Failed(why) => ApplyError::Failed(why),
    })?;
    if own.is_empty() {
        managed.entries.remove(&id);
    } else if let Some(entry) = managed.entries.get_mut(&id) {
        entry.set_written(own, json);
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
