//! Decoding of built-in types: JSON types as Go's decoder checks them against its structs, unknown fields, and the
//! one way in which times, quantities and bytes are written.
//!
//! What Go drops on the way through its structs is dropped: null, and empty lists and maps that are not always
//! written. Invariant: decoding what was decoded changes nothing.

use std::fmt;

use homeostat_model::quantity::Quantity;
use homeostat_model::{Timestamp, clock};
use serde_json::{Map, Value};

use super::DecodeError;
use crate::golang;
use crate::node::{Kind, Node, Special};
use crate::path::Path;

/// Unknown fields that are told of; Go's decoder stops there, too.
const MAX_UNKNOWN: usize = 100;

/// Decodes `value` as the type of `node`. Returns the paths of unknown fields, which are dropped; they begin at
/// `path`.
pub(crate) fn built_in(node: &Node, value: &mut Value, path: &Path<'_>) -> Result<Vec<String>, DecodeError> {
    let mut walk = Walk { unknown: Vec::new(), first: None };
    walk.decode(node, value, path, Place { structure: "", fields: &Fields::Root })?;
    match walk.first {
        Some(error) => Err(DecodeError(error)),
        None => Ok(walk.unknown),
    }
}

/// Names of fields from the outermost struct; indexes and keys of maps don't count.
enum Fields<'a> {
    Root,
    Name(&'a Fields<'a>, &'a str),
}

impl fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Name(Self::Root, name) => f.write_str(name),
            Self::Name(parent, name) => write!(f, "{parent}.{name}"),
        }
    }
}

/// Where the decoder is, as errors print it: the innermost struct, and the fields that led there.
#[derive(Clone, Copy)]
struct Place<'a> {
    structure: &'a str,
    fields: &'a Fields<'a>,
}

impl Place<'_> {
    fn cannot(&self, found: &str, go: &str) -> String {
        if self.structure.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {go}");
        }
        format!(
            "json: cannot unmarshal {found} into Go struct field {}.{} of type {go}",
            self.structure, self.fields
        )
    }
}

struct Walk {
    unknown: Vec<String>,
    /// The first mismatch: Go decodes on, and reports it unless something worse comes.
    first: Option<String>,
}

/// What Go calls a JSON value that it can't take.
fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type of a node, as far as a schema tells.
fn go_type(node: &Node) -> String {
    if let Some(name) = &node.go {
        return name.to_string();
    }
    match node.kind {
        Kind::String if node.format.as_deref() == Some("byte") => "[]uint8".into(),
        Kind::String => "string".into(),
        Kind::Integer => node.format.as_deref().unwrap_or("int64").into(),
        Kind::Number => "float64".into(),
        Kind::Boolean => "bool".into(),
        Kind::Array => format!("[]{}", node.items().map_or("interface {}".into(), go_type)),
        Kind::Object => format!("map[string]{}", node.additional().map_or("interface {}".into(), go_type)),
        Kind::Any | Kind::IntOrString => "interface {}".into(),
    }
}

/// What Go's zero value of a node's type writes; it stands where a list or map holds null.
fn zero(node: &Node) -> Value {
    match (node.special, node.kind) {
        (Special::Json | Special::Raw | Special::FieldsV1 | Special::Time | Special::MicroTime, _) => {
            Value::Null
        }
        (Special::Quantity, _) => "0".into(),
        (Special::Duration, _) => "0s".into(),
        (_, Kind::Any) => Value::Null,
        (_, Kind::Object) => Value::Object(Map::new()),
        (_, Kind::Array) => Value::Array(Vec::new()),
        (_, Kind::String) => "".into(),
        (_, Kind::Integer | Kind::Number | Kind::IntOrString) => 0.into(),
        (_, Kind::Boolean) => false.into(),
    }
}

impl Walk {
    /// `Err` is an error that ends decoding at once, as those of types with a decoder of their own do.
    fn decode(
        &mut self,
        node: &Node,
        value: &mut Value,
        path: &Path<'_>,
        place: Place<'_>,
    ) -> Result<(), DecodeError> {
        if value.is_null() {
            *value = zero(node);
            return Ok(());
        }
        let stop = |text: String| Err(DecodeError(text));
        match node.special {
            Special::None => {}
            Special::Raw | Special::FieldsV1 => return Ok(()),
            Special::Json => return self.json(node, value, place),
            Special::Quantity => {
                return match Quantity::from_value(value) {
                    Ok(quantity) => {
                        let text = quantity.to_string();
                        if value.as_str() != Some(&text) {
                            *value = text.into();
                        }
                        Ok(())
                    }
                    Err(error) => stop(error.to_string()),
                };
            }
            Special::Time | Special::MicroTime => {
                let micro = node.special == Special::MicroTime;
                let Some(text) = value.as_str() else { return stop(place.cannot(found(value), "string")) };
                return match golang::time(text, micro) {
                    Ok(()) => {
                        if let Some(written) = written_time(text, micro) {
                            *value = written.into();
                        }
                        Ok(())
                    }
                    Err(error) => stop(error),
                };
            }
            Special::Duration => {
                let Some(text) = value.as_str() else { return stop(place.cannot(found(value), "string")) };
                if golang::duration(text).is_none() {
                    let text = homeostat_model::field::quote(text);
                    return stop(format!("time: invalid duration {text}"));
                }
                return Ok(());
            }
        }
        match (node.kind, &mut *value) {
            (Kind::Any, _) | (Kind::Boolean, Value::Bool(_)) | (Kind::Number, Value::Number(_)) => Ok(()),
            (Kind::IntOrString, Value::String(_)) => Ok(()),
            (Kind::IntOrString, Value::Number(n)) => match n.as_i64().map(i32::try_from) {
                Some(Ok(_)) => Ok(()),
                _ => stop(place.cannot(&format!("number {n}"), "int32")),
            },
            (Kind::IntOrString, other) => stop(place.cannot(found(other), "int32")),
            (Kind::Integer, Value::Number(n)) => {
                let fits = n
                    .as_i64()
                    .is_some_and(|n| node.format.as_deref() != Some("int32") || i32::try_from(n).is_ok());
                if !fits {
                    let text = place.cannot(&format!("number {n}"), &go_type(node));
                    self.first.get_or_insert(text);
                }
                Ok(())
            }
            (Kind::String, Value::String(text)) if node.format.as_deref() == Some("byte") => {
                if let Some(at) = golang::base64_error(text) {
                    return stop(format!("illegal base64 data at input byte {at}"));
                }
                text.retain(|c| !matches!(c, '\n' | '\r'));
                Ok(())
            }
            (Kind::String, Value::String(_)) => Ok(()),
            (Kind::Array, Value::Array(items)) => {
                if let Some(item) = node.items() {
                    for (i, value) in items.iter_mut().enumerate() {
                        self.decode(item, value, &path.index(i), place)?;
                    }
                }
                Ok(())
            }
            (Kind::Object, Value::Object(map)) => self.object(node, map, path, place),
            (_, other) => {
                let text = place.cannot(found(other), &go_type(node));
                self.first.get_or_insert(text);
                Ok(())
            }
        }
    }

    fn object(
        &mut self,
        node: &Node,
        map: &mut Map<String, Value>,
        path: &Path<'_>,
        place: Place<'_>,
    ) -> Result<(), DecodeError> {
        if let Some(child) = node.additional() {
            for (name, value) in map.iter_mut() {
                self.decode(child, value, &path.field(name), place)?;
            }
            return Ok(());
        }
        let structure = node.go.as_deref().map_or(place.structure, struct_name);
        let mut drop_some = false;
        for (name, value) in map.iter_mut() {
            let Some(child) = node.property(name) else {
                if !node.preserve {
                    drop_some = true;
                    if self.unknown.len() < MAX_UNKNOWN {
                        self.unknown.push(path.field(name).to_string());
                    }
                }
                continue;
            };
            if value.is_null() {
                drop_some = true;
                continue;
            }
            let fields = Fields::Name(place.fields, name);
            self.decode(child, value, &path.field(name), Place { structure, fields: &fields })?;
            drop_some |= is_empty(node, name, child, value);
        }
        if drop_some {
            map.retain(|name, value| match node.property(name) {
                None => node.preserve,
                Some(child) => !value.is_null() && !is_empty(node, name, child, value),
            });
        }
        Ok(())
    }

    /// Types that hold schemas or any JSON. Schemas inside are decoded as schemas; nobody is told of what they
    /// don't know.
    fn json(&mut self, node: &Node, value: &mut Value, place: Place<'_>) -> Result<(), DecodeError> {
        let Some(schema) = node.inner.as_ref().map(crate::node::Child::node) else { return Ok(()) };
        let mut quiet = Walk { unknown: Vec::new(), first: None };
        match value {
            Value::Object(_) => quiet.decode(schema, value, &Path::Root, place)?,
            Value::Array(items) => {
                for item in items.iter_mut().filter(|i| i.is_object()) {
                    quiet.decode(schema, item, &Path::Root, place)?;
                }
            }
            _ => {}
        }
        match quiet.first {
            Some(error) => Err(DecodeError(error)),
            None => Ok(()),
        }
    }
}

/// `PodSpec` of `v1.PodSpec`.
fn struct_name(go: &str) -> &str {
    go.rsplit('.').next().unwrap_or(go)
}

/// Whether Go leaves the field out when it writes the object.
fn is_empty(parent: &Node, name: &str, child: &Node, value: &Value) -> bool {
    let empty = match value {
        Value::Array(items) => items.is_empty() && child.kind == Kind::Array,
        Value::Object(map) => map.is_empty() && child.additional.is_some(),
        // Object metadata has no pointers to texts, so an empty one is none.
        Value::String(text) => text.is_empty() && parent.is_object_meta(),
        Value::Number(n) => parent.is_object_meta() && name == "generation" && n.as_i64() == Some(0),
        _ => false,
    };
    empty && !parent.always.iter().any(|a| a == name)
}

/// The time as `metav1.Time` (whole seconds) or `metav1.MicroTime` writes it; `None` if it is written so already.
fn written_time(text: &str, micro: bool) -> Option<String> {
    let time: Timestamp = text.replacen(',', ".", 1).parse().ok()?;
    let written = if micro { clock::micros(time) } else { clock::seconds(time) };
    (written != text).then_some(written)
}
