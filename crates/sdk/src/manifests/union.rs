//! Rust enums as structural schemas: one set of fields for all variants, and what tells the variants apart.
//!
//! A structural schema names every field once, outside of `oneOf` and `anyOf`; inside these stands only which fields go
//! together. Invariant: a field that two variants share has one type, or it is a fault.

use serde_json::{Map, Value, json};

use super::schema::{self, Walk, field, is_null};

/// Makes the variants of an enum structural: `base` is what stands beside them, `out` what was taken over from it.
/// `any` says that several variants may match (`#[serde(untagged)]`).
pub(crate) fn convert(
    base: &Map<String, Value>,
    variants: &[Value],
    any: bool,
    mut out: Map<String, Value>,
    path: &str,
    walk: &mut Walk,
) -> Value {
    let nullable = variants.iter().any(is_null);
    let variants: Vec<&Value> = variants.iter().filter(|v| !is_null(v)).collect();
    if nullable {
        out.insert("nullable".into(), json!(true));
    }
    if let [only] = variants[..] {
        // `Option<T>` of a type that isn't one of JSON's own.
        let mut inner = match schema::convert(only, path, walk) {
            Value::Object(inner) => inner,
            _ => Map::new(),
        };
        inner.extend(out);
        return Value::Object(inner);
    }
    let parts: Vec<Value> = variants.iter().map(|v| schema::convert(v, path, walk)).collect();
    if let Some(values) = strings(&parts) {
        out.insert("type".into(), json!("string"));
        out.insert("enum".into(), json!(values));
        return Value::Object(out);
    }
    if parts.iter().all(|p| p["type"] == "object") {
        objects(base, &parts, any, &mut out, path, walk);
        return Value::Object(out);
    }
    let kinds: Vec<&str> = parts.iter().map(|p| p["type"].as_str().unwrap_or_default()).collect();
    match kinds.first() {
        Some(kind) if !kind.is_empty() && *kind != "array" && kinds.iter().all(|k| k == kind) => {
            // Scalars of one type, bounded in different ways.
            out.insert("type".into(), json!(kind));
        }
        _ if kinds.iter().all(|k| matches!(*k, "integer" | "string")) => schema::int_or_string(&mut out),
        _ => schema::untyped(&mut out),
    }
    Value::Object(out)
}

/// The values of an enum of unit variants.
fn strings(parts: &[Value]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for part in parts {
        let more = part["enum"].as_array().filter(|_| part["type"] == "string")?;
        values.extend(more.iter().filter(|v| !v.is_null()).cloned());
    }
    values.dedup();
    Some(values)
}

fn objects(
    base: &Map<String, Value>,
    parts: &[Value],
    any: bool,
    out: &mut Map<String, Value>,
    path: &str,
    walk: &mut Walk,
) {
    let mut properties = Map::new();
    for (name, raw) in base.get("properties").and_then(Value::as_object).into_iter().flatten() {
        properties.insert(name.clone(), schema::convert(raw, &field(path, name), walk));
    }
    let mut common = names(base.get("required"));
    let tag = tag(parts);
    let mut keeps_unknown = false;
    for part in parts {
        keeps_unknown |= part["x-kubernetes-preserve-unknown-fields"] == json!(true)
            || part.get("additionalProperties").is_some();
        for (name, schema) in part["properties"].as_object().into_iter().flatten() {
            let described = describe(schema, part, tag.is_some(), any);
            match properties.get_mut(name) {
                None => {
                    properties.insert(name.clone(), described);
                }
                Some(mine) => merge(mine, &described, &field(path, name), walk),
            }
        }
    }
    let mut rest: Vec<Value> = Vec::new();
    for part in parts {
        let required = names(part.get("required"));
        let mut condition = Map::new();
        if let Some(tag) = &tag {
            condition.insert("properties".into(), json!({ tag: {"enum": part["properties"][tag]["enum"]} }));
        }
        let own: Vec<&String> =
            required.iter().filter(|r| !common.contains(r) && tag.as_ref() != Some(*r)).collect();
        if !own.is_empty() {
            condition.insert("required".into(), json!(own));
        }
        rest.push(Value::Object(condition));
    }
    if let Some(tag) = tag {
        common.push(tag);
    }
    common.sort();
    common.dedup();
    if !common.is_empty() {
        out.insert("required".into(), json!(common));
    }
    let says_something = |c: &Value| c.as_object().is_some_and(|c| !c.is_empty());
    if rest.iter().all(says_something) {
        out.insert(if any { "anyOf" } else { "oneOf" }.into(), Value::Array(rest));
    }
    if keeps_unknown {
        schema::untyped(out);
    }
    out.insert("type".into(), json!("object"));
    if !properties.is_empty() {
        out.insert("properties".into(), Value::Object(properties));
    }
}

/// Of an externally tagged enum the variant's documentation is that of its only field.
fn describe(schema: &Value, part: &Value, tagged: bool, any: bool) -> Value {
    let mut schema = schema.clone();
    let only = part["properties"].as_object().is_some_and(|p| p.len() == 1);
    if only
        && !tagged
        && !any
        && schema.get("description").is_none()
        && let (Some(text), Some(fields)) = (part.get("description"), schema.as_object_mut())
    {
        fields.insert("description".into(), text.clone());
    }
    schema
}

fn names(required: Option<&Value>) -> Vec<String> {
    required
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(Into::into)
        .collect()
}

/// The field that tells the variants apart: required in each, with another single value in each.
fn tag(parts: &[Value]) -> Option<String> {
    let candidates = names(parts.first()?.get("required"));
    candidates.into_iter().find(|name| {
        let mut seen = Vec::new();
        parts.iter().all(|part| {
            let Some([value]) = part["properties"][name]["enum"].as_array().map(Vec::as_slice) else {
                return false;
            };
            let new = !seen.contains(&value);
            seen.push(value);
            new && names(part.get("required")).contains(name)
        })
    })
}

/// Makes `mine` allow what `other` allows, too.
fn merge(mine: &mut Value, other: &Value, path: &str, walk: &mut Walk) {
    let plain = |schema: &Value| {
        let mut schema = schema.clone();
        for key in ["description", "title", "default", "example"] {
            if let Some(fields) = schema.as_object_mut() {
                fields.remove(key);
            }
        }
        schema
    };
    if plain(mine) == plain(other) {
        return;
    }
    if mine["type"] != other["type"] || mine["type"].is_null() {
        walk.fault(
            path,
            format!(
                "two variants of an enum give this field different types ({} and {}), and a CRD has one type for a \
                 field; rename it in one of the variants",
                kind(mine),
                kind(other)
            ),
        );
        return;
    }
    let Some(fields) = mine.as_object_mut() else { return };
    match (fields.get("enum").and_then(Value::as_array), other["enum"].as_array()) {
        (Some(a), Some(b)) => {
            let mut values = a.clone();
            values.extend(b.iter().filter(|v| !a.contains(v)).cloned());
            fields.insert("enum".into(), json!(values));
        }
        _ => {
            fields.remove("enum");
        }
    }
    // What only one of them demands, the other must not be held to.
    let bounds = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "format",
        "default",
        "x-kubernetes-validations",
        "oneOf",
        "anyOf",
    ];
    for key in bounds {
        if fields.get(key) != other.get(key) {
            fields.remove(key);
        }
    }
    if other["nullable"] == json!(true) {
        fields.insert("nullable".into(), json!(true));
    }
    if other["x-kubernetes-preserve-unknown-fields"] == json!(true) {
        schema::untyped(fields);
    }
    if let Some(theirs) = other["properties"].as_object() {
        let required: Vec<String> = names(fields.get("required"))
            .into_iter()
            .filter(|r| names(other.get("required")).contains(r))
            .collect();
        fields.remove("required");
        if !required.is_empty() {
            fields.insert("required".into(), json!(required));
        }
        let own = fields.entry("properties").or_insert_with(|| json!({}));
        for (name, schema) in theirs {
            match own.get_mut(name) {
                Some(mine) => merge(mine, schema, &field(path, name), walk),
                None => own[name] = schema.clone(),
            }
        }
    } else if other["type"] == "object" {
        fields.remove("required");
    }
    for (key, inside) in [("items", "[]"), ("additionalProperties", "{}")] {
        match (fields.get_mut(key), other.get(key)) {
            (Some(mine), Some(theirs)) => merge(mine, theirs, &format!("{path}{inside}"), walk),
            (Some(_), None) | (None, Some(_)) => schema::untyped(fields),
            (None, None) => {}
        }
    }
}

fn kind(schema: &Value) -> &str {
    schema["type"].as_str().unwrap_or("anything")
}

/// Where kube's own rewriting of `raw` would panic: enums whose variants disagree about a field or their type.
pub(crate) fn too_much_for_kube(raw: &Value, path: &str, found: &mut Vec<String>) {
    let Some(fields) = raw.as_object() else { return };
    for keyword in ["oneOf", "anyOf"] {
        let variants: Vec<&Value> = fields
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|v| !is_null(v))
            .collect();
        if disagree(&variants) && !found.iter().any(|f| f == path) {
            found.push(path.to_owned());
        }
        for variant in variants {
            too_much_for_kube(variant, path, found);
        }
    }
    for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
        too_much_for_kube(schema, &field(path, name), found);
    }
    for (key, inside) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(schema) = fields.get(key) {
            too_much_for_kube(schema, &format!("{path}{inside}"), found);
        }
    }
}

fn disagree(variants: &[&Value]) -> bool {
    let mut properties = Map::new();
    let mut has_objects = false;
    let mut has_values = false;
    for variant in variants {
        has_objects |= variant.get("properties").is_some();
        has_values |= variant.get("enum").is_some() || variant.get("const").is_some();
        for (name, schema) in variant["properties"].as_object().into_iter().flatten() {
            if *properties.entry(name.clone()).or_insert_with(|| schema.clone()) != *schema {
                return true;
            }
        }
    }
    has_objects && has_values
}
