//! The fields that an object names: what an apply of it owns.

use serde_json::Value;

use super::items;
use super::types::{Form, List, Relation, Type};
use crate::fields::{FieldSet, PathElement};

/// The leaves of an object, its list items, the entries of its maps, and empty or null objects.
///
/// Objects that a schema declares are not in the set, only what is in them is. An item that stands twice counts
/// as one leaf.
pub(crate) fn field_set(value: &Value, ty: Type<'_>) -> FieldSet {
    below(value, ty).1
}

/// Whether the place itself is a leaf, and what is in the set below it.
fn below(value: &Value, ty: Type<'_>) -> (bool, FieldSet) {
    match ty.settle(ty.form(value)) {
        Form::Scalar => (true, FieldSet::new()),
        Form::Map | Form::Open => {
            if ty.is_atomic_map() {
                return (true, FieldSet::new());
            }
            let Value::Object(map) = value else { return (false, FieldSet::new()) };
            let mut set = FieldSet::new();
            for (key, child) in map {
                let named = ty.named(key);
                let Some(child_type) = named.or_else(|| ty.element()) else { continue };
                let (leaf, children) = below(child, child_type);
                let empty = child.is_null() || child.as_object().is_some_and(|m| m.is_empty());
                set.push(PathElement::field(key), leaf || empty || named.is_none(), children);
            }
            (false, set)
        }
        Form::List => match ty.list() {
            None => (false, FieldSet::new()),
            Some(t) if matches!(t.relation, Relation::Atomic) => (true, FieldSet::new()),
            Some(t) => match value {
                Value::Array(list) => (false, list_set(list, t)),
                _ => (false, FieldSet::new()),
            },
        },
    }
}

fn list_set(list: &[Value], ty: List<'_>) -> FieldSet {
    let mut set = FieldSet::new();
    let mut twice: Vec<PathElement> = Vec::new();
    let mut elements: Vec<(PathElement, &Value)> = Vec::with_capacity(list.len());
    for item in list {
        // What has no element was refused when the object was checked.
        if let Ok(element) = items::element(ty, item) {
            elements.push((element, item));
        }
    }
    elements.sort_by(|a, b| a.0.cmp(&b.0));
    for pair in elements.windows(2) {
        if pair[0].0 == pair[1].0 && twice.last() != Some(&pair[0].0) {
            twice.push(pair[0].0.clone());
        }
    }
    for (element, item) in elements {
        if twice.binary_search(&element).is_ok() {
            set.entry(&element).member = true;
        } else {
            set.push(element, true, below(item, ty.items).1);
        }
    }
    set
}

/// The set with the fields added that the schema names and that have members below them.
pub(crate) fn with_named_parents(set: &FieldSet, ty: Option<Type<'_>>) -> FieldSet {
    let mut out = FieldSet::new();
    for entry in &set.entries {
        let (named, child) = step(ty, &entry.element);
        let member = entry.member || (named && !entry.children.is_empty());
        out.push(entry.element.clone(), member, with_named_parents(&entry.children, child));
    }
    out
}

/// Whether the schema names the element as a field, and its type.
pub(crate) fn step<'a>(ty: Option<Type<'a>>, element: &PathElement) -> (bool, Option<Type<'a>>) {
    match (ty, element) {
        (Some(ty), PathElement::Field(name)) if ty.is_map() => match ty.named(name) {
            Some(child) => (true, Some(child)),
            None => (false, ty.element()),
        },
        (Some(ty), PathElement::Key(_)) => (false, ty.list().map(|l| l.items)),
        _ => (false, None),
    }
}
