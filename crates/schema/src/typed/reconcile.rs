//! Bringing sets that were written under another schema up to date: what became atomic is owned whole.
//!
//! The other way, from atomic to granular, nothing is done; such a field stays owned as it was written.

use serde_json::Value;

use super::fieldset::step;
use super::types::{Relation, Type};
use crate::fields::{Entry, FieldSet, PathElement};

/// The set under today's schema; `None` if it is the same.
pub(crate) fn reconcile(set: &FieldSet, ty: Type<'_>) -> Option<FieldSet> {
    if !stale(set, ty) {
        return None;
    }
    let mut walk = Walk { path: Vec::new(), whole: FieldSet::new() };
    walk.visit(set, false, ty);
    if walk.whole.is_empty() {
        return None;
    }
    Some(set.recursive_difference(&walk.whole).union(&walk.whole))
}

/// Whether a set, given as fieldsV1, may have to be brought up to date: whether something below an atomic place is
/// owned. It reads as little as it can, for nearly no set is.
pub(crate) fn is_stale(json: &Value, ty: Type<'_>) -> bool {
    let Value::Object(map) = json else { return false };
    if map.is_empty() || (map.len() == 1 && map.contains_key(".")) {
        return false;
    }
    if becomes_whole(ty, false, true) {
        return true;
    }
    let items = if is_list(ty) { ty.list().map(|l| l.items) } else { None };
    map.iter().any(|(key, below)| {
        if below.as_object().is_none_or(|m| m.is_empty()) {
            return false;
        }
        let child = match (items, key.strip_prefix("f:")) {
            (Some(items), _) => Some(items),
            (None, Some(name)) if !is_list(ty) => ty.field(name),
            (None, _) => ty.element(),
        };
        child.is_some_and(|ty| is_stale(below, ty))
    })
}

/// Whether something below an atomic place is owned. Cheap, as it nearly never is.
fn stale(set: &FieldSet, ty: Type<'_>) -> bool {
    if !set.is_empty() && becomes_whole(ty, false, true) {
        return true;
    }
    set.entries.iter().any(|e| child(ty, e).is_some_and(|t| stale_entry(e, t)))
}

fn stale_entry(entry: &Entry, ty: Type<'_>) -> bool {
    let atomic = entry.member && entry.children.is_empty();
    if becomes_whole(ty, atomic, !entry.children.is_empty()) {
        return true;
    }
    entry.children.entries.iter().any(|e| child(ty, e).is_some_and(|t| stale_entry(e, t)))
}

fn child<'a>(ty: Type<'a>, entry: &Entry) -> Option<Type<'a>> {
    if is_list(ty) {
        return ty.list().map(|l| l.items);
    }
    match &entry.element {
        PathElement::Field(_) => step(Some(ty), &entry.element).1,
        _ => ty.element(),
    }
}

/// The form in which a type without a value is looked at: objects before scalars before lists.
fn is_list(ty: Type<'_>) -> bool {
    !ty.is_map() && ty.scalar().is_none()
}

fn becomes_whole(ty: Type<'_>, atomic: bool, has_children: bool) -> bool {
    if atomic {
        return false;
    }
    if ty.is_map() {
        // Types that are deduced have no marks, so they can't have changed.
        return has_children && ty.is_atomic_map() && !ty.is_deduced();
    }
    is_list(ty) && has_children && ty.list().is_some_and(|l| matches!(l.relation, Relation::Atomic))
}

struct Walk {
    path: Vec<PathElement>,
    whole: FieldSet,
}

impl Walk {
    fn visit(&mut self, set: &FieldSet, atomic: bool, ty: Type<'_>) {
        if becomes_whole(ty, atomic, !set.is_empty()) {
            self.whole.insert(&self.path);
            return;
        }
        for entry in &set.entries {
            if let Some(ty) = child(ty, entry) {
                self.path.push(entry.element.clone());
                self.visit(&entry.children, entry.member && entry.children.is_empty(), ty);
                self.path.pop();
            }
        }
    }
}
