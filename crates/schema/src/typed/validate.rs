//! Whether an object fits its schema as far as merging is concerned: no undeclared fields, no other types, no
//! item twice. The texts are structured-merge-diff's.
//!
//! It is not the validation that users define; that is `Schema::validate`, which runs later.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::items;
use super::types::{Form, List, Relation, Scalar, Type};
use crate::fields::PathElement;
use crate::typed::go;

/// What doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TypeErrors(Vec<(String, String)>);

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |(path, text): &(String, String)| {
            if path.is_empty() { text.clone() } else { format!("{path}: {text}") }
        };
        match self.0.as_slice() {
            [one] => f.write_str(&line(one)),
            several => {
                f.write_str("errors:")?;
                several.iter().try_for_each(|e| write!(f, "\n  {}", line(e)))
            }
        }
    }
}

/// Checks a whole object. Objects that are stored may have items twice, those that are applied may not.
pub(crate) fn check(value: &Value, ty: Type<'_>, allow_duplicates: bool) -> Result<(), TypeErrors> {
    let mut walk = Walk { allow_duplicates, path: Vec::new(), errors: Vec::new() };
    walk.value(value, ty);
    if walk.errors.is_empty() { Ok(()) } else { Err(TypeErrors(walk.errors)) }
}

/// [`check`] without duplicates, when only the answer counts.
pub(crate) fn fits(value: &Value, ty: Type<'_>) -> bool {
    shaped(value, ty, &|list, ty| check(list, ty, false).is_ok())
}

/// [`fits`], of a value whose items are known to be named and to stand once.
pub(crate) fn fits_named(value: &Value, ty: Type<'_>) -> bool {
    shaped(value, ty, &|list, ty| {
        let (Value::Array(list), Some(t)) = (list, ty.list()) else { return false };
        list.iter().all(|item| fits_named(item, t.items))
    })
}

fn shaped(value: &Value, ty: Type<'_>, associative: &dyn Fn(&Value, Type<'_>) -> bool) -> bool {
    if value.is_null() {
        return true;
    }
    match ty.settle(ty.form(value)) {
        Form::Map | Form::Open => value.as_object().is_some_and(|map| {
            map.iter().all(|(key, child)| ty.field(key).is_some_and(|ty| shaped(child, ty, associative)))
        }),
        Form::Scalar => ty.scalar().is_some_and(|s| is_scalar(s, value)),
        Form::List => match (value, ty.list()) {
            (Value::Array(list), Some(t)) if matches!(t.relation, Relation::Atomic) => {
                list.iter().all(|item| shaped(item, t.items, &|list, ty| check(list, ty, false).is_ok()))
            }
            (Value::Array(_), Some(_)) => associative(value, ty),
            _ => false,
        },
    }
}

struct Walk<'a> {
    allow_duplicates: bool,
    path: Vec<Step<'a>>,
    errors: Vec<(String, String)>,
}

enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Item(PathElement),
}

impl<'a> Walk<'a> {
    fn fail(&mut self, text: impl Into<String>) {
        let path = self
            .path
            .iter()
            .map(|step| match step {
                Step::Field(name) => format!(".{name}"),
                Step::Index(i) => format!("[{i}]"),
                Step::Item(element) => element.to_string(),
            })
            .collect();
        self.errors.push((path, text.into()));
    }

    fn value(&mut self, value: &'a Value, ty: Type<'_>) {
        if value.is_null() {
            return;
        }
        match ty.settle(ty.form(value)) {
            Form::Map | Form::Open => match value {
                Value::Object(map) => {
                    for (key, child) in map {
                        self.path.push(Step::Field(key));
                        match ty.field(key) {
                            Some(ty) => self.value(child, ty),
                            None => {
                                self.fail("field not declared in schema");
                                self.path.pop();
                                return;
                            }
                        }
                        self.path.pop();
                    }
                }
                other => self.fail(format!("expected map, got &{{{}}}", go::v(other))),
            },
            Form::Scalar => {
                if let Some(text) = ty.scalar().and_then(|s| scalar(s, value)) {
                    self.fail(text);
                }
            }
            Form::List => match (value, ty.list()) {
                (Value::Array(list), Some(t)) => self.list(list, t),
                (other, _) => self.fail(items::not_a_list(other)),
            },
        }
    }

    fn list(&mut self, list: &'a [Value], ty: List<'_>) {
        let associative = !matches!(ty.relation, Relation::Atomic);
        let mut seen = BTreeSet::new();
        for (i, item) in list.iter().enumerate() {
            if associative {
                let element = match items::element(ty, item) {
                    Ok(element) => element,
                    Err(why) => return self.fail(format!("element {i}: {why}")),
                };
                if !seen.insert(element.clone()) && !self.allow_duplicates {
                    self.fail(format!("duplicate entries for key {element}"));
                }
                self.path.push(Step::Item(element));
            } else {
                self.path.push(Step::Index(i));
            }
            self.value(item, ty.items);
            self.path.pop();
        }
    }
}

fn is_scalar(ty: Scalar, value: &Value) -> bool {
    matches!(
        (ty, value),
        (Scalar::Numeric, Value::Number(_))
            | (Scalar::String, Value::String(_))
            | (Scalar::Boolean, Value::Bool(_))
            | (Scalar::Any, Value::Bool(_) | Value::Number(_) | Value::String(_))
    )
}

fn scalar(ty: Scalar, value: &Value) -> Option<String> {
    if is_scalar(ty, value) {
        return None;
    }
    match (ty, value) {
        (Scalar::Numeric, other) => {
            Some(format!("expected numeric (int or float), got {}", go::type_name(other)))
        }
        (Scalar::String, other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::sharp_v(other)))
        }
        (Scalar::Boolean, other) => Some(format!("expected boolean, got &{{{}}}", go::v(other))),
        (Scalar::Any, other) => Some(format!("expected any scalar, got &{{{}}}", go::v(other))),
    }
}
