//! Schemas of custom resources as OpenAPI publishes them: with apiVersion, kind and metadata, int-or-string spelled
//! out, and for version 2 without what it, or kubectl reading it, can't bear.

use serde_json::{Map, Value, json};

use super::published::Dialect;
use crate::definition::{Resource, Version};

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
/// Levels that are published; a deeper schema was refused when its CRD was created.
const MAX_DEPTH: usize = 160;

/// Name under which a custom kind is published: `com.example.v1.Widget`.
pub(super) fn name(group: &str, version: &str, kind: &str) -> String {
    let reversed: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", reversed.join("."))
}

fn gvk(r: &Resource, v: &Version, kind: &str) -> Value {
    json!([{"group": *r.id.group, "kind": kind, "version": *v.gv.version}])
}

fn api_version() -> Value {
    let text = format!(
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized \
         schemas to the latest internal value, and may reject unrecognized values. More info: {CONVENTIONS}#resources"
    );
    json!({"description": text, "type": "string"})
}

fn kind() -> Value {
    let text = format!(
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from the \
         endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {CONVENTIONS}#types-kinds"
    );
    json!({"description": text, "type": "string"})
}

fn metadata(dialect: Dialect, name: &str, what: &str) -> Value {
    let mut beside = Map::new();
    let text = format!("Standard {what}'s metadata. More info: {CONVENTIONS}#metadata");
    beside.insert("description".into(), text.into());
    dialect.reference_with(name, beside)
}

fn add_resource_fields(out: &mut Map<String, Value>, dialect: Dialect) {
    let mut properties = match out.remove("properties") {
        Some(Value::Object(p)) => p,
        _ => Map::new(),
    };
    properties.insert("apiVersion".into(), api_version());
    properties.insert("kind".into(), kind());
    properties.insert("metadata".into(), metadata(dialect, OBJECT_META, "object"));
    out.insert("properties".into(), properties.into());
}

/// The schema of a custom resource's object.
pub(super) fn object(r: &Resource, v: &Version, source: &Value, dialect: Dialect) -> Value {
    let mut out = Map::new();
    let open = source["x-kubernetes-preserve-unknown-fields"] == true;
    if open && dialect == Dialect::V2 {
        // With any property named, kubectl would refuse all others.
        out.insert("type".into(), "object".into());
    } else {
        if let Value::Object(published) = schema(source, dialect, 0) {
            out = published;
        }
        add_resource_fields(&mut out, dialect);
    }
    out.insert("x-kubernetes-group-version-kind".into(), gvk(r, v, &r.kind));
    if dialect == Dialect::V3 && !v.selectable.is_empty() {
        let fields: Value = v.selectable.iter().map(|(label, _)| json!({"fieldPath": label})).collect();
        out.insert("x-kubernetes-selectable-fields".into(), fields);
    }
    Value::Object(out)
}

/// The schema of a list of custom resources.
pub(super) fn list(r: &Resource, v: &Version, dialect: Dialect) -> Value {
    let items = dialect.reference(&name(&r.id.group, &v.gv.version, &r.kind));
    let about = format!("List of {}. More info: {CONVENTIONS}", r.id.resource);
    json!({
        "description": format!("{} is a list of {}", r.list_kind, r.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": api_version(),
            "items": {"description": about, "type": "array", "items": items},
            "kind": kind(),
            "metadata": metadata(dialect, LIST_META, "list"),
        },
        "x-kubernetes-group-version-kind": gvk(r, v, &r.list_kind),
    })
}

fn schema(source: &Value, dialect: Dialect, depth: usize) -> Value {
    let Value::Object(source) = source else { return source.clone() };
    if depth > MAX_DEPTH {
        return json!({});
    }
    let flag = |key: &str| source.get(key) == Some(&Value::Bool(true));
    let mut out = Map::new();
    for (key, value) in source {
        let value = match key.as_str() {
            "properties" => match value {
                Value::Object(p) => {
                    p.iter().map(|(k, v)| (k.clone(), schema(v, dialect, depth + 1))).collect()
                }
                _ => continue,
            },
            "items" | "additionalProperties" => schema(value, dialect, depth + 1),
            _ if value.is_null() => continue,
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if flag("x-kubernetes-int-or-string") {
        unfold(&mut out);
    }
    if dialect == Dialect::V2 {
        reduce(&mut out, source);
    }
    // Version 2 publishes an open embedded resource without fields, for the same reason as an open root.
    if flag("x-kubernetes-embedded-resource")
        && !(dialect == Dialect::V2 && flag("x-kubernetes-preserve-unknown-fields"))
    {
        add_resource_fields(&mut out, dialect);
        let mut required = out.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|r| r == name) {
                required.push(name.into());
            }
        }
        out.insert("required".into(), required.into());
    }
    Value::Object(out)
}

/// Says what int-or-string means in plain OpenAPI, unless the schema does already.
fn unfold(out: &mut Map<String, Value>) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let first = out.get("allOf").and_then(|a| a.get(0)).and_then(|a| a.get("anyOf"));
    if out.get("anyOf") == Some(&either) || first == Some(&either) {
        return;
    }
    if !out.contains_key("anyOf") {
        out.insert("anyOf".into(), either);
        return;
    }
    let mut all = vec![json!({"anyOf": either})];
    all.extend(out.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default());
    out.insert("allOf".into(), all.into());
}

/// Drops what version 2 has no words for; untyped values must have neither items nor properties there.
fn reduce(out: &mut Map<String, Value>, source: &Map<String, Value>) {
    for key in ["allOf", "anyOf", "oneOf", "not"] {
        out.remove(key);
    }
    let is = |s: &Map<String, Value>, key: &str| s.get(key) == Some(&Value::Bool(true));
    let open = is(source, "x-kubernetes-preserve-unknown-fields");
    if is(source, "nullable") {
        for key in ["type", "nullable", "items", "properties"] {
            out.remove(key);
        }
    }
    if open {
        out.remove("items");
        out.remove("properties");
        if out.get("type").is_some_and(|t| t == "object") {
            out.remove("type");
        }
    }
    if !out.contains_key("items") && out.get("type").is_some_and(|t| t == "array") {
        out.remove("type");
    }
    let nullable = |name: &str| {
        source.get("properties").and_then(|p| p.get(name)).is_some_and(|p| p["nullable"] == true)
    };
    let values_nullable = source.get("additionalProperties").is_some_and(|a| a["nullable"] == true);
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|r| !r.as_str().is_some_and(nullable) && !values_nullable);
        if required.is_empty() {
            out.remove("required");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dialect: Dialect, source: Value, want: Value) {
        assert_eq!(schema(&source, dialect, 0), want, "{source}");
    }

    #[test]
    fn int_or_string_is_spelled_out() {
        let either = json!([{"type": "integer"}, {"type": "string"}]);
        check(
            Dialect::V3,
            json!({"x-kubernetes-int-or-string": true}),
            json!({"anyOf": either, "x-kubernetes-int-or-string": true}),
        );
        check(
            Dialect::V3,
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"minimum": 1}]}),
            json!({"allOf": [{"anyOf": either}], "anyOf": [{"minimum": 1}], "x-kubernetes-int-or-string": true}),
        );
        check(
            Dialect::V2,
            json!({"x-kubernetes-int-or-string": true}),
            json!({"x-kubernetes-int-or-string": true}),
        );
    }

    #[test]
    fn version_2_says_less() {
        check(
            Dialect::V2,
            json!({"type": "object", "required": ["a", "b"], "properties": {
                "a": {"type": "string", "nullable": true}, "b": {"type": "string", "oneOf": [{"minLength": 1}]}}}),
            json!({"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}}),
        );
        check(
            Dialect::V2,
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
        );
        check(
            Dialect::V2,
            json!({"type": "array", "items": {"type": "string"}, "nullable": true}),
            json!({}),
        );
    }

    #[test]
    fn names_are_reversed() {
        assert_eq!(
            name("zz-caches.example.com", "v1", "RedisCluster"),
            "com.example.zz-caches.v1.RedisCluster"
        );
    }
}
