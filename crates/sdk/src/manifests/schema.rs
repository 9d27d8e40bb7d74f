//! From a JSON schema as schemars writes it to a structural schema, as a CRD needs one.
//!
//! A pure function of the schema. kube's own rewriting panics where the variants of an enum disagree and leaves keywords
//! that the API server refuses; this one knows the whole vocabulary, and what can't be structural is a [`Fault`] that
//! says where and why. Invariant: what it returns without faults has a type, or an extension in place of one, at every
//! level (KEP-1001's rules for structural schemas).

use std::fmt;

use serde_json::{Map, Value, json};

use super::union;

/// Where [`union()`](super::union()) keeps an enum's variants out of kube's sight.
pub(crate) const HIDDEN: &str = "x-homeostat-variants";

/// What is kept as it is, wherever it stands.
const KEPT: &[&str] = &[
    "description",
    "title",
    "default",
    "example",
    "nullable",
    "enum",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "externalDocs",
];

/// The formats that the API server knows; of any other it warns (apiextensions' `supportedVersionedFormats`).
const FORMATS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "date-time",
    "int32",
    "int64",
    "float",
    "double",
];

/// Part of a type that no structural schema can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The field, as in `spec.users[].name`; map values are `spec.quotas{}`.
    pub path: String,
    /// What is wrong, and what to do about it.
    pub why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the whole object" } else { &self.path };
        write!(f, "{path}: {}", self.why)
    }
}

/// Collects faults on the way down.
pub(crate) struct Walk {
    pub(crate) faults: Vec<Fault>,
}

impl Walk {
    pub(crate) fn fault(&mut self, path: &str, why: impl Into<String>) {
        self.faults.push(Fault { path: path.to_owned(), why: why.into() });
    }
}

/// The structural schema for `raw`, or what stands in the way of one.
pub(crate) fn structural(raw: &Value) -> Result<Value, Vec<Fault>> {
    let mut walk = Walk { faults: Vec::new() };
    let schema = convert(raw, "", &mut walk);
    if walk.faults.is_empty() { Ok(schema) } else { Err(walk.faults) }
}

/// `path` with a field added.
pub(crate) fn field(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Anything goes. Nothing is pruned, and nothing is checked.
pub(crate) fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

/// Whether only `null` matches.
pub(crate) fn is_null(schema: &Value) -> bool {
    schema["type"] == "null"
        || schema["enum"].as_array().is_some_and(|e| e.len() == 1 && e[0].is_null())
        || schema.get("const").is_some_and(Value::is_null)
}

pub(crate) fn convert(raw: &Value, path: &str, walk: &mut Walk) -> Value {
    let Some(raw) = raw.as_object() else {
        // `true`: whatever there is. `false` matches nothing, which no field of a type does.
        return anything();
    };
    if let Some(reference) = raw.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        walk.fault(
            path,
            format!(
                "`{name}` contains itself, and a CRD's schema can't; give the field \
                 `#[schemars(schema_with = …)]` with a schema of your own, such as one that preserves unknown fields"
            ),
        );
        return anything();
    }
    let mut out = Map::new();
    for key in KEPT {
        if let Some(value) = raw.get(*key) {
            out.insert((*key).to_owned(), value.clone());
        }
    }
    for (key, value) in raw.iter().filter(|(k, _)| k.starts_with("x-kubernetes-")) {
        out.insert(key.clone(), value.clone());
    }
    if let Some(value) = raw.get("const") {
        out.insert("enum".into(), json!([value]));
    }
    bounds(raw, &mut out);
    if let Some(format) = raw.get("format").filter(|f| f.as_str().is_some_and(|f| FORMATS.contains(&f))) {
        out.insert("format".into(), format.clone());
    }
    if out.get("default").is_some_and(Value::is_null) {
        out.remove("default");
    }
    let variants = [HIDDEN, "oneOf", "anyOf"].iter().find_map(|k| Some((*k, raw.get(*k)?.as_array()?)));
    if let Some((keyword, variants)) = variants {
        // An enum's own schema may stand beside further fields (`#[serde(flatten)]`).
        let mut base = raw.clone();
        base.remove(keyword);
        if keyword == HIDDEN {
            out.remove("x-kubernetes-preserve-unknown-fields");
            base.remove("x-kubernetes-preserve-unknown-fields");
        }
        return union::convert(&base, variants, keyword == "anyOf", out, path, walk);
    }
    if let Some(all) = raw.get("allOf").and_then(Value::as_array) {
        return intersection(raw, all, path, walk);
    }
    shape(raw, &mut out, path, walk);
    Value::Object(out)
}

/// schemars has exclusive bounds as numbers (2020-12), CRDs as booleans beside the bound (draft 4).
fn bounds(raw: &Map<String, Value>, out: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match raw.get(exclusive) {
            Some(Value::Bool(value)) => {
                out.insert(exclusive.into(), json!(value));
            }
            Some(value @ Value::Number(_)) => {
                out.insert(bound.into(), value.clone());
                out.insert(exclusive.into(), json!(true));
            }
            _ => {}
        }
    }
}

/// `allOf`: all of the schemas at once, as schemars writes a type with siblings.
fn intersection(raw: &Map<String, Value>, all: &[Value], path: &str, walk: &mut Walk) -> Value {
    let mut merged = raw.clone();
    merged.remove("allOf");
    for part in all.iter().filter_map(Value::as_object) {
        for (key, value) in part {
            match (merged.get_mut(key), value) {
                (Some(Value::Object(mine)), Value::Object(theirs)) if key == "properties" => {
                    mine.extend(theirs.clone());
                }
                (Some(Value::Array(mine)), Value::Array(theirs)) if key == "required" => {
                    mine.extend(theirs.iter().cloned());
                }
                (Some(_), _) => {}
                (None, _) => {
                    merged.insert(key.clone(), value.clone());
                }
            }
        }
    }
    convert(&Value::Object(merged), path, walk)
}

/// The type and what belongs to it.
fn shape(raw: &Map<String, Value>, out: &mut Map<String, Value>, path: &str, walk: &mut Walk) {
    let kind = match raw.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            if kinds.iter().any(|k| k == "null") {
                out.insert("nullable".into(), json!(true));
            }
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).filter(|k| *k != "null").collect();
            match kinds[..] {
                [kind] => kind.to_owned(),
                ["integer", "string"] | ["string", "integer"] => return int_or_string(out),
                _ => return untyped(out),
            }
        }
        _ if raw.contains_key("properties") || raw.contains_key("additionalProperties") => "object".into(),
        _ if raw.contains_key("items") => "array".into(),
        _ => match of_enum(out.get("enum")) {
            Some(kind) => kind.to_owned(),
            None if out.get("x-kubernetes-int-or-string") == Some(&json!(true)) => return,
            None => return untyped(out),
        },
    };
    match kind.as_str() {
        "object" => object(raw, out, path, walk),
        "array" => array(raw, out, path, walk),
        "null" => {
            walk.fault(path, "only null is allowed here (a unit type); drop the field, or give it a type");
            return;
        }
        _ => {}
    }
    if out.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        return;
    }
    out.insert("type".into(), json!(kind));
}

/// The type that all values of an `enum` have.
fn of_enum(values: Option<&Value>) -> Option<&'static str> {
    let kind = |value: &Value| match value {
        Value::String(_) => Some("string"),
        Value::Number(n) if n.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::Bool(_) => Some("boolean"),
        _ => None,
    };
    let mut kinds = values?.as_array()?.iter().filter(|v| !v.is_null()).map(kind);
    let first = kinds.next()??;
    kinds.all(|k| k == Some(first)).then_some(first)
}

pub(crate) fn int_or_string(out: &mut Map<String, Value>) {
    out.insert("x-kubernetes-int-or-string".into(), json!(true));
    out.remove("format");
}

/// Several types at once, or none said.
pub(crate) fn untyped(out: &mut Map<String, Value>) {
    out.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
}

fn object(raw: &Map<String, Value>, out: &mut Map<String, Value>, path: &str, walk: &mut Walk) {
    let mut properties = Map::new();
    for (name, schema) in raw.get("properties").and_then(Value::as_object).into_iter().flatten() {
        properties.insert(name.clone(), convert(schema, &field(path, name), walk));
    }
    if let Some(required) = raw.get("required").and_then(Value::as_array).filter(|r| !r.is_empty()) {
        let mut names: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
        names.sort_unstable();
        names.dedup();
        out.insert("required".into(), json!(names));
    }
    let patterns = raw.get("patternProperties").and_then(Value::as_object);
    let values = match raw.get("additionalProperties") {
        None | Some(Value::Bool(false)) => patterns.and_then(|p| p.values().next()),
        more => more,
    };
    match values {
        // A flattened map beside fields: the fields are checked, the rest is kept.
        Some(_) if !properties.is_empty() => untyped(out),
        Some(values) => {
            out.insert("additionalProperties".into(), convert(values, &format!("{path}{{}}"), walk));
        }
        // Unknown fields are pruned, or refused under strict field validation: what `deny_unknown_fields` asks for.
        None => {}
    }
    if !properties.is_empty() {
        out.insert("properties".into(), Value::Object(properties));
    }
}

fn array(raw: &Map<String, Value>, out: &mut Map<String, Value>, path: &str, walk: &mut Walk) {
    let inside = format!("{path}[]");
    let items = match raw.get("prefixItems").or_else(|| raw.get("items")) {
        Some(Value::Array(tuple)) => {
            let first = tuple.first().cloned().unwrap_or(Value::Bool(true));
            if tuple.iter().any(|t| *t != first) {
                walk.fault(
                    path,
                    "a tuple of different types is a list whose items differ, which a CRD can't say; use a struct \
                     with named fields",
                );
            }
            convert(&first, &inside, walk)
        }
        Some(items) => convert(items, &inside, walk),
        None => anything(),
    };
    if raw.get("uniqueItems") == Some(&json!(true)) && !out.contains_key("x-kubernetes-list-type") {
        // `uniqueItems` is forbidden, since checking it is quadratic; list type `set` says the same of scalars.
        let scalar = items["type"].as_str().is_some_and(|t| t != "object" && t != "array");
        if scalar && items["nullable"] != json!(true) {
            out.insert("x-kubernetes-list-type".into(), json!("set"));
        }
    }
    out.insert("items".into(), items);
}
