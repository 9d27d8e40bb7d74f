//! JSON patch as evanphx/json-patch has it: `replace` of an absent field adds it, indexes may be negative and
//! count from the end, and what stands before the first slash of a path is not looked at.

use serde_json::Value;

use super::{PatchError, json_type};

/// Operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;

/// Bytes that the copies of one patch may make, so that it can't double the document with each of them.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Levels of the document, as many as parsing allows: what is stored must be readable.
const MAX_DEPTH: usize = crate::decode::MAX_DEPTH;

/// The document after all operations; if one fails, none is applied.
pub fn json(document: &Value, operations: &Value) -> Result<Value, PatchError> {
    let operations = operations_of(operations)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooMany(operations.len()));
    }
    let mut patch = Patch { document: document.clone(), copied: 0 };
    for operation in operations {
        patch.apply(operation)?;
    }
    Ok(patch.document)
}

/// Fields of operations that mean nothing, as strict decoding names them: `json patch unknown field "[0].valeu"`.
pub fn unknown_fields(operations: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for (i, operation) in operations.as_array().into_iter().flatten().enumerate() {
        for key in operation.as_object().into_iter().flat_map(|m| m.keys()) {
            if !matches!(key.as_str(), "op" | "path" | "from" | "value") {
                let field = homeostat_model::field::quote(&format!("[{i}].{key}"));
                out.push(format!("json patch unknown field {field}"));
            }
        }
    }
    out
}

/// Checks the form as decoding into the reference's struct does.
fn operations_of(patch: &Value) -> Result<&[Value], PatchError> {
    let malformed = |what: &Value, target: &str| {
        let text =
            format!("error decoding patch: json: cannot unmarshal {} into Go {target}", json_type(what));
        Err(PatchError::Malformed(text))
    };
    let list = match patch {
        Value::Array(list) => list.as_slice(),
        Value::Null => return Ok(&[]),
        other => return malformed(other, "value of type []handlers.jsonPatchOp"),
    };
    for operation in list {
        let Some(fields) = operation.as_object() else {
            if operation.is_null() {
                continue;
            }
            return malformed(operation, "value of type handlers.jsonPatchOp");
        };
        for name in ["op", "path", "from"] {
            match fields.get(name) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => {
                    return malformed(other, &format!("struct field jsonPatchOp.{name} of type string"));
                }
            }
        }
    }
    Ok(list)
}

struct Patch {
    document: Value,
    copied: usize,
}

impl Patch {
    fn apply(&mut self, operation: &Value) -> Result<(), PatchError> {
        if operation.get("op").and_then(Value::as_str) == Some("test") {
            return self.test(operation);
        }
        self.change(operation).map_err(PatchError::Rejected)
    }

    fn test(&mut self, operation: &Value) -> Result<(), PatchError> {
        let Some(path) = operation.get("path").and_then(Value::as_str) else {
            return Err(PatchError::Rejected("operation is missing its path".to_owned()));
        };
        let have = match path {
            "" => Some(&self.document),
            path => self.get(path).map_err(PatchError::Rejected)?,
        };
        // An absent field is null.
        let same = have.unwrap_or(&Value::Null) == operation.get("value").unwrap_or(&Value::Null);
        if same { Ok(()) } else { Err(PatchError::TestFailed(path.to_owned())) }
    }

    fn change(&mut self, operation: &Value) -> Result<(), String> {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let path = || text("path").ok_or("operation is missing its path");
        let value = || operation.get("value").cloned().unwrap_or_default();
        match text("op").unwrap_or("unknown") {
            "add" => self.add(path()?, value()),
            "remove" => self.remove(path()?).map(drop),
            "replace" => self.replace(path()?, value()),
            "move" => {
                let from = text("from").ok_or("operation is missing its from")?;
                let value = self.remove(from)?;
                self.add(path()?, value)
            }
            "copy" => {
                let from = text("from").ok_or("operation is missing its from")?;
                let value = self.get(from)?.cloned().unwrap_or_default();
                self.copied += value.to_string().len();
                if self.copied > MAX_COPIED {
                    return Err(format!("the copies of the patch are larger than {MAX_COPIED} bytes"));
                }
                self.add(path()?, value)
            }
            other => Err(format!("unexpected kind: {other}")),
        }
    }

    /// The container that a path ends in, and the key there.
    fn container<'a>(&'a mut self, path: &str) -> Result<(&'a mut Value, String), String> {
        let missing = || format!("the document has no path {path:?}");
        let mut parts = path.split('/');
        parts.next();
        let Some(last) = parts.next_back() else { return Err(missing()) };
        let mut at = &mut self.document;
        for part in parts {
            let part = decode(part);
            at = match at {
                Value::Object(map) => map.get_mut(&part),
                Value::Array(list) => index(&part, list.len()).ok().and_then(|i| list.get_mut(i)),
                _ => None,
            }
            .ok_or_else(missing)?;
        }
        if !at.is_object() && !at.is_array() {
            return Err(missing());
        }
        Ok((at, decode(last)))
    }

    fn get(&mut self, path: &str) -> Result<Option<&Value>, String> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => Ok(map.get(&key)),
            Value::Array(list) => Ok(list.get(index(&key, list.len())?)),
            _ => Ok(None),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), String> {
        check_depth(path, &value)?;
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(list) if key == "-" => list.push(value),
            Value::Array(list) => {
                // A new last place may be named, from both ends.
                let at = index(&key, list.len() + 1)?;
                list.insert(at, value);
            }
            _ => {}
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, String> {
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => map.remove(&key).ok_or_else(|| format!("nothing to remove at {path:?}")),
            Value::Array(list) => {
                let at = index(&key, list.len())?;
                Ok(list.remove(at))
            }
            _ => Ok(Value::Null),
        }
    }

    fn replace(&mut self, path: &str, value: Value) -> Result<(), String> {
        if path.is_empty() {
            // Anything but a document is ignored.
            if value.is_object() || value.is_array() {
                self.document = value;
            }
            return Ok(());
        }
        check_depth(path, &value)?;
        let (container, key) = self.container(path)?;
        match container {
            Value::Object(map) => {
                map.insert(key, value);
            }
            Value::Array(list) => {
                let at = index(&key, list.len())?;
                list[at] = value;
            }
            _ => {}
        }
        Ok(())
    }
}

fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
            Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }
    if path.split('/').count() - 1 + depth(value) > MAX_DEPTH {
        return Err(format!("the document would be nested deeper than {MAX_DEPTH} levels"));
    }
    Ok(())
}

fn decode(key: &str) -> String {
    if key.contains('~') { key.replace("~1", "/").replace("~0", "~") } else { key.to_owned() }
}

/// The place that an index names in a list of `len` places.
fn index(key: &str, len: usize) -> Result<usize, String> {
    let n: i64 = key.parse().map_err(|_| format!("{key:?} is no index"))?;
    let n = if n < 0 { i64::try_from(len).unwrap_or(i64::MAX).saturating_add(n) } else { n };
    usize::try_from(n).ok().filter(|n| *n < len).ok_or_else(|| format!("index {key} is out of range"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(document: Value, operations: Value, want: Option<Value>) {
        let got = super::json(&document, &operations);
        match want {
            Some(want) => assert_eq!(got.as_ref().ok(), Some(&want), "{operations} gave {got:?}"),
            None => {
                assert!(
                    matches!(got, Err(PatchError::Rejected(_) | PatchError::TestFailed(_))),
                    "{operations} gave {got:?}"
                );
            }
        }
    }

    #[test]
    fn operations_behave_as_the_references_do() {
        let doc = || json!({"a": [1, 2], "m": {"k": null}, "s": "x"});
        let with = |key: &str, value: Value| {
            let mut d = doc();
            d[key] = value;
            Some(d)
        };
        check(doc(), json!([{"op": "replace", "path": "/new", "value": 1}]), with("new", json!(1)));
        check(doc(), json!([{"op": "add", "path": "/a/-", "value": 3}]), with("a", json!([1, 2, 3])));
        check(doc(), json!([{"op": "add", "path": "/a/-1", "value": 3}]), with("a", json!([1, 2, 3])));
        check(doc(), json!([{"op": "replace", "path": "/a/-1", "value": 9}]), with("a", json!([1, 9])));
        check(doc(), json!([{"op": "remove", "path": "/a/-2"}]), with("a", json!([2])));
        check(doc(), json!([{"op": "add", "path": "/a/2", "value": 3}]), with("a", json!([1, 2, 3])));
        check(doc(), json!([{"op": "add", "path": "/a/3", "value": 3}]), None);
        check(doc(), json!([{"op": "remove", "path": "/a/-3"}]), None);
        check(doc(), json!([{"op": "remove", "path": "/absent"}]), None);
        check(doc(), json!([{"op": "add", "path": "/absent/x", "value": 1}]), None);
        check(doc(), json!([{"op": "add", "path": "/s/x", "value": 1}]), None);
        check(doc(), json!([{"op": "test", "path": "/m/k", "value": null}]), Some(doc()));
        check(doc(), json!([{"op": "test", "path": "/m/absent", "value": null}]), Some(doc()));
        check(doc(), json!([{"op": "test", "path": "/s", "value": "y"}]), None);
        check(doc(), json!([{"op": "test", "path": "", "value": doc()}]), Some(doc()));
        check(doc(), json!([{"op": "replace", "path": "", "value": {"b": 1}}]), Some(json!({"b": 1})));
        check(doc(), json!([{"op": "explode", "path": "/s"}]), None);
        check(doc(), json!([{"path": "/s"}]), None);
        check(doc(), json!([{"op": "remove"}]), None);
        check(
            json!({"a/b": 1, "c~d": 2}),
            json!([{"op": "remove", "path": "/a~1b"}]),
            Some(json!({"c~d": 2})),
        );
        check(
            json!({"a/b": 1, "c~d": 2}),
            json!([{"op": "remove", "path": "/c~0d"}]),
            Some(json!({"a/b": 1})),
        );
        check(doc(), json!([]), Some(doc()));
    }

    #[test]
    fn copies_cannot_blow_up_the_document() {
        let operations: Vec<Value> =
            (0..100).map(|i| json!({"op": "copy", "from": "/a", "path": format!("/a/{i}")})).collect();
        let got = super::json(&json!({"a": {"x": "y"}}), &Value::Array(operations));
        assert!(matches!(got, Err(PatchError::Rejected(_) | PatchError::TestFailed(_))));
    }

    #[test]
    fn nothing_nests_without_end() {
        let mut operations = vec![json!({"op": "add", "path": "/a", "value": {}})];
        let mut path = "/a".to_owned();
        for _ in 0..10 {
            operations.push(json!({"op": "copy", "from": "/a", "path": format!("{path}/a")}));
            path = format!("{path}{path}");
        }
        let got = super::json(&json!({}), &Value::Array(operations));
        assert!(matches!(got, Err(PatchError::Rejected(_) | PatchError::TestFailed(_))));
    }

    #[test]
    fn malformed_patches_are_told_in_gos_words() {
        let cases = [
            (json!({"spec": {}}), "object into Go value of type []handlers.jsonPatchOp"),
            (json!([1]), "number into Go value of type handlers.jsonPatchOp"),
            (json!([{"op": true}]), "bool into Go struct field jsonPatchOp.op of type string"),
        ];
        for (patch, want) in cases {
            let status = super::json(&json!({}), &patch).unwrap_err().status();
            assert_eq!(status.message, format!("error decoding patch: json: cannot unmarshal {want}"));
            assert_eq!(status.code, 400);
        }
        let many = Value::Array(vec![json!({"op": "test", "path": ""}); MAX_OPERATIONS + 1]);
        let status = super::json(&json!({}), &many).unwrap_err().status();
        assert_eq!(
            (status.code, status.message.as_str()),
            (
                413,
                "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
            )
        );
    }
}
