//! Reading schemas as JSON: absent, null and zero values are the same, as in the Go types they stand for.

use serde_json::{Map, Value};

/// A schema, or any other JSON object.
pub(crate) type Props = Map<String, Value>;

/// Levels of a schema that are looked at. Deeper ones are refused before anything recurses into them.
pub(crate) const MAX_DEPTH: usize = 128;

/// The text of a field, empty when absent.
pub(crate) fn text<'a>(p: &'a Props, key: &str) -> &'a str {
    p.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a boolean field is true.
pub(crate) fn flag(p: &Props, key: &str) -> bool {
    p.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// A field that is neither absent nor null.
pub(crate) fn some<'a>(p: &'a Props, key: &str) -> Option<&'a Value> {
    p.get(key).filter(|v| !v.is_null())
}

/// An object field.
pub(crate) fn object<'a>(p: &'a Props, key: &str) -> Option<&'a Props> {
    p.get(key).and_then(Value::as_object)
}

/// The items of an array field, none when absent.
pub(crate) fn array<'a>(p: &'a Props, key: &str) -> &'a [Value] {
    p.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The texts of an array field.
pub(crate) fn texts<'a>(p: &'a Props, key: &str) -> Vec<&'a str> {
    array(p, key).iter().filter_map(Value::as_str).collect()
}

/// The schemas of an object field whose values are schemas (`properties`).
pub(crate) fn named<'a>(p: &'a Props, key: &str) -> impl Iterator<Item = (&'a str, &'a Props)> {
    object(p, key).into_iter().flatten().filter_map(|(k, v)| Some((k.as_str(), v.as_object()?)))
}

/// The schemas of an array field (`anyOf`), with their index.
pub(crate) fn listed<'a>(p: &'a Props, key: &str) -> impl Iterator<Item = (usize, &'a Props)> {
    array(p, key).iter().enumerate().filter_map(|(i, v)| Some((i, v.as_object()?)))
}

/// `items` where it is one schema.
pub(crate) fn items(p: &Props) -> Option<&Props> {
    object(p, "items")
}

/// Fields that are pointers in Go: set as soon as they aren't null, whatever their value.
const POINTERS: [&str; 10] = [
    "$ref",
    "additionalItems",
    "additionalProperties",
    "default",
    "example",
    "items",
    "not",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
];

/// Whether a field has a value other than its type's zero.
pub(crate) fn nonzero(p: &Props, key: &str) -> bool {
    match p.get(key) {
        None | Some(Value::Null) => false,
        Some(_) if POINTERS.contains(&key) => true,
        Some(Value::Bool(b)) => *b,
        Some(Value::String(s)) => !s.is_empty(),
        Some(Value::Array(a)) => !a.is_empty(),
        Some(Value::Object(o)) => !o.is_empty(),
        Some(Value::Number(_)) => true,
    }
}

/// The schemas directly within a schema.
fn children<'a>(s: &'a Props, out: &mut Vec<&'a Props>) {
    out.extend(
        ["items", "not", "additionalProperties", "additionalItems"].iter().filter_map(|k| object(s, k)),
    );
    for key in ["items", "allOf", "anyOf", "oneOf"] {
        out.extend(listed(s, key).map(|(_, s)| s));
    }
    for key in ["properties", "patternProperties", "definitions", "dependencies"] {
        out.extend(named(s, key).map(|(_, s)| s));
    }
}

/// Calls `visit` with a schema and all schemas within it.
pub(crate) fn each(schema: &Props, visit: &mut dyn FnMut(&Props)) {
    let mut pending = vec![schema];
    while let Some(s) = pending.pop() {
        visit(s);
        children(s, &mut pending);
    }
}

/// Whether `found` holds for a schema or any schema within it.
pub(crate) fn any(schema: &Props, found: &dyn Fn(&Props) -> bool) -> bool {
    let mut pending = vec![schema];
    while let Some(s) = pending.pop() {
        if found(s) {
            return true;
        }
        children(s, &mut pending);
    }
    false
}

/// Whether schemas are nested deeper than `limit` in a schema: what counts is schemas, not levels of JSON.
pub(crate) fn schemas_deeper_than(schema: &Value, limit: usize) -> bool {
    let mut pending = vec![(schema, 0)];
    while let Some((s, depth)) = pending.pop() {
        if depth > limit {
            return true;
        }
        for (key, v) in s.as_object().into_iter().flatten() {
            match (key.as_str(), v) {
                ("properties" | "patternProperties" | "definitions" | "dependencies", Value::Object(all)) => {
                    pending.extend(all.values().map(|s| (s, depth + 1)));
                }
                ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    pending.extend(all.iter().map(|s| (s, depth + 1)));
                }
                ("items" | "additionalProperties" | "additionalItems" | "not", Value::Object(_)) => {
                    pending.push((v, depth + 1));
                }
                _ => {}
            }
        }
    }
    false
}

/// Whether a JSON value is nested deeper than `limit`.
pub(crate) fn deeper_than(value: &Value, limit: usize) -> bool {
    let mut pending = vec![(value, 0)];
    while let Some((v, depth)) = pending.pop() {
        if depth > limit {
            return true;
        }
        match v {
            Value::Array(items) => pending.extend(items.iter().map(|v| (v, depth + 1))),
            Value::Object(fields) => pending.extend(fields.values().map(|v| (v, depth + 1))),
            _ => {}
        }
    }
    false
}
