//! Conditions of a status: kept by type, with the time of their last change of status.
//!
//! Works on JSON, since every kind has a condition type of its own with the same fields.

use serde_json::{Value, json};

/// The condition `kind` with `status`, keeping the transition time of `old` where the status is the same.
///
/// `None` where `old` has such a condition with this status and reason already (the reference then leaves it alone).
pub(crate) fn changed(
    old: Option<&Value>,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) -> Option<Value> {
    if let Some(old) = old
        && old["status"] == status
        && old["reason"] == reason
    {
        return None;
    }
    let same = old.filter(|o| o["status"] == status).map(|o| o["lastTransitionTime"].clone());
    let since = same.filter(Value::is_string).unwrap_or_else(|| now.into());
    Some(
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}),
    )
}

/// Puts `condition` into `conditions`, in the place of the one of its type or at the end.
pub(crate) fn set(conditions: &mut Vec<Value>, condition: Value) {
    match conditions.iter_mut().find(|c| c["type"] == condition["type"]) {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}

/// The condition of a type.
pub(crate) fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|c| c["type"] == kind)
}
