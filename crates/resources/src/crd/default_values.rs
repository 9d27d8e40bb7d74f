//! Defaults within a schema must be values that the schema accepts and would not prune.
//!
//! Each default is judged by the schema it stands in, by the same code that judges objects.

use homeostat_model::field::{Error, child, key};
use homeostat_schema::Schema;
use serde_json::Value;

use super::props::{Props, any, flag, items, named, object, some};

/// Errors of all defaults within a structural schema.
pub(crate) fn validate(path: &str, schema: &Props, pruned: bool) -> Vec<Error> {
    let mut errors = Vec::new();
    if any(schema, &|s| some(s, "default").is_some()) {
        walk(path, schema, pruned, &mut errors);
    }
    errors
}

/// Whether a default has fields that pruning would drop.
pub(crate) fn has_unpruned(schema: &Props) -> bool {
    validate("", schema, true).iter().any(|e| e.detail == UNKNOWN)
}

const UNKNOWN: &str = "must not have unknown fields";

// Defaults below additionalProperties don't exist: structural schemas forbid them there.
fn walk(path: &str, s: &Props, pruned: bool, errors: &mut Vec<Error>) {
    if let Some(default) = some(s, "default") {
        check(&child(path, "default"), s, default, pruned, errors);
    }
    if let Some(items) = items(s) {
        walk(&child(path, "items"), items, pruned, errors);
    }
    for (name, property) in named(s, "properties") {
        walk(&key(&child(path, "properties"), name), property, pruned, errors);
    }
}

fn check(path: &str, s: &Props, default: &Value, pruned: bool, errors: &mut Vec<Error>) {
    if pruned && has_unknown(s, default) {
        errors.push(Error::invalid(path, default.clone(), UNKNOWN));
    }
    // A pattern that doesn't compile is told where it stands.
    let Ok(schema) = Schema::compile(&Value::Object(s.clone())) else { return };
    for mut error in schema.validate(default, None) {
        error.path = match error.path.as_str() {
            "" | "<nil>" => path.to_owned(),
            inner if inner.starts_with('[') => format!("{path}{inner}"),
            inner => child(path, inner),
        };
        errors.push(error);
    }
}

/// Whether pruning would drop something.
fn has_unknown(s: &Props, value: &Value) -> bool {
    match value {
        Value::Array(values) => items(s).is_some_and(|items| values.iter().any(|v| has_unknown(items, v))),
        Value::Object(fields) => fields.iter().any(|(name, v)| {
            if flag(s, "x-kubernetes-embedded-resource")
                && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")
            {
                return false;
            }
            let property = object(s, "properties").and_then(|p| object(p, name));
            match (property, some(s, "additionalProperties")) {
                (Some(property), _) => has_unknown(property, v),
                (None, Some(Value::Object(additional))) => has_unknown(additional, v),
                (None, Some(Value::Bool(true))) => false,
                (None, _) => !flag(s, "x-kubernetes-preserve-unknown-fields"),
            }
        }),
        _ => false,
    }
}
