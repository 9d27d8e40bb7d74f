//! The fields that an object names: what an apply of it owns.

use serde_json::Value;

use super::items;
use super::types::{Form, List, Relation, Type};
use super::validate;
use crate::fields::{FieldSet, PathElement};

/// The leaves of an object, its list items, the entries of its maps, and empty or null objects.
///
/// Objects that a schema declares are not in the set, only what is in them is. An item that stands twice counts
/// as one leaf.
pub(crate) fn field_set(value: &Value, ty: Type<'_>) -> FieldSet {
    below::<false>(value, ty).map(|(_, set)| set).unwrap_or_default()
}

/// [`field_set`] of an object that must fit its schema as [`super::validate`] has it; `None` if it may not.
pub(crate) fn strict(value: &Value, ty: Type<'_>) -> Option<FieldSet> {
    below::<true>(value, ty).map(|(_, set)| set)
}

/// Whether the place itself is a leaf, and what is in the set below it.
fn below<const STRICT: bool>(value: &Value, ty: Type<'_>) -> Option<(bool, FieldSet)> {
    let none = || Some((false, FieldSet::new()));
    let whole = || if STRICT && !validate::fits(value, ty) { None } else { Some((true, FieldSet::new())) };
    match ty.settle(ty.form(value)) {
        Form::Scalar => whole(),
        Form::Map | Form::Open => {
            if ty.is_atomic_map() {
                return whole();
            }
            let map = match value {
                Value::Object(map) => map,
                other if STRICT && !other.is_null() => return None,
                _ => return none(),
            };
            let mut set = FieldSet::new();
            for (key, child) in map {
                let named = ty.named(key);
                let child_type = match named.or_else(|| ty.element()) {
                    Some(child_type) => child_type,
                    None if STRICT => return None,
                    None => continue,
                };
                let (leaf, children) = below::<STRICT>(child, child_type)?;
                let empty = child.is_null() || child.as_object().is_some_and(|m| m.is_empty());
                set.push(PathElement::field(key), leaf || empty || named.is_none(), children);
            }
            Some((false, set))
        }
        Form::List => match (ty.list(), value) {
            (Some(t), _) if matches!(t.relation, Relation::Atomic) => whole(),
            (Some(t), Value::Array(list)) => Some((false, list_set::<STRICT>(list, t)?)),
            (_, other) if STRICT && !other.is_null() => None,
            _ => none(),
        },
    }
}

fn list_set<const STRICT: bool>(list: &[Value], ty: List<'_>) -> Option<FieldSet> {
    let mut set = FieldSet::new();
    let mut elements: Vec<(PathElement, &Value)> = Vec::with_capacity(list.len());
    for item in list {
        match items::element(ty, item) {
            Ok(element) => elements.push((element, item)),
            Err(_) if STRICT => return None,
            // What has no element was refused when the object was checked.
            Err(_) => {}
        }
    }
    elements.sort_by(|a, b| a.0.cmp(&b.0));
    let mut elements = elements.into_iter().peekable();
    while let Some((element, item)) = elements.next() {
        let mut twice = false;
        while elements.next_if(|(next, _)| *next == element).is_some() {
            twice = true;
        }
        if twice && STRICT {
            return None;
        }
        let children = if twice { FieldSet::new() } else { below::<STRICT>(item, ty.items)?.1 };
        set.push(element, true, children);
    }
    Some(set)
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
