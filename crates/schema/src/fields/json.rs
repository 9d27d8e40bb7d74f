//! fieldsV1: the JSON form of a [`FieldSet`], a trie whose keys are path elements.
//!
//! `{"f:spec": {".": {}, "f:replicas": {}}}` is `.spec` and `.spec.replicas`. Keys of a kind that is not known are
//! skipped with what is below them, as the reference does.

use serde_json::{Map, Value};

use super::{FieldSet, PathElement};

/// A fieldsV1 that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldsError(String);

impl FieldsError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl FieldSet {
    /// Reads fieldsV1. Null is the empty set.
    pub fn parse(json: &Value) -> Result<Self, FieldsError> {
        match json {
            Value::Null => Ok(Self::new()),
            Value::Object(map) => parse(map).map(|(set, _)| set),
            other => Err(FieldsError::new(format!("expected an object, found {other}"))),
        }
    }

    /// Whether some path of this set is in a set that is given as fieldsV1, without reading all of that.
    pub(crate) fn intersects_json(&self, json: &Value) -> bool {
        let Value::Object(map) = json else { return false };
        let mut key = String::new();
        self.entries.iter().any(|entry| {
            key.clear();
            entry.element.write(&mut key);
            let Some(below) = map.get(&key) else { return false };
            let leaf = below.as_object().is_none_or(|m| m.is_empty() || m.contains_key("."));
            (entry.member && leaf) || (!entry.children.is_empty() && entry.children.intersects_json(below))
        })
    }

    /// fieldsV1 as a value. Its keys sort as text there; [`FieldSet::to_json`] has the reference's order.
    pub fn to_value(&self) -> Value {
        fn write(set: &FieldSet, member: bool) -> Value {
            let mut map = Map::new();
            if member && !set.is_empty() {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            for entry in &set.entries {
                let mut key = String::with_capacity(24);
                entry.element.write(&mut key);
                map.insert(key, write(&entry.children, entry.member));
            }
            Value::Object(map)
        }
        write(self, false)
    }

    /// fieldsV1 as text, byte by byte as the reference writes it.
    pub fn to_json(&self) -> String {
        fn write(set: &FieldSet, member: bool, out: &mut String) {
            out.push('{');
            let mut first = true;
            if member && !set.is_empty() {
                out.push_str("\".\":{}");
                first = false;
            }
            let mut key = String::new();
            for entry in &set.entries {
                if !first {
                    out.push(',');
                }
                first = false;
                key.clear();
                entry.element.write(&mut key);
                crate::typed::go::json_string(&key, out);
                out.push(':');
                write(&entry.children, entry.member, out);
            }
            out.push('}');
        }
        let mut out = String::new();
        write(self, false, &mut out);
        out
    }
}

/// The set below an object of the trie, and whether the object itself is a member.
fn parse(map: &Map<String, Value>) -> Result<(FieldSet, bool), FieldsError> {
    let mut set = FieldSet::new();
    let mut member = false;
    for (key, value) in map {
        if key == "." {
            member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (children, child_member) = match value {
            Value::Object(map) => parse(map)?,
            Value::Null => (FieldSet::new(), true),
            other => return Err(FieldsError::new(format!("{key:?}: expected an object, found {other}"))),
        };
        set.add(element, child_member, children);
    }
    // What has nothing below it is a leaf, and so a member.
    member |= set.is_empty();
    Ok((set, member))
}
