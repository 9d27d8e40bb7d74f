//! Rules of embedded resources: apiVersion and kind must be there, metadata must be good metadata.
//!
//! The object's own apiVersion, kind and metadata are the API server's business.

use homeostat_model::field::Error;
use homeostat_model::validation::{self, Meta, dns1035_label, path_segment_name};
use serde_json::{Map, Value};

use crate::node::Node;
use crate::path::Path;

pub(super) fn validate(node: &Node, value: &Value, path: &Path<'_>, root: bool, errors: &mut Vec<Error>) {
    if !node.embedded_below {
        return;
    }
    match value {
        Value::Object(fields) => {
            if node.embedded && !root {
                resource(fields, path, errors);
            }
            for (name, value) in fields {
                if node.is_resource && name == "metadata" {
                    continue;
                }
                if let Some(child) = node.property(name) {
                    validate(child, value, &path.field(name), false, errors);
                } else if let Some(child) = node.additional() {
                    validate(child, value, &path.key(name), false, errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = node.items() {
                for (i, value) in items.iter().enumerate() {
                    validate(item, value, &path.index(i), false, errors);
                }
            }
        }
        _ => {}
    }
}

fn resource(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<Error>) {
    type Rule = fn(&str) -> Option<String>;
    let checks: [(&str, Rule); 2] = [("apiVersion", api_version), ("kind", kind)];
    for (name, rule) in checks {
        let at = || path.field(name).to_string();
        match fields.get(name) {
            None => errors.push(Error::required(at(), "")),
            Some(Value::String(s)) if s.is_empty() => {
                errors.push(Error::invalid(at(), "", "must not be empty"));
            }
            Some(Value::String(s)) => {
                if let Some(why) = rule(s) {
                    errors.push(Error::invalid(at(), s.as_str(), why));
                }
            }
            Some(other) => errors.push(Error::invalid(at(), other.clone(), "must be a string")),
        }
    }
    if let Some(metadata) = fields.get("metadata").filter(|m| m.is_object()) {
        let mut metadata = metadata.clone();
        if metadata["name"].as_str().unwrap_or_default().is_empty() {
            // An embedded object needs no name; this one is good.
            metadata["name"] = "fakename".into();
        }
        let namespaced = !metadata["namespace"].as_str().unwrap_or_default().is_empty();
        let rules = Meta { namespaced, builtin: false, name: &path_segment_name };
        errors.extend(validation::object_meta(&metadata, &path.field("metadata").to_string(), &rules));
    }
}

fn api_version(s: &str) -> Option<String> {
    (s.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {s}"))
}

fn kind(s: &str) -> Option<String> {
    let why = dns1035_label(&s.to_lowercase(), false);
    (!why.is_empty()).then(|| format!("may have mixed case, but should otherwise match: {}", why.join(",")))
}
