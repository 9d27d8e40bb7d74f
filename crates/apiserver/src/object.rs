//! Accessors for what every object has (`metadata.*`) on JSON values, and the encoding that the store keeps.
//!
//! It knows no kinds. Invariant: a stored object is compact JSON with sorted keys whose
//! `metadata.resourceVersion` is left empty for the store to fill in.

use std::io::Write as _;

use bytes::Bytes;
use serde_json::{Map, Value};

/// A text in `metadata`; empty where absent or of another type.
pub fn meta_str<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

/// `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

/// `metadata.resourceVersion`.
pub fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion")
}

/// `metadata.generation`; 0 where absent.
pub fn generation(object: &Value) -> i64 {
    object.get("metadata").and_then(|m| m.get("generation")).and_then(Value::as_i64).unwrap_or(0)
}

/// Whether the object is being deleted.
pub fn deleting(object: &Value) -> bool {
    object.get("metadata").is_some_and(|m| m.get("deletionTimestamp").is_some_and(|t| !t.is_null()))
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> Vec<&str> {
    object
        .get("metadata")
        .and_then(|m| m.get("finalizers"))
        .and_then(Value::as_array)
        .map(|a| a.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Whether `metadata.finalizers` has entries.
pub fn has_finalizers(object: &Value) -> bool {
    !finalizers(object).is_empty()
}

/// `metadata`, made if it is absent. Where the object or its metadata is no JSON object it is left alone: the edit
/// then goes nowhere, and decoding has already refused such objects.
pub fn edit_meta(object: &mut Value, edit: impl FnOnce(&mut Map<String, Value>)) {
    let Some(root) = object.as_object_mut() else { return };
    let meta = root.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if meta.is_null() {
        *meta = Value::Object(Map::new());
    }
    if let Some(m) = meta.as_object_mut() {
        edit(m);
    }
}

/// Sets a text in `metadata`.
pub fn set_meta(object: &mut Value, key: &str, value: impl Into<Value>) {
    edit_meta(object, |m| {
        m.insert(key.to_owned(), value.into());
    });
}

/// Removes a key from `metadata`.
pub fn unset_meta(object: &mut Value, key: &str) {
    if let Some(m) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        m.remove(key);
    }
}

/// The store's name of an object: `namespace/name`, or `name`.
pub fn store_name(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// An encoded object and where the revision goes.
pub struct Encoded {
    /// JSON with an empty `resourceVersion`.
    pub bytes: Vec<u8>,
    /// Offset between the quotes of that empty text.
    pub revision_at: usize,
}

/// Encodes an object for the store. Built-in objects (`typed`) begin with `kind`, `apiVersion` and `metadata`, as Go
/// writes them, so that lists, whose items lack the first two, can cut them off (see [`typed_prefix`]); custom ones
/// have all keys in order.
pub fn encode(object: &Value, typed: bool) -> Encoded {
    let mut out = Vec::with_capacity(512);
    let mut revision_at = 0;
    out.push(b'{');
    let empty = Map::new();
    let root = object.as_object().unwrap_or(&empty);
    let mut first = true;
    let none = Value::Null;
    let mut wrote_meta = false;
    if typed {
        for key in ["kind", "apiVersion"] {
            write_pair(&mut out, key, root.get(key).unwrap_or(&Value::Null), &mut first);
        }
        write_meta(&mut out, root.get("metadata").unwrap_or(&none), &mut first, &mut revision_at);
        wrote_meta = true;
    }
    // `metadata` is written even when absent, so that there is a place for the revision; sorted order is kept.
    for (key, value) in root {
        if typed && matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            continue;
        }
        if !wrote_meta && key.as_str() > "metadata" {
            write_meta(&mut out, &none, &mut first, &mut revision_at);
            wrote_meta = true;
        }
        if key == "metadata" {
            write_meta(&mut out, value, &mut first, &mut revision_at);
            wrote_meta = true;
        } else {
            write_pair(&mut out, key, value, &mut first);
        }
    }
    if !wrote_meta {
        write_meta(&mut out, &none, &mut first, &mut revision_at);
    }
    out.push(b'}');
    Encoded { bytes: out, revision_at }
}

/// How a typed object's bytes begin: what list items lack.
pub fn typed_prefix(kind: &str, api_version: &str) -> usize {
    "{\"kind\":\"\",\"apiVersion\":\"\",".len() + kind.len() + api_version.len()
}

fn write_meta(out: &mut Vec<u8>, meta: &Value, first: &mut bool, revision_at: &mut usize) {
    if !*first {
        out.push(b',');
    }
    *first = false;
    out.extend_from_slice(b"\"metadata\":{");
    let mut inner_first = true;
    let mut wrote = false;
    let mut revision = |out: &mut Vec<u8>, first: &mut bool| {
        if !*first {
            out.push(b',');
        }
        *first = false;
        out.extend_from_slice(b"\"resourceVersion\":\"");
        *revision_at = out.len();
        out.push(b'"');
    };
    for (key, value) in meta.as_object().into_iter().flatten() {
        if !wrote && key.as_str() >= "resourceVersion" {
            revision(out, &mut inner_first);
            wrote = true;
        }
        if key != "resourceVersion" {
            write_pair(out, key, value, &mut inner_first);
        }
    }
    if !wrote {
        revision(out, &mut inner_first);
    }
    out.push(b'}');
}

fn write_pair(out: &mut Vec<u8>, key: &str, value: &Value, first: &mut bool) {
    if !*first {
        out.push(b',');
    }
    *first = false;
    write_json(out, &key);
    out.push(b':');
    write_json(out, value);
}

/// Appends JSON; values and texts always encode.
pub fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        let _ = out.write_all(b"null");
    }
}

/// JSON of a built-in object, its keys in the order in which Go begins: kind, version, metadata.
pub fn typed_bytes(object: &Value) -> Bytes {
    let Some(root) = object.as_object() else { return to_bytes(object) };
    let mut out = Vec::with_capacity(512);
    out.push(b'{');
    let mut first = true;
    for key in ["kind", "apiVersion", "metadata"] {
        if let Some(value) = root.get(key) {
            write_pair(&mut out, key, value, &mut first);
        }
    }
    for (key, value) in root.iter().filter(|(k, _)| !matches!(k.as_str(), "kind" | "apiVersion" | "metadata"))
    {
        write_pair(&mut out, key, value, &mut first);
    }
    out.push(b'}');
    out.into()
}

/// JSON of a value.
pub fn to_bytes(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(256);
    write_json(&mut out, value);
    out.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: Value, expect: &str) {
        let mut e = encode(&object, false);
        e.bytes.splice(e.revision_at..e.revision_at, *b"7");
        assert_eq!(String::from_utf8(e.bytes).unwrap(), expect);
    }

    #[test]
    fn the_revision_has_its_place_in_every_object() {
        check(json!({}), r#"{"metadata":{"resourceVersion":"7"}}"#);
        check(json!({"kind": "A", "spec": 1}), r#"{"kind":"A","metadata":{"resourceVersion":"7"},"spec":1}"#);
        check(
            json!({"metadata": {"name": "a", "resourceVersion": "3", "uid": "u"}, "apiVersion": "v1"}),
            r#"{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7","uid":"u"}}"#,
        );
        check(json!({"metadata": {"uid": "u"}}), r#"{"metadata":{"resourceVersion":"7","uid":"u"}}"#);
        check(json!({"metadata": null, "z": "\"7"}), r#"{"metadata":{"resourceVersion":"7"},"z":"\"7"}"#);
    }

    #[test]
    fn items_of_built_in_lists_lack_kind_and_version() {
        let e = encode(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {}, "metadata": {}}), true);
        let text = String::from_utf8(e.bytes).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":""},"data":{}}"#
        );
        assert_eq!(
            &text[typed_prefix("ConfigMap", "v1")..],
            r#""metadata":{"resourceVersion":""},"data":{}}"#
        );
    }
}
