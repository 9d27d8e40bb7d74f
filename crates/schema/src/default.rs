//! Filling in defaults.
//!
//! A default is for a field that is absent, or null where null is no value; inside what was filled in, the
//! defaults of nested fields apply in turn. Invariant: defaulting twice changes nothing more.

use serde_json::{Map, Value};

use crate::node::Node;

/// Fills in the defaults of `node` below `value`.
pub(crate) fn fill(node: &Node, value: &mut Value) {
    if !node.defaults_below {
        return;
    }
    match value {
        Value::Object(map) => fill_object(node, map),
        Value::Array(items) => {
            if let Some(item) = node.items() {
                for value in items {
                    replace_null(item, value);
                    fill(item, value);
                }
            }
        }
        _ => {}
    }
}

fn fill_object(node: &Node, map: &mut Map<String, Value>) {
    for (name, child) in &node.properties {
        // A definition that is only referred to has no default of its own; those beside a `$ref` are compiled in.
        if child.may_have_default()
            && let child = child.node()
            && let Some(default) = &child.default
            && map.get(&**name).is_none_or(|v| v.is_null() && !child.nullable)
        {
            map.insert(name.to_string(), default.clone());
        }
    }
    for (name, value) in map.iter_mut() {
        if node.is_resource && name == "metadata" {
            if let Some(rules) = &node.metadata_rules {
                fill(rules, value);
            }
        } else if let Some(child) = node.property(name) {
            fill(child, value);
        } else if let Some(child) = node.additional() {
            replace_null(child, value);
            fill(child, value);
        }
    }
}

fn replace_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}
