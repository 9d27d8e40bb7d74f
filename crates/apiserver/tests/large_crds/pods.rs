//! The types of pods as generators of CRDs write them out: no references, descriptions everywhere, unions spelled.

use homeostat_resources::builtin;
use serde_json::{Map, Value, json};

/// A core type such as `PodSpec`, whole.
pub fn core(kind: &str) -> Value {
    expand(&format!("io.k8s.api.core.v1.{kind}"))
}

fn expand(name: &str) -> Value {
    match name.rsplit('.').next().unwrap() {
        "ObjectMeta" => {
            return json!({"type": "object", "description": text("metadata"), "properties": {
                "name": string(), "namespace": string(),
                "labels": map(string()), "annotations": map(string()),
                "finalizers": {"type": "array", "items": string()},
            }});
        }
        "Quantity" => {
            return json!({
                "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
                "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
            });
        }
        "IntOrString" => {
            return json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true});
        }
        _ => {}
    }
    let source = builtin::definitions().source(name).unwrap_or_else(|| panic!("no {name}"));
    inline(serde_json::from_str(source).unwrap())
}

fn inline(mut schema: Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return expand(name);
    }
    let Some(map) = schema.as_object_mut() else { return schema };
    map.retain(|k, _| !k.starts_with("x-kubernetes-patch") && k != "x-kubernetes-unions");
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        for (name, of) in properties.iter_mut() {
            *of = inline(of.take());
            describe(name, of);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(of) = map.get_mut(key).filter(|v| v.is_object()) {
            *of = inline(of.take());
        }
    }
    keys_are_set(map);
    schema
}

fn describe(name: &str, schema: &mut Value) {
    if let Some(map) = schema.as_object_mut() {
        map.insert("description".into(), text(name).into());
    }
}

/// Keys of list maps must be required or have a default.
fn keys_are_set(list: &mut Map<String, Value>) {
    let keys = list.get("x-kubernetes-list-map-keys").and_then(Value::as_array).cloned().unwrap_or_default();
    for key in keys.iter().filter_map(Value::as_str) {
        let items = &mut list["items"];
        let required = items["required"].as_array().is_some_and(|r| r.iter().any(|k| k == key));
        let field = &mut items["properties"][key];
        if !required && field.get("default").is_none() {
            field["default"] = if field["type"] == "string" { json!("") } else { json!(0) };
        }
    }
}

fn text(name: &str) -> String {
    format!(
        "What {name} says of the pod.\nMore of it is told where the pod's own type is described; it may be left out."
    )
}

pub fn string() -> Value {
    json!({"type": "string"})
}

pub fn map(of: Value) -> Value {
    json!({"type": "object", "additionalProperties": of})
}
