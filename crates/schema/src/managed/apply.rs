//! Server-side apply: the applied configuration is merged into the object, fields that its manager applied
//! before and no longer does go (unless someone else has them), and the manager owns what it applied.

use serde_json::{Map, Value};

use super::conflict::ApplyError;
use super::entries::{Entry, Managed, Operation};
use super::update::{
    TransferError, ownable, put_managed_fields, reconcile, same_object, transfer, update_with,
};
use super::{ManagerCx, last_applied, managed_fields, prune, text};
use crate::typed;

/// The manager that owns what was there before an object was first applied.
const BEFORE: &str = "before-first-apply";

/// Applies a configuration to an object (null or empty when it doesn't exist yet) and returns the object with its
/// managedFields. Both are in the version of the request.
///
/// The result is not defaulted: default it, and compare it to the live object, before it is stored. An apply that
/// changes nothing keeps its entry's time; one that only adds an owner makes an entry without a time.
pub fn apply(live: &Value, applied: &Value, cx: &ManagerCx<'_>, force: bool) -> Result<Value, ApplyError> {
    let managed = Managed::decode(managed_fields(live), true)
        .map_err(|e| ApplyError::Failed(format!("failed to decode managed fields: {e}")))?;
    let kind = gvk(applied);
    if kind != print_gvk(cx.api_version, cx.kind) {
        return Err(ApplyError::BadRequest(format!("invalid object type: {kind}")));
    }
    let is_kubectl = cx.manager == last_applied::KUBECTL;
    let mut out = match apply_with(live, applied, managed, cx, force) {
        Err(ApplyError::Conflicts(conflicts)) if is_kubectl => {
            let Some(allowed) = last_applied::proven(live, cx) else {
                return Err(ApplyError::Conflicts(conflicts));
            };
            let left: Vec<_> = conflicts.into_iter().filter(|c| !allowed.has(&c.path.0)).collect();
            if !left.is_empty() {
                return Err(ApplyError::Conflicts(left));
            }
            let managed = Managed::decode(managed_fields(live), true).unwrap_or_default();
            apply_with(live, applied, managed, cx, true)?
        }
        other => other?,
    };
    if is_kubectl {
        last_applied::refresh(&mut out.0, applied);
    }
    put_managed_fields(&mut out.0, out.1.encode());
    Ok(out.0)
}

fn apply_with(
    live: &Value,
    applied: &Value,
    mut managed: Managed,
    cx: &ManagerCx<'_>,
    force: bool,
) -> Result<(Value, Managed), ApplyError> {
    if managed.is_empty() {
        managed = update_with(&Value::Null, live, managed, cx, BEFORE)
            .map_err(|e| ApplyError::Failed(format!("failed to create manager for existing fields: {e}")))?;
    }
    if managed_fields(applied).is_some() {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    typed::check(applied, cx.schema, false).map_err(|e| {
        ApplyError::Failed(format!("failed to create typed patch object ({}): {e}", describe(applied)))
    })?;
    typed::check(live, cx.schema, true).map_err(|e| {
        ApplyError::Failed(format!("failed to create typed live object ({}): {e}", describe(live)))
    })?;

    let mut managed = reconcile(managed, cx);
    let mut new = without_managed_fields(live);
    typed::merge(&mut new, applied, cx.schema);

    let set = typed::field_set(applied, cx.schema).recursive_difference(cx.reset);
    let mut entry = Entry::new(cx.manager, Operation::Apply, cx.api_version, cx.subresource, set);
    let id = entry.id();
    let last = managed.entries.remove(&id);
    entry.time = last.as_ref().and_then(|l| l.time.clone());
    managed.entries.insert(id.clone(), entry);
    if let Some(last) = last {
        new = prune::prune(new, &managed, &last, &id, cx)
            .map_err(|e| ApplyError::Failed(format!("failed to prune fields: {e}")))?;
    }
    transfer(live, &new, &mut managed, cx, Some(&id), force).map_err(|e| match e {
        TransferError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
        TransferError::Failed(why) => ApplyError::Failed(why),
    })?;
    if let Some(entry) = managed.entries.get_mut(&id) {
        let own = ownable(entry.fields());
        if own.is_empty() {
            managed.entries.remove(&id);
        } else {
            entry.set_fields(own);
            if !same_object(live, &new) {
                entry.time = Some(cx.now.to_owned());
            }
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

fn gvk(object: &Value) -> String {
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    print_gvk(field("apiVersion"), field("kind"))
}

/// As Go prints a GroupVersionKind.
fn print_gvk(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}
