//! What changed between two objects of one type: fields added, modified and removed.
//!
//! Unlike [`super::field_set`], an object that comes or goes is in the sets itself, not only with its leaves:
//! that is why an update that creates `.spec` owns `.spec`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::items;
use super::types::{Form, List, Relation, Type};
use crate::fields::{FieldSet, PathElement, equal_values};

/// The changes. No path is in more than one of the sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// Without the fields of `ignored` and what is below them.
    fn without(mut self, ignored: &FieldSet) -> Self {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.subtract_recursive(ignored);
        }
        self
    }
}

/// Compares two objects that were checked, but for the fields of `ignored` and what is below them.
pub(crate) fn compare(old: &Value, new: &Value, ty: Type<'_>, ignored: &FieldSet) -> Comparison {
    let mut walk = Walk { path: Vec::new(), out: Comparison::default(), ignored };
    walk.both(Some(old), Some(new), ty);
    walk.out.without(ignored)
}

struct Walk<'a> {
    path: Vec<PathElement>,
    out: Comparison,
    /// Of these, fields of the whole object aren't looked into: a write of a status ignores all of the spec.
    ignored: &'a FieldSet,
}

impl Walk<'_> {
    fn both(&mut self, old: Option<&Value>, new: Option<&Value>, ty: Type<'_>) {
        let leaf = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) => {
                let (a, b) = (ty.form(old), ty.form(new));
                if a != b {
                    // The place was of another form before: what it had goes, as if the new value weren't there.
                    self.as_form(Some(old), Some(new), ty, ty.settle(a));
                }
                self.as_form(Some(old), Some(new), ty, ty.settle(b))
            }
            (Some(one), None) | (None, Some(one)) => self.as_form(old, new, ty, ty.settle(ty.form(one))),
        };
        if !leaf {
            match (old, new) {
                (None, _) => self.out.added.insert(&self.path),
                (_, None) => self.out.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares in one form; says whether the place is a leaf.
    fn as_form(&mut self, old: Option<&Value>, new: Option<&Value>, ty: Type<'_>, form: Form) -> bool {
        match form {
            Form::Scalar => self.leaf(old, new),
            Form::Map | Form::Open => {
                let a = old.and_then(Value::as_object);
                let b = new.and_then(Value::as_object);
                let empty = a.is_none_or(|m| m.is_empty()) && b.is_none_or(|m| m.is_empty());
                if ty.is_atomic_map() || empty {
                    return self.leaf(old, new);
                }
                for (key, value) in a.into_iter().flatten() {
                    self.field(key, Some(value), b.and_then(|m| m.get(key)), ty);
                }
                for (key, value) in b.into_iter().flatten() {
                    if a.is_none_or(|m| !m.contains_key(key)) {
                        self.field(key, None, Some(value), ty);
                    }
                }
                false
            }
            Form::List => {
                let a = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let b = new.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                match ty.list() {
                    Some(list)
                        if !matches!(list.relation, Relation::Atomic) && (!a.is_empty() || !b.is_empty()) =>
                    {
                        self.list(a, b, list);
                        false
                    }
                    _ => self.leaf(old, new),
                }
            }
        }
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) -> bool {
        match (old, new) {
            (None, _) => self.out.added.insert(&self.path),
            (_, None) => self.out.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal_values(old, new) => self.out.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn field(&mut self, key: &str, old: Option<&Value>, new: Option<&Value>, ty: Type<'_>) {
        // Scalars, which most fields are, are told before anything is made.
        if let (Some(old), Some(new)) = (old, new)
            && !matches!(old, Value::Object(_) | Value::Array(_))
            && old == new
        {
            return;
        }
        let Some(child) = ty.field(key) else { return };
        let element = PathElement::field(key);
        if self.path.is_empty() && self.ignored.has_element(&element) {
            return;
        }
        self.path.push(element);
        self.both(old, new, child);
        self.path.pop();
    }

    fn item(&mut self, element: &PathElement, old: Option<&Value>, new: Option<&Value>, ty: Type<'_>) {
        self.path.push(element.clone());
        self.both(old, new, ty);
        self.path.pop();
    }

    fn list(&mut self, old: &[Value], new: &[Value], ty: List<'_>) {
        if old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equal_values(a, b)) {
            return;
        }
        let mut all: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old {
            if let Ok(element) = items::element(ty, item) {
                all.entry(element).or_default().0.push(item);
            }
        }
        for item in new {
            if let Ok(element) = items::element(ty, item) {
                all.entry(element).or_default().1.push(item);
            }
        }
        for (element, (old, new)) in &all {
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.item(element, old.first().copied(), new.first().copied(), ty.items);
                }
                // Items that stand twice are compared as one leaf.
                ([_, _, ..], [_, _, ..]) => {
                    let same = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equal_values(a, b));
                    if !same {
                        self.mark(element, |out| &mut out.modified);
                    }
                }
                ([_, _, ..], rest) => {
                    if let [one] = rest {
                        self.item(element, None, Some(one), ty.items);
                    }
                    self.mark(element, |out| &mut out.removed);
                }
                (rest, _) => {
                    if let [one] = rest {
                        self.item(element, Some(one), None, ty.items);
                    }
                    self.mark(element, |out| &mut out.added);
                }
            }
        }
    }

    fn mark(&mut self, element: &PathElement, set: impl Fn(&mut Comparison) -> &mut FieldSet) {
        self.path.push(element.clone());
        set(&mut self.out).insert(&self.path);
        self.path.pop();
    }
}
