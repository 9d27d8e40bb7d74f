//! Strategic merge patch: lists of built-in types merge by the keys that their definitions name.
//!
//! Directives: `$patch` (`replace`, `delete`; `merge` is refused), `$retainKeys`, `$deleteFromPrimitiveList/x` and
//! `$setElementOrder/x`. Custom resources don't have it. The algorithm and its texts are apimachinery's
//! `strategicpatch`, which merges into a live object with nulls dropped.

mod lists;
mod lookup;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::lookup::Fields;
use super::PatchError;
use crate::node::Node;
use crate::typed::go;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// The document with the patch merged into it, under the definition of the document's type.
pub fn strategic(document: &Value, patch: &Value, node: &Node) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            super::json_type(patch)
        )));
    };
    let document = document.as_object().cloned().unwrap_or_default();
    merge_map(document, patch.clone(), Fields::of(Some(node))).map(Value::Object)
}

fn failed(text: impl Into<String>) -> PatchError {
    PatchError::Failed(text.into())
}

fn bad_order() -> PatchError {
    PatchError::Malformed("invalid patch format of setElementOrder list".to_owned())
}

fn bad_type(expected: &str, actual: &Value) -> PatchError {
    let actual = match actual {
        Value::Null => "%!s(<nil>)",
        other => go::type_name(other),
    };
    failed(format!("expected a {expected}, but received a {actual}"))
}

fn no_merge_key(map: &Map<String, Value>, key: &str) -> PatchError {
    let map = go::v(&Value::Object(map.clone()));
    failed(format!("map: {map} does not contain declared merge key: {key}"))
}

fn bad_directive(directive: &Value, map: &Map<String, Value>) -> PatchError {
    let map = go::v(&Value::Object(map.clone()));
    let directive = match directive {
        Value::String(s) => s.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        other => format!("%!s({}={})", go::type_name(other), go::v(other)),
    };
    failed(format!("unknown patch type: {directive} in map: {map}"))
}

fn merge_map(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    fields: Fields<'_>,
) -> Result<Map<String, Value>, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(bad_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_orders(&mut original, &mut patch, fields)?;
    for (key, value) in patch {
        if key.starts_with(DELETE_FROM) {
            delete_from(&mut original, &key, value, fields)?;
            continue;
        }
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        match (original.get_mut(&key), value) {
            (Some(Value::Object(current)), Value::Object(value)) => {
                let field = fields.map(&key)?;
                let merged = merge_map(std::mem::take(current), value, field)?;
                original.insert(key, Value::Object(merged));
            }
            (Some(Value::Array(current)), Value::Array(value)) => {
                let field = fields.list(&key)?;
                let current = std::mem::take(current);
                original.insert(key, Value::Array(lists::merge(current, value, &field)?));
            }
            // New, or of another type than before.
            (_, value) => match without_directives(without_nulls(value)) {
                Some(value) => {
                    original.insert(key, value);
                }
                None => {
                    original.remove(&key);
                }
            },
        }
    }
    Ok(original)
}

/// `$retainKeys`: all fields that it doesn't name go.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let Value::Array(retained) = retained else { return Err(bad()) };
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let named = |key: &str| retained.contains(key);
    for (key, value) in patch.iter() {
        let counts = !value.is_null() && !key.starts_with(DELETE_FROM) && !key.starts_with(SET_ORDER);
        if counts && !named(key) {
            return Err(bad());
        }
    }
    original.retain(|key, _| named(key));
    Ok(())
}

/// `$setElementOrder/x`: merges the list `x` and gives it this order.
fn set_orders(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    fields: Fields<'_>,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|k| k.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let Value::Array(order) = order else { return Err(bad_type("[]interface {}", &order)) };
        let key = match directive.split_once('/') {
            Some((SET_ORDER, key)) => key,
            _ => return Err(bad_order()),
        };
        let current = match original.get(key) {
            None => None,
            Some(Value::Array(list)) => Some(list),
            Some(other) => return Err(bad_type("[]interface {}", other)),
        };
        let changes = match patch.get(key) {
            None => None,
            Some(Value::Array(list)) => Some(list),
            Some(other) => return Err(bad_type("[]interface {}", other)),
        };
        let field = fields.list(key)?;
        let none = Vec::new();
        lists::check_order(changes.unwrap_or(&none), &order, field.key)?;
        let merged = match (current, changes) {
            (None, None) => continue,
            (Some(current), None) => current.clone(),
            (None, Some(changes)) => changes.iter().cloned().filter_map(without_directives).collect(),
            (Some(current), Some(changes)) => lists::merge(current.clone(), changes.clone(), &field)?,
        };
        let current = current.unwrap_or(&none);
        lists::kind_of(current.iter().chain(changes.unwrap_or(&none)), &[current, changes.unwrap_or(&none)])?;
        let ordered = lists::order(merged, &order, current, field.key)?;
        original.insert(key.to_owned(), Value::Array(ordered));
        patch.remove(key);
    }
    Ok(())
}

/// `$deleteFromPrimitiveList/x`: takes values out of the list `x`.
fn delete_from(
    original: &mut Map<String, Value>,
    directive: &str,
    values: Value,
    fields: Fields<'_>,
) -> Result<(), PatchError> {
    let key = match directive.split_once('/') {
        Some((DELETE_FROM, key)) => key,
        _ => return Err(PatchError::Malformed("invalid patch format of primitive list".to_owned())),
    };
    match (original.get_mut(key), values) {
        (Some(_), Value::Null) => {
            original.remove(key);
        }
        (Some(Value::Array(current)), Value::Array(values)) => {
            let field = fields.list(key)?;
            if current.is_empty() && values.is_empty() {
                return Ok(());
            }
            let is_map = lists::kind_of(current.iter().chain(&values), &[current, &values])?;
            if is_map {
                let merged = lists::merge_maps(std::mem::take(current), values, &field)?;
                original.insert(key.to_owned(), Value::Array(merged));
            } else {
                let values: BTreeSet<String> = values.iter().map(ToString::to_string).collect();
                current.retain(|v| !values.contains(&v.to_string()));
            }
        }
        (Some(Value::Object(current)), Value::Object(values)) => {
            let field = fields.map(key)?;
            let merged = merge_map(std::mem::take(current), values, field)?;
            original.insert(key.to_owned(), Value::Object(merged));
        }
        _ => {}
    }
    Ok(())
}

/// A value as it is put in place of nothing; `None` if it is a directive and no value.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter().filter_map(|(k, v)| Some((k, without_directives(v)?))).collect(),
        )),
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

/// A value without the null fields of its objects; a list keeps its nulls.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests;
