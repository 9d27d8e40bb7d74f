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

/// [`field_set`] with the lists that merge and are empty, which have no owner otherwise.
pub(crate) fn with_empty_lists(value: &Value, ty: Type<'_>) -> FieldSet {
    fn walk(value: &Value, ty: Type<'_>, path: &mut Vec<PathElement>, out: &mut FieldSet) {
        match (ty.settle(ty.form(value)), value) {
            (Form::Map | Form::Open, Value::Object(map)) if !ty.is_atomic_map() => {
                for (key, child) in map {
                    if let Some(ty) = ty.field(key) {
                        path.push(PathElement::field(key));
                        walk(child, ty, path, out);
                        path.pop();
                    }
                }
            }
            (Form::List, Value::Array(list)) => {
                let Some(t) = ty.list().filter(|t| !matches!(t.relation, Relation::Atomic)) else { return };
                if list.is_empty() {
                    out.insert(path);
                }
                for item in list {
                    if let Ok(element) = items::element(t, item) {
                        path.push(element);
                        walk(item, t.items, path, out);
                        path.pop();
                    }
                }
            }
            _ => {}
        }
    }
    let mut out = field_set(value, ty);
    walk(value, ty, &mut Vec::new(), &mut out);
    out
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

/// What someone owns below a place: a set, or fieldsV1 that need not be read whole.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    Set(&'a FieldSet),
    Json(&'a Value),
}

impl<'a> Owner<'a> {
    /// Whether the element is owned, and what is below it.
    fn step(self, element: &PathElement, key: &str) -> (bool, Option<Owner<'a>>) {
        match self {
            Self::Set(set) => (set.has_element(element), set.below(element).map(Owner::Set)),
            Self::Json(json) => match json.get(key) {
                None => (false, None),
                Some(below) => {
                    let size = below.as_object().map_or(0, |m| m.len());
                    let marked = below.get(".").is_some();
                    let any = size > usize::from(marked);
                    (marked || size == 0, any.then_some(Owner::Json(below)))
                }
            },
        }
    }
}

/// Of the members of a set, and the fields named by the schema that have members below them, those that none of
/// the owners has. What is below a member of the result is not in it.
pub(crate) fn unowned(set: &FieldSet, owners: &[Owner<'_>], ty: Option<Type<'_>>) -> FieldSet {
    let mut out = FieldSet::new();
    let mut key = String::new();
    for entry in &set.entries {
        let (named, child) = step(ty, &entry.element);
        key.clear();
        entry.element.write(&mut key);
        let mut owned = false;
        let mut below = Vec::new();
        for owner in owners {
            let (member, rest) = owner.step(&entry.element, &key);
            owned = owned || member || (named && rest.is_some());
            below.extend(rest);
        }
        if (entry.member || named) && !owned {
            out.push(entry.element.clone(), true, FieldSet::new());
        } else {
            out.push(entry.element.clone(), false, unowned(&entry.children, &below, child));
        }
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
