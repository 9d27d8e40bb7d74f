//! Objects made of schemas: a valid one that fills every field, and one with a value of the wrong type.
//!
//! It knows the keywords that published CRDs use without rules in CEL. Invariant: the same schema, the same object.

use serde_json::{Map, Value, json};

/// A value that a schema takes, with every property set.
pub fn valid(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|e| e.first()) {
        return first.clone();
    }
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => {
            let least = schema["minimum"].as_f64().unwrap_or(1.0).max(1.0);
            json!(least as i64)
        }
        Some("string") => match schema["format"].as_str() {
            Some("date-time") => json!("2026-01-02T03:04:05Z"),
            Some("byte") => json!("YQ=="),
            _ => json!("x".repeat(schema["minLength"].as_u64().unwrap_or(1).max(1) as usize)),
        },
        Some("array") => json!([valid(&schema["items"])]),
        Some("object") => object(schema),
        _ => json!({}),
    }
}

fn object(schema: &Value) -> Value {
    let mut out = Map::new();
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        out.insert(name.clone(), valid(of));
    }
    if schema["additionalProperties"].is_object() {
        out.insert("key".into(), valid(&schema["additionalProperties"]));
    }
    Value::Object(out)
}

/// The same with the first scalar replaced by a list of lists, which no field of scalars takes.
pub fn broken(valid: &Value) -> Value {
    let mut out = valid.clone();
    assert!(break_first(&mut out), "there is no scalar in {valid}");
    out
}

fn break_first(value: &mut Value) -> bool {
    match value {
        Value::Object(map) => map.values_mut().any(break_first),
        Value::Array(items) => items.iter_mut().any(break_first),
        Value::Null => false,
        scalar => {
            *scalar = json!([[]]);
            true
        }
    }
}
