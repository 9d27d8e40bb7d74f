//! What a function on a typed object changed, laid over the object as it came.
//!
//! A type may not know all fields of an object (an older program, a newer CRD), and may write fields that weren't
//! there. So its serialised forms before and after are compared, and only the difference goes into the original.
//! Pure. Invariant: where before and after are the same, the original stays as it is, whatever is in it.

use serde_json::Value;

/// Makes the change from `before` to `after` in `original`.
pub(super) fn overlay(original: &mut Value, before: &Value, after: &Value) {
    if before == after {
        return;
    }
    match (&mut *original, before, after) {
        (Value::Object(original), Value::Object(before), Value::Object(after)) => {
            for key in before.keys().filter(|k| !after.contains_key(*k)) {
                original.remove(key);
            }
            for (key, after) in after {
                match before.get(key) {
                    Some(before) if before == after => {}
                    Some(before) if original.contains_key(key) => overlay(&mut original[key], before, after),
                    _ => {
                        original.insert(key.clone(), after.clone());
                    }
                }
            }
        }
        // Items are the same ones where there are as many; else nobody can tell which is which.
        (Value::Array(original), Value::Array(before), Value::Array(after))
            if original.len() == before.len() && before.len() == after.len() =>
        {
            for ((original, before), after) in original.iter_mut().zip(before).zip(after) {
                overlay(original, before, after);
            }
        }
        _ => *original = after.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_difference_goes_into_the_original() {
        let cases = [
            // What the type doesn't know stays; what it adds when it reads is not a change.
            (
                json!({"a": 1, "unknown": 1}),
                json!({"a": 1, "read": 0}),
                json!({"a": 2, "read": 0}),
                json!({"a": 2, "unknown": 1}),
            ),
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 2}), json!({"b": 2}), json!({"b": 2})),
            // A default deep in what wasn't there.
            (
                json!({}),
                json!({"storage": {"class": null}}),
                json!({"storage": {"class": "fast"}}),
                json!({"storage": {"class": "fast"}}),
            ),
            // Items of lists keep what the type doesn't know, as long as they are the same ones.
            (
                json!({"l": [{"n": "x", "unknown": 1}]}),
                json!({"l": [{"n": "x"}]}),
                json!({"l": [{"n": "x", "p": 1}]}),
                json!({"l": [{"n": "x", "p": 1, "unknown": 1}]}),
            ),
            (json!({"l": [1]}), json!({"l": [1]}), json!({"l": [1, 2]}), json!({"l": [1, 2]})),
            (json!({"a": null}), json!({}), json!({"a": 1}), json!({"a": 1})),
        ];
        for (mut original, before, after, expect) in cases {
            let was = original.clone();
            overlay(&mut original, &before, &after);
            assert_eq!(original, expect, "{was} by {before} -> {after}");
        }
    }
}
