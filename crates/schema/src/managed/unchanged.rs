//! The apply that changes nothing: the same configuration as last time, on an object that still has it. Operators
//! do this all day, so it is told before anything is merged.

use serde_json::Value;

use super::update::UNOWNED;
use super::{ManagerCx, managed_fields};
use crate::typed;

/// Whether an apply would leave the object and its managedFields as they are; may say no where it would.
pub(super) fn changes_nothing(live: &Value, applied: &Value, cx: &ManagerCx<'_>) -> bool {
    let is = |object: &Value, field: &str, want: &str| {
        object.get(field).and_then(Value::as_str).unwrap_or_default() == want
    };
    if !is(applied, "apiVersion", cx.api_version)
        || !is(applied, "kind", cx.kind)
        || managed_fields(applied).is_some()
    {
        return false;
    }
    let Some(Value::Array(entries)) = managed_fields(live) else { return false };
    // Managers of other versions may have to go, or their fields may look different there.
    if !entries.iter().all(|e| is(e, "apiVersion", cx.api_version) && is(e, "fieldsType", "FieldsV1")) {
        return false;
    }
    let manager = if cx.manager.is_empty() { "unknown" } else { cx.manager };
    let mut own = entries.iter().filter(|e| {
        is(e, "operation", "Apply") && is(e, "manager", manager) && is(e, "subresource", cx.subresource)
    });
    let (Some(own), None) = (own.next(), own.next()) else { return false };
    let Some(fields) = own.get("fieldsV1") else { return false };
    typed::is_exactly(applied, cx.schema, fields, cx.reset, &UNOWNED)
        && typed::covers(live, applied, cx.schema)
}
