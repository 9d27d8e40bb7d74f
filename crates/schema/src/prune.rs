//! Dropping what a schema doesn't name: unknown fields, and nulls that no field may hold.
//!
//! The object's own apiVersion, kind and metadata, and those of embedded resources, are left alone: their fields
//! are [`crate::decode`]'s business. Invariant: pruning twice drops nothing more.

use serde_json::{Map, Value};

use crate::node::Node;
use crate::path::Path;

/// Drops unknown fields and returns their paths, sorted: `spec.x`, `spec.list[0].y`.
pub(crate) fn unknown(root: &Node, object: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    prune(Some(root), object, &Path::Root, &mut dropped);
    dropped.sort();
    dropped
}

pub(crate) fn is_resource_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

/// `node` is `None` below `additionalProperties: true` and lists without items: nothing is named there.
fn prune(node: Option<&Node>, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    if node.is_some_and(|n| n.preserve) {
        return keep_unknown(node, value, path, dropped);
    }
    match value {
        Value::Object(map) => prune_object(node, map, path, dropped),
        Value::Array(items) => {
            let item = node.and_then(Node::items);
            for (i, value) in items.iter_mut().enumerate() {
                prune(item, value, &path.index(i), dropped);
            }
        }
        _ => {}
    }
}

/// A node at which unknown fields stay, although what it names is still pruned inside.
fn keep_unknown(node: Option<&Node>, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    let Some(node) = node else { return };
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if node.is_resource && is_resource_field(name) {
                    continue;
                }
                match node.property(name) {
                    Some(child) => prune(Some(child), value, &path.field(name), dropped),
                    None => match node.additional() {
                        Some(child) => prune(Some(child), value, &path.field(name), dropped),
                        None if node.open => prune(None, value, &path.field(name), dropped),
                        None => {}
                    },
                }
            }
        }
        Value::Array(items) => {
            for (i, value) in items.iter_mut().enumerate() {
                keep_unknown(node.items(), value, &path.index(i), dropped);
            }
        }
        _ => {}
    }
}

fn prune_object(
    node: Option<&Node>,
    map: &mut Map<String, Value>,
    path: &Path<'_>,
    dropped: &mut Vec<String>,
) {
    let Some(node) = node else {
        dropped.extend(map.keys().map(|name| path.field(name).to_string()));
        map.clear();
        return;
    };
    let mut unknown = false;
    for (name, value) in map.iter_mut() {
        if node.is_resource && is_resource_field(name) {
            continue;
        }
        if let Some(child) = node.property(name) {
            prune(Some(child), value, &path.field(name), dropped);
        } else if let Some(child) = node.additional() {
            prune(Some(child), value, &path.field(name), dropped);
        } else if node.open {
            prune(None, value, &path.field(name), dropped);
        } else {
            unknown = true;
            dropped.push(path.field(name).to_string());
        }
    }
    if unknown {
        let known = |name: &str| node.is_resource && is_resource_field(name) || node.property(name).is_some();
        map.retain(|name, _| known(name));
    }
}

/// Drops nulls where the schema neither allows null nor has a default to put in its place. In lists they stay, to
/// be refused by validation.
pub(crate) fn nulls(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let mut found = false;
            for (name, value) in map.iter_mut() {
                if let Some(child) = node.field(name) {
                    if value.is_null() {
                        found |= is_unwanted(child);
                    } else if !(node.is_resource && name == "metadata") {
                        nulls(child, value);
                    }
                }
            }
            if found {
                map.retain(|name, value| !(value.is_null() && node.field(name).is_some_and(is_unwanted)));
            }
        }
        Value::Array(items) => {
            if let Some(item) = node.items() {
                items.iter_mut().for_each(|value| nulls(item, value));
            }
        }
        _ => {}
    }
}

fn is_unwanted(node: &Node) -> bool {
    !node.nullable && node.default.is_none()
}
