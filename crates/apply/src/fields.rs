//! The one representation of all configurations: a map of JSON, and the ways to put values into it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// What is set of a type.
pub(crate) type Fields = Map<String, Value>;

/// A number or a text, such as a port or a percentage.
///
/// ```
/// use homeostat_apply::IntOrString;
///
/// assert_eq!(IntOrString::from(8080), IntOrString::Int(8080));
/// assert_eq!(IntOrString::from("50%"), IntOrString::String("50%".into()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrString {
    /// A number.
    Int(i32),
    /// A text.
    String(String),
}

impl From<i32> for IntOrString {
    fn from(n: i32) -> Self {
        Self::Int(n)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for IntOrString {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<IntOrString> for Value {
    fn from(value: IntOrString) -> Self {
        match value {
            IntOrString::Int(n) => n.into(),
            IntOrString::String(text) => text.into(),
        }
    }
}

// Not generic, so that setters are a call.

pub(crate) fn set(fields: &mut Fields, key: &str, value: Value) {
    fields.insert(key.to_owned(), value);
}

pub(crate) fn list<T: Into<Value>>(items: impl IntoIterator<Item = T>) -> Value {
    Value::Array(items.into_iter().map(Into::into).collect())
}

pub(crate) fn texts<T: Into<String>>(items: impl IntoIterator<Item = T>) -> Value {
    Value::Array(items.into_iter().map(|t| Value::String(t.into())).collect())
}

pub(crate) fn text_map<K: Into<String>, V: Into<String>>(items: impl IntoIterator<Item = (K, V)>) -> Value {
    Value::Object(items.into_iter().map(|(k, v)| (k.into(), Value::String(v.into()))).collect())
}

pub(crate) fn byte_map<K: Into<String>, V: AsRef<[u8]>>(items: impl IntoIterator<Item = (K, V)>) -> Value {
    Value::Object(items.into_iter().map(|(k, v)| (k.into(), STANDARD.encode(v).into())).collect())
}

/// The map at `key`, made where there is none.
fn inner<'a>(fields: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    fields.entry(key.to_owned()).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

/// Sets a field of `metadata`.
pub(crate) fn meta(fields: &mut Fields, key: &str, value: Value) {
    if let Some(meta) = inner(fields, "metadata") {
        meta.insert(key.to_owned(), value);
    }
}

/// Sets fields of `metadata`; those that were set before and aren't among them stay.
pub(crate) fn metas(fields: &mut Fields, more: Fields) {
    if let Some(meta) = inner(fields, "metadata") {
        meta.extend(more);
    }
}

/// Adds an entry to a map of `metadata`, such as a label.
pub(crate) fn meta_entry(fields: &mut Fields, map: &str, key: String, value: String) {
    if let Some(entries) = inner(fields, "metadata").and_then(|meta| inner(meta, map)) {
        entries.insert(key, value.into());
    }
}
