//! Decoding of custom resources: metadata as real metadata, unknown fields dropped, nulls dropped where they are no
//! value, embedded resources' metadata treated like the object's own.
//!
//! Types of other fields are not checked here: validation does that.

use homeostat_model::field::Error;
use serde_json::{Map, Value};

use super::{DecodeError, built_in};
use crate::compile::object_meta;
use crate::node::Node;
use crate::path::Path;
use crate::prune;

/// Decodes a custom resource in place. Returns paths of what was dropped, in the reference's order: metadata, then
/// the fields that the schema doesn't know, then embedded metadata.
pub(crate) fn custom(root: &Node, object: &mut Value) -> Result<Vec<String>, DecodeError> {
    let mut unknown = Vec::new();
    if let Some(metadata) = object.get_mut("metadata") {
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        unknown = built_in(object_meta(), metadata, &Path::Root.field("metadata"))?;
    }
    unknown.extend(prune::unknown(root, object));
    prune::nulls(root, object);
    let mut embedded = Vec::new();
    coerce(root, object, &Path::Root, &mut embedded)?;
    embedded.sort();
    unknown.extend(embedded);
    Ok(unknown)
}

fn coerce(
    node: &Node,
    value: &mut Value,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    if !node.embedded_below {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            if node.embedded && !path.is_root() {
                resource(map, path, unknown)?;
            }
            for (name, value) in map.iter_mut() {
                if node.is_resource && name == "metadata" {
                    continue;
                }
                if let Some(child) = node.property(name) {
                    coerce(child, value, &path.field(name), unknown)?;
                } else if let Some(child) = node.additional() {
                    coerce(child, value, &path.key(name), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(item) = node.items() {
                for (i, value) in items.iter_mut().enumerate() {
                    coerce(item, value, &path.index(i), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn resource(
    map: &mut Map<String, Value>,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    let invalid = |name: &str, value: Value, why: &str| {
        Err(DecodeError(Error::invalid(path.field(name).to_string(), value, why).to_string()))
    };
    for name in ["apiVersion", "kind"] {
        if let Some(value) = map.get(name).filter(|v| !v.is_string()) {
            return invalid(name, value.clone(), "must be a string");
        }
    }
    let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    match built_in(object_meta(), metadata, &path.field("metadata")) {
        Ok(paths) => {
            unknown.extend(paths);
            Ok(())
        }
        // The metadata may be decoded in part, but not in what the error is about; the reference shows all of it.
        Err(why) => invalid("metadata", metadata.clone(), &why.0),
    }
}
