//! Uniqueness in lists of type `set` and `map`, and finding an item's earlier self by its keys.

use std::collections::BTreeMap;

use homeostat_model::field::Error;
use serde_json::{Map, Value};

use crate::node::{ListType, Node};
use crate::path::Path;

/// Finds every repeated item or key below `value`.
pub(super) fn validate(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<Error>) {
    if !node.unique_below {
        return;
    }
    match value {
        Value::Array(items) => {
            match node.list_type {
                ListType::Set => {
                    for i in repeated(items, Value::eq, Value::to_string) {
                        errors.push(Error::duplicate(path.index(i).to_string(), items[i].clone()));
                    }
                }
                ListType::Map => map(node, items, path, errors),
                ListType::Atomic => {}
            }
            if let Some(item) = node.items() {
                for (i, value) in items.iter().enumerate() {
                    validate(item, value, &path.index(i), errors);
                }
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if node.is_resource && name == "metadata" {
                    continue;
                }
                if let Some(child) = node.property(name) {
                    validate(child, value, &path.field(name), errors);
                } else if let Some(child) = node.additional() {
                    validate(child, value, &path.key(name), errors);
                }
            }
        }
        _ => {}
    }
}

fn map(node: &Node, items: &[Value], path: &Path<'_>, errors: &mut Vec<Error>) {
    if let Some(i) = items.iter().position(|item| !(item.is_object() || item.is_null())) {
        errors.push(Error::invalid(
            path.index(i).to_string(),
            items[i].clone(),
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let keys = &node.list_keys;
    let same = |a: &Value, b: &Value| keys.iter().all(|k| a.get(k) == b.get(k));
    let text = |item: &Value| Value::Object(key(keys, item)).to_string();
    for i in repeated(items, same, text) {
        errors.push(Error::duplicate(path.index(i).to_string(), Value::Object(key(keys, &items[i]))));
    }
}

/// The keys of an item that it has.
fn key(keys: &[String], item: &Value) -> Map<String, Value> {
    keys.iter().filter_map(|k| Some((k.clone(), item.get(k)?.clone()))).collect()
}

/// Lists up to this length are compared in pairs, without a copy.
const SHORT: usize = 16;

/// Indexes of values that stand a second time; a third time is not told again. `text` is equal where `same` is.
fn repeated(
    values: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
    text: impl Fn(&Value) -> String,
) -> Vec<usize> {
    if values.len() <= SHORT {
        let times = |i: usize| values[..i].iter().filter(|v| same(v, &values[i])).count();
        return (0..values.len()).filter(|i| times(*i) == 1).collect();
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let times = seen.entry(text(value)).or_default();
        *times += 1;
        if *times == 2 {
            found.push(i);
        }
    }
    found
}

/// Whether any value stands twice.
pub(super) fn has_duplicates(values: &[Value]) -> bool {
    !repeated(values, Value::eq, Value::to_string).is_empty()
}

/// The item of `old` with the keys of `item`.
pub(crate) fn find<'a>(keys: &[String], old: &'a [Value], item: &Value) -> Option<&'a Value> {
    let item = item.as_object()?;
    old.iter().find(|o| keys.iter().all(|k| item.get(k) == o.get(k) && o.is_object()))
}
