//! From JSON and its schema to values: names escaped, times and bytes decoded, only what the schema names visible.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use homeostat_model::Timestamp;
use serde_json::Value;

use super::names;
use super::value::{Key, List, ListKind, Val};
use crate::golang;
use crate::node::{Kind, ListType, Node};

/// A value at a place of the schema.
pub(super) fn value(node: Option<&Node>, json: &Value) -> Val {
    let kind = node.map_or(Kind::Any, |n| n.kind);
    match json {
        Value::Null => Val::Null,
        Value::Bool(b) => Val::Bool(*b),
        Value::Number(n) => match (n.as_i64(), kind) {
            (Some(n), Kind::Number) => Val::Double(n as f64),
            (Some(n), _) => Val::Int(n),
            (None, Kind::Integer) if n.as_f64().is_some_and(|v| v.fract() == 0.0) => {
                Val::Int(n.as_f64().unwrap_or_default() as i64)
            }
            (None, _) => Val::Double(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => text(node.and_then(|n| n.format.as_deref()), s),
        Value::Array(items) => {
            let item = node.and_then(Node::items);
            let items = items.iter().map(|v| value(item, v)).collect();
            let kind = match node.map(|n| n.list_type) {
                Some(ListType::Set) => ListKind::Set,
                Some(ListType::Map) => ListKind::Map(node.map_or(&[][..], |n| &n.list_keys).into()),
                _ => ListKind::Plain,
            };
            Val::List(Arc::new(List { items, kind }))
        }
        Value::Object(map) => {
            let mut out = BTreeMap::new();
            for (name, json) in map {
                let child = node.and_then(|n| n.property(name));
                let is_metadata = node.is_some_and(|n| n.is_resource) && name == "metadata";
                let (key, value) = match (node, child) {
                    _ if is_metadata => (name.clone(), metadata(json)),
                    // Keys of maps are data and stay as they are.
                    (Some(n), None) if n.additional.is_some() => (name.clone(), value(n.additional(), json)),
                    (Some(n), None) if n.open || n.preserve => (name.clone(), value(None, json)),
                    (Some(_), None) => continue,
                    (Some(_), Some(_)) => (names::escape(name).into_owned(), value(child, json)),
                    (None, _) => (name.clone(), value(None, json)),
                };
                out.insert(Key::String(key.into()), value);
            }
            Val::Map(Arc::new(out))
        }
    }
}

/// Rules see the name of an object, and what it was generated from.
fn metadata(json: &Value) -> Val {
    let mut out = BTreeMap::new();
    for name in ["name", "generateName"] {
        if let Some(s) = json.get(name).and_then(Value::as_str) {
            out.insert(Key::String(name.into()), Val::text(s));
        }
    }
    Val::Map(Arc::new(out))
}

fn text(format: Option<&str>, s: &str) -> Val {
    let typed = match format {
        Some("date-time" | "datetime") => timestamp(s).map(Val::Timestamp),
        Some("date") => timestamp(&format!("{s}T00:00:00Z")).map(Val::Timestamp),
        Some("duration") => golang::duration(s).map(Val::Duration),
        Some("byte") => STANDARD.decode(s).ok().map(|b| Val::Bytes(b.into())),
        _ => None,
    };
    typed.unwrap_or_else(|| Val::text(s))
}

/// A value without a schema, in which fields that are called times are.
pub(super) fn timed(json: &Value) -> Val {
    match json {
        Value::Object(map) => {
            let field = |(name, json): (&String, &Value)| {
                let time = name.ends_with("Timestamp") || name.ends_with("Time");
                let at = json.as_str().filter(|_| time).and_then(timestamp);
                (Key::String(name.as_str().into()), at.map_or_else(|| timed(json), Val::Timestamp))
            };
            Val::Map(Arc::new(map.iter().map(field).collect()))
        }
        Value::Array(items) => Val::list(items.iter().map(timed).collect()),
        other => value(None, other),
    }
}

/// An RFC 3339 time.
pub(super) fn timestamp(s: &str) -> Option<Timestamp> {
    golang::time(s, false).ok()?;
    s.replacen(',', ".", 1).parse().ok()
}
