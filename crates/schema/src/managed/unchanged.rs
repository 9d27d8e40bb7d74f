//! The apply that is like the last one: the same fields, and often the same values, on an object that still has
//! them. Operators do this all day, so it is told before anything is merged.

use serde_json::Value;

use super::update::UNOWNED;
use super::{ManagerCx, managed_fields};
use crate::typed;

/// How an apply compares to the last one of its manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    /// Nothing changes, neither the object nor its managedFields.
    Wholly,
    /// The same fields are applied, in the same version as all managers use; so nothing is given up.
    InFields,
    /// Not known to be alike.
    Unknown,
}

/// Compares an apply to the last one. `Unknown` is always a right answer.
pub(super) fn compare(live: &Value, applied: &Value, cx: &ManagerCx<'_>) -> Alike {
    let is = |object: &Value, field: &str, want: &str| {
        object.get(field).and_then(Value::as_str).unwrap_or_default() == want
    };
    if !is(applied, "apiVersion", cx.api_version)
        || !is(applied, "kind", cx.kind)
        || managed_fields(applied).is_some()
    {
        return Alike::Unknown;
    }
    let Some(Value::Array(entries)) = managed_fields(live) else { return Alike::Unknown };
    // Managers of other versions may have to go, or their fields may look different there.
    if !entries.iter().all(|e| is(e, "apiVersion", cx.api_version) && is(e, "fieldsType", "FieldsV1")) {
        return Alike::Unknown;
    }
    let manager = if cx.manager.is_empty() { "unknown" } else { cx.manager };
    let mut own = entries.iter().filter(|e| {
        is(e, "operation", "Apply") && is(e, "manager", manager) && is(e, "subresource", cx.subresource)
    });
    let (Some(own), None) = (own.next(), own.next()) else { return Alike::Unknown };
    let Some(fields) = own.get("fieldsV1") else { return Alike::Unknown };
    if !typed::is_exactly(applied, cx.schema, fields, cx.reset, &UNOWNED) {
        Alike::Unknown
    } else if typed::covers(live, applied, cx.schema) {
        Alike::Wholly
    } else if typed::fits(applied, cx.schema) {
        Alike::InFields
    } else {
        Alike::Unknown
    }
}
