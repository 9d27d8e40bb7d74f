//! JSON merge patch: null deletes, objects merge, all else replaces.
//!
//! One difference to RFC 7386, from the reference's library: nulls in objects inside of a list that is put in place
//! of nothing are dropped, too.

use serde_json::Value;

use super::{PatchError, json_type};

/// The document with the patch merged into it.
pub fn merge(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    match patch {
        Value::Object(_) => {}
        Value::Null => return Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
        other => {
            return Err(PatchError::Malformed(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_type(other)
            )));
        }
    }
    let mut out = document.clone();
    merge_into(&mut out, patch);
    Ok(out)
}

fn merge_into(current: &mut Value, patch: &Value) {
    match (current, patch) {
        (Value::Object(current), Value::Object(patch)) => {
            for (key, value) in patch {
                match (value, current.get_mut(key)) {
                    (Value::Null, _) => {
                        current.remove(key);
                    }
                    (value, Some(field)) if !field.is_null() => merge_into(field, value),
                    (value, _) => {
                        current.insert(key.clone(), without_nulls(value));
                    }
                }
            }
        }
        (current @ Value::Object(_), other) => *current = other.clone(),
        (current, other) => *current = without_nulls(other),
    }
}

/// A value without the null fields of its objects; a list keeps its nulls.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), without_nulls(v))).collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merges() {
        let cases = [
            // RFC 7386, appendix A.
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            // The library's own.
            (json!({}), json!({"a": [{"b": null}, null]}), json!({"a": [{}, null]})),
            (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
            (json!({"a": {"x": 1}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
        ];
        for (document, patch, want) in cases {
            assert_eq!(merge(&document, &patch), Ok(want), "{document} with {patch}");
        }
    }

    #[test]
    fn only_objects_are_patches() {
        for patch in [json!([1]), json!("x"), json!(null)] {
            assert_eq!(merge(&json!({}), &patch).unwrap_err().status().code, 400);
        }
    }
}
