//! Taking fields and items out of an object.

use serde_json::Value;

use super::items;
use super::types::{Form, Relation, Type};
use crate::fields::{FieldSet, PathElement};

/// Removes the members of a set. An object or list that becomes empty stays, empty: its owner wants it there. (The
/// reference makes it null, which built-in types don't tell from empty and custom resources then refuse.) A list
/// that merges and is empty already stays as well, for nobody can own it.
pub(crate) fn remove(value: &mut Value, gone: &FieldSet, ty: Type<'_>) {
    match (ty.settle(ty.form(value)), value) {
        (Form::Map | Form::Open, Value::Object(map)) if !ty.is_atomic_map() => {
            for entry in &gone.entries {
                let PathElement::Field(name) = &entry.element else { continue };
                let Some(child) = map.get_mut(&**name) else { continue };
                let child_type = ty.field(name);
                if entry.member {
                    if !child_type.is_some_and(|ty| is_empty_list(child, ty)) {
                        map.remove(&**name);
                    }
                } else if let Some(ty) = child_type {
                    remove(child, &entry.children, ty);
                }
            }
        }
        (Form::List, Value::Array(list)) => {
            let Some(t) = ty.list().filter(|t| !matches!(t.relation, Relation::Atomic)) else { return };
            list.retain_mut(|item| match items::element(t, item) {
                Ok(element) if gone.has_element(&element) => false,
                Ok(element) => {
                    if let Some(below) = gone.below(&element) {
                        remove(item, below, t.items);
                    }
                    true
                }
                Err(_) => true,
            });
        }
        _ => {}
    }
}

fn is_empty_list(value: &Value, ty: Type<'_>) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
        && ty.list().is_some_and(|t| !matches!(t.relation, Relation::Atomic))
}

/// Keeps only the members of a set, and the objects and items that they stand in.
pub(crate) fn extract(value: &Value, kept: &FieldSet, ty: Type<'_>) -> Value {
    match (ty.settle(ty.form(value)), value) {
        (Form::Map | Form::Open, Value::Object(map)) => {
            if map.is_empty() || ty.is_atomic_map() {
                return value.clone();
            }
            let mut out = serde_json::Map::new();
            for (key, child) in map {
                let element = PathElement::field(key);
                let below = kept.below(&element);
                match (kept.has_element(&element), below, ty.field(key)) {
                    (_, Some(below), Some(ty)) => {
                        out.insert(key.clone(), extract(child, below, ty));
                    }
                    (true, None, Some(ty)) => {
                        out.insert(key.clone(), extract(child, &FieldSet::new(), ty));
                    }
                    (true, _, None) => {
                        out.insert(key.clone(), child.clone());
                    }
                    _ => {}
                }
            }
            if out.is_empty() { Value::Null } else { Value::Object(out) }
        }
        (Form::List, Value::Array(list)) => {
            let Some(t) = ty.list() else { return value.clone() };
            if list.is_empty() || matches!(t.relation, Relation::Atomic) {
                return value.clone();
            }
            let mut out = Vec::new();
            for item in list {
                let Ok(element) = items::element(t, item) else { continue };
                match kept.below(&element) {
                    Some(below) => out.push(extract(item, below, t.items)),
                    None if kept.has_element(&element) => out.push(item.clone()),
                    None => {}
                }
            }
            if out.is_empty() { Value::Null } else { Value::Array(out) }
        }
        (Form::Scalar, scalar) => scalar.clone(),
        (_, _) => Value::Null,
    }
}
