//! Whether an object names exactly the fields that a stored set says, without making a set of either: the test
//! that an apply is the same as the last one.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::items;
use super::types::{Form, Relation, Type};
use crate::fields::{FieldSet, PathElement};

/// See [`super::is_exactly`].
pub(crate) fn is_exactly(
    object: &Value,
    ty: Type<'_>,
    set: &Value,
    reset: &FieldSet,
    unowned: &FieldSet,
) -> bool {
    let skip = Skip { reset: Some(reset), unowned: Some(unowned) };
    set.as_object().is_some_and(|set| below(object, ty, Some(set), skip).is_some())
}

/// Fields that don't count, below a place.
#[derive(Clone, Copy)]
struct Skip<'a> {
    reset: Option<&'a FieldSet>,
    unowned: Option<&'a FieldSet>,
}

impl<'a> Skip<'a> {
    const NOTHING: Skip<'static> = Skip { reset: None, unowned: None };

    /// What doesn't count below a field; `None` if nothing of it counts. And whether the field itself doesn't.
    fn field(self, name: &str) -> Option<(Skip<'a>, bool)> {
        if self.reset.is_none() && self.unowned.is_none() {
            return Some((Skip::NOTHING, false));
        }
        let element = PathElement::field(name);
        if self.reset.is_some_and(|s| s.has_element(&element)) {
            return None;
        }
        let skip = Skip {
            reset: self.reset.and_then(|s| s.below(&element)),
            unowned: self.unowned.and_then(|s| s.below(&element)),
        };
        Some((skip, self.unowned.is_some_and(|s| s.has_element(&element))))
    }
}

/// What a place adds to the set of what it is in.
struct Found {
    leaf: bool,
    /// Something below it is in the set.
    any: bool,
}

/// Compares what is below a place with the stored set there; `None` if they differ.
fn below(value: &Value, ty: Type<'_>, set: Option<&Map<String, Value>>, skip: Skip<'_>) -> Option<Found> {
    let mut set = Stored::new(set);
    let leaf = match (ty.settle(ty.form(value)), value) {
        (Form::Scalar, _) => true,
        (Form::Map | Form::Open, _) if ty.is_atomic_map() => true,
        (Form::Map | Form::Open, Value::Object(map)) => {
            for (key, child) in map {
                let named = ty.named(key);
                let child_type = named.or_else(|| ty.element())?;
                let Some((skip, unowned)) = skip.field(key) else { continue };
                let stored = set.field(key);
                let found = below(child, child_type, stored.and_then(Value::as_object), skip)?;
                let empty = child.is_null() || child.as_object().is_some_and(|m| m.is_empty());
                let member = (found.leaf || empty || named.is_none()) && !unowned;
                set.matches(stored, member, found.any)?;
            }
            false
        }
        (Form::List, _) => match (ty.list(), value) {
            (Some(t), _) if matches!(t.relation, Relation::Atomic) => true,
            (Some(t), Value::Array(list)) => {
                let mut key = String::new();
                for item in list {
                    key.clear();
                    items::element(t, item).ok()?.write(&mut key);
                    let stored = set.get(&key);
                    let found = below(item, t.items, stored.and_then(Value::as_object), Skip::NOTHING)?;
                    set.matches(stored, true, found.any)?;
                }
                false
            }
            _ => false,
        },
        _ => false,
    };
    set.all_matched().then_some(Found { leaf, any: set.matched > 0 })
}

/// The stored set below a place, from which fields are taken in their order.
struct Stored<'a> {
    map: Option<&'a Map<String, Value>>,
    rest: Option<std::iter::Peekable<serde_json::map::Iter<'a>>>,
    matched: usize,
}

impl<'a> Stored<'a> {
    fn new(map: Option<&'a Map<String, Value>>) -> Self {
        Self { map, rest: map.map(|m| m.iter().peekable()), matched: 0 }
    }

    /// The entry of a field. Both sides are sorted, so the next entry is the field's or comes later.
    fn field(&mut self, name: &str) -> Option<&'a Value> {
        let rest = self.rest.as_mut()?;
        loop {
            let (key, value) = rest.peek()?;
            match key.strip_prefix("f:").map(|key| key.cmp(name)) {
                Some(Ordering::Equal) => return Some(value),
                Some(Ordering::Greater) => return None,
                // The mark of the place itself, or what the object doesn't have; then the count tells.
                _ => {
                    rest.next();
                }
            }
        }
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.map?.get(key)
    }

    /// Whether an entry says what was found of its place.
    fn matches(&mut self, stored: Option<&Value>, member: bool, any: bool) -> Option<()> {
        match stored {
            None => (!member && !any).then_some(()),
            Some(stored) => {
                let map = stored.as_object()?;
                let is_member = if any { map.contains_key(".") } else { map.is_empty() };
                self.matched += 1;
                (is_member == member && (member || any)).then_some(())
            }
        }
    }

    fn all_matched(&self) -> bool {
        self.matched == self.map.map_or(0, |m| m.len() - usize::from(m.contains_key(".")))
    }
}
