//! Writes that change nothing but times in managedFields are no changes.

use serde_json::Value;

use super::managed_fields;
use super::update::same_object;

/// Gives `new` the times of `old`'s managedFields if nothing else differs between the two. Call it last, when
/// `new` is what would be stored; what is equal then needs no new version.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (managed_fields(old), managed_fields(new))
    else {
        return;
    };
    if before.len() != after.len() || before.is_empty() || before == after {
        return;
    }
    let same = before.iter().zip(after).all(|(a, b)| match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.iter().filter(|(k, _)| *k != "time").eq(b.iter().filter(|(k, _)| *k != "time"))
        }
        _ => a == b,
    });
    if same && same_object(old, new) {
        let before = before.clone();
        if let Some(field) = new.get_mut("metadata").and_then(|m| m.get_mut("managedFields")) {
            *field = Value::Array(before);
        }
    }
}
