//! Built-in definitions as OpenAPI publishes them: references in the document's form, unions spelled out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::builtin;

/// The two versions of OpenAPI, which differ in where definitions are and what schemas may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    V2,
    V3,
}

impl Dialect {
    /// A reference to a definition.
    pub(super) fn reference(self, name: &str) -> Value {
        match self {
            Self::V2 => json!({"$ref": format!("#/definitions/{name}")}),
            Self::V3 => json!({"$ref": format!("#/components/schemas/{name}")}),
        }
    }

    /// A reference with something beside it, which only fits around it.
    pub(super) fn reference_with(self, name: &str, beside: Map<String, Value>) -> Value {
        if beside.is_empty() {
            return self.reference(name);
        }
        let mut out = beside;
        match self {
            Self::V2 => {
                if let Value::Object(reference) = self.reference(name) {
                    out.extend(reference);
                }
            }
            Self::V3 => {
                out.insert("allOf".into(), json!([self.reference(name)]));
            }
        }
        Value::Object(out)
    }
}

/// The published form of a built-in definition; the names that it refers to are added to `refs`.
pub(super) fn definition(name: &str, dialect: Dialect, refs: &mut BTreeSet<String>) -> Option<Value> {
    let source: Value = serde_json::from_str(builtin::definitions().source(name)?).ok()?;
    Some(match name.rsplit('.').next().unwrap_or_default() {
        "IntOrString" => match dialect {
            Dialect::V2 => json!({"type": "string", "format": "int-or-string"}),
            Dialect::V3 => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
        },
        "Quantity" => match dialect {
            Dialect::V2 => json!({"type": "string"}),
            Dialect::V3 => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        },
        _ => schema(&source, dialect, refs),
    })
}

fn schema(source: &Value, dialect: Dialect, refs: &mut BTreeSet<String>) -> Value {
    let Value::Object(source) = source else { return source.clone() };
    let mut out = Map::new();
    for (key, value) in source {
        let value = match key.as_str() {
            "$ref" | "x-kubernetes-preserve-unknown-fields" | "x-kubernetes-int-or-string" => continue,
            "properties" => match value {
                Value::Object(p) => p.iter().map(|(k, v)| (k.clone(), schema(v, dialect, refs))).collect(),
                other => other.clone(),
            },
            "items" | "additionalProperties" | "not" => schema(value, dialect, refs),
            "allOf" | "anyOf" | "oneOf" => match value {
                Value::Array(list) => list.iter().map(|v| schema(v, dialect, refs)).collect(),
                other => other.clone(),
            },
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    match source.get("$ref").and_then(Value::as_str) {
        Some(name) => {
            refs.insert(name.to_owned());
            dialect.reference_with(name, out)
        }
        None => Value::Object(out),
    }
}

/// Built-in definitions with all that they refer to, by name.
pub(super) fn closure(roots: BTreeSet<String>, dialect: Dialect) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let mut pending = roots;
    while let Some(name) = pending.pop_first() {
        if found.contains_key(&name) {
            continue;
        }
        let mut refs = BTreeSet::new();
        if let Some(published) = definition(&name, dialect, &mut refs) {
            found.insert(name, published);
            pending.extend(refs);
        }
    }
    found
}

/// Name of the built-in definition of a kind, if there is one.
pub(super) fn name_of(group: &str, version: &str, kind: &str) -> Option<String> {
    let prefix = match group {
        "" => "io.k8s.api.core",
        "apiextensions.k8s.io" => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
        "apiregistration.k8s.io" => "io.k8s.kube-aggregator.pkg.apis.apiregistration",
        _ => "",
    };
    let name = if prefix.is_empty() {
        // `rbac.authorization.k8s.io` is `rbac`, `flowcontrol.apiserver.k8s.io` is `flowcontrol`.
        let short = group.split('.').next().unwrap_or_default();
        format!("io.k8s.api.{short}.{version}.{kind}")
    } else {
        format!("{prefix}.{version}.{kind}")
    };
    builtin::definitions().source(&name).is_some().then_some(name)
}
