//! Reading and changing JSON by dotted paths, and the small rules that many types share.
//!
//! A path names fields only (`spec.template.metadata`); where a name contains a dot, index the value. What is absent
//! reads as null, empty text or an empty list, as Go's zero values do.

use homeostat_model::field::{self, Error};
use homeostat_model::quantity::Quantity;
use serde_json::{Map, Value};

/// Errors in the order in which they are found.
pub(crate) type Errors = Vec<Error>;

static NULL: Value = Value::Null;

/// The value at a path; null where it is absent.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').try_fold(value, |v, key| v.get(key)).unwrap_or(&NULL)
}

/// Whether something other than null is there.
pub(crate) fn has(value: &Value, path: &str) -> bool {
    !at(value, path).is_null()
}

/// The text at a path.
pub(crate) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The whole number at a path.
pub(crate) fn int(value: &Value, path: &str) -> Option<i64> {
    at(value, path).as_i64()
}

/// The quantity at a path.
pub(crate) fn quantity(value: &Value, path: &str) -> Option<Quantity> {
    has(value, path).then(|| Quantity::from_value(at(value, path)).ok())?
}

/// The boolean at a path, false where it is absent.
pub(crate) fn flag(value: &Value, path: &str) -> bool {
    at(value, path).as_bool().unwrap_or_default()
}

/// The items at a path.
pub(crate) fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The texts of the list at a path.
pub(crate) fn texts<'a>(value: &'a Value, path: &str) -> Vec<&'a str> {
    items(value, path).iter().filter_map(Value::as_str).collect()
}

/// The entries of the object at a path, sorted by key.
pub(crate) fn entries<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    at(value, path).as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v))
}

/// Whether the value at a path is absent, null, or empty.
pub(crate) fn empty(value: &Value, path: &str) -> bool {
    match at(value, path) {
        Value::Null => true,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        _ => false,
    }
}

/// The object at a path, made where it is absent.
pub(crate) fn object<'a>(value: &'a mut Value, path: &str) -> &'a mut Map<String, Value> {
    let mut here = value;
    for key in path.split('.').filter(|k| !k.is_empty()) {
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        here = &mut here[key];
    }
    if !here.is_object() {
        *here = Value::Object(Map::new());
    }
    match here {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// Sets the value at a path.
pub(crate) fn set(value: &mut Value, path: &str, to: impl Into<Value>) {
    let (parent, key) = split(path);
    object(value, parent).insert(key.to_owned(), to.into());
}

/// Sets the value at a path where it is absent or null.
pub(crate) fn default(value: &mut Value, path: &str, to: impl Into<Value>) {
    if !has(value, path) {
        set(value, path, to);
    }
}

/// Takes the value at a path away.
pub(crate) fn remove(value: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = split(path);
    let mut here = value;
    for key in parent.split('.').filter(|k| !k.is_empty()) {
        here = here.get_mut(key)?;
    }
    here.as_object_mut()?.remove(key)
}

/// Makes the value at a path what it is in `from`, absence included.
pub(crate) fn carry(to: &mut Value, from: &Value, path: &str) {
    match at(from, path) {
        Value::Null => drop(remove(to, path)),
        // Most often nothing tried to change it.
        value if at(to, path) == value => {}
        value => set(to, path, value.clone()),
    }
}

/// Does something to the object at a path, if there is one.
pub(crate) fn inside(value: &mut Value, path: &str, f: impl FnOnce(&mut Value)) {
    let mut here = Some(value);
    for key in path.split('.') {
        here = here.and_then(|v| v.get_mut(key));
    }
    if let Some(found) = here.filter(|v| v.is_object()) {
        f(found);
    }
}

/// Every object in the list at a path.
pub(crate) fn each(value: &mut Value, path: &str, mut f: impl FnMut(&mut Value)) {
    let mut here = Some(value);
    for key in path.split('.') {
        here = here.and_then(|v| v.get_mut(key));
    }
    if let Some(list) = here.and_then(Value::as_array_mut) {
        list.iter_mut().filter(|item| item.is_object()).for_each(&mut f);
    }
}

/// The text of the rule for numbers that may not be negative.
pub(crate) const NON_NEGATIVE: &str = "must be greater than or equal to 0";

/// The text of the rule for what may not change.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// The number in `field` of `value`, which stands at `path`, is not negative.
pub(crate) fn non_negative(errors: &mut Errors, value: &Value, path: &str, field: &str) {
    if let Some(n) = int(value, field).filter(|n| *n < 0) {
        errors.push(Error::invalid(field::child(path, field), n, NON_NEGATIVE));
    }
}

/// The text in `field` is one of those; an absent one is fine.
pub(crate) fn one_of(errors: &mut Errors, value: &Value, path: &str, field: &str, allowed: &[&str]) {
    let found = text(value, field);
    if has(value, field) && !allowed.contains(&found) {
        errors.push(Error::not_supported(field::child(path, field), found, allowed));
    }
}

/// The text in `field` is there and one of those.
pub(crate) fn required_one_of(errors: &mut Errors, value: &Value, path: &str, field: &str, allowed: &[&str]) {
    if text(value, field).is_empty() {
        errors.push(Error::required(field::child(path, field), ""));
    } else {
        one_of(errors, value, path, field, allowed);
    }
}

/// The field is as it was.
pub(crate) fn unchanged(errors: &mut Errors, new: &Value, old: &Value, path: &str) {
    if at(new, path) != at(old, path) {
        errors.push(Error::invalid(path, at(new, path).clone(), IMMUTABLE));
    }
}

/// One error for each thing that is wrong with a text.
pub(crate) fn wrong(errors: &mut Errors, path: &str, value: &str, why: Vec<String>) {
    errors.extend(why.into_iter().map(|w| Error::invalid(path, value, w)));
}

/// Errors whose value isn't printed as its JSON.
pub(crate) trait ShownAs {
    /// The same error, its value printed as `text`: Go prints structs with its own names, in its own order.
    #[must_use]
    fn shown_as(self, text: impl Into<String>) -> Self;
}

impl ShownAs for Error {
    fn shown_as(mut self, text: impl Into<String>) -> Self {
        self.value = field::verbatim(text);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_read_and_write() {
        let mut v = json!({"spec": {"n": 1, "list": [{"a": 1}]}});
        assert_eq!(
            (int(&v, "spec.n"), text(&v, "spec.absent.x"), items(&v, "spec.list").len()),
            (Some(1), "", 1)
        );
        set(&mut v, "status.phase", "Active");
        default(&mut v, "status.phase", "Other");
        remove(&mut v, "spec.n");
        each(&mut v, "spec.list", |i| set(i, "a", 2));
        carry(&mut v, &json!({"spec": {"x": true}}), "spec.x");
        assert_eq!(v, json!({"spec": {"list": [{"a": 2}], "x": true}, "status": {"phase": "Active"}}));
    }
}
