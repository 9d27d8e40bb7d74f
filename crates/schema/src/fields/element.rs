//! One step of a path: a field, a list item by its key or value, or an index.
//!
//! Written `f:name`, `k:{"name":"a"}`, `v:"x"`, `i:0` in fieldsV1, and `.name`, `[name="a"]`, `[="x"]`, `[0]` in
//! messages. The order is the reference's: fields, keys, values, indexes; numbers by size, then text by bytes.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use homeostat_model::field::quote;
use serde_json::{Number, Value};

use super::FieldsError;
use crate::typed::go;

/// The key of an item of a map list: fields with their values, sorted by name.
pub type Key = Arc<[(Box<str>, Value)]>;

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object.
    Field(Arc<str>),
    /// The item of a map list that has these values.
    Key(Key),
    /// The item of a set.
    Value(Arc<Value>),
    /// An item by its place; only in sets that clients write.
    Index(i64),
}

impl PathElement {
    /// A field.
    pub fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// A map list's item by its key fields.
    pub fn key(mut fields: Vec<(Box<str>, Value)>) -> Self {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        Self::Key(fields.into())
    }

    /// A set's item.
    pub fn value(value: Value) -> Self {
        Self::Value(Arc::new(value))
    }

    /// Reads `f:…`, `k:…`, `v:…` or `i:…`. `None` for a kind of element that is not known, which the reference
    /// skips.
    pub fn parse(text: &str) -> Result<Option<Self>, FieldsError> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(FieldsError::new("key must be 2 characters long:"));
        }
        if bytes[1] != b':' {
            return Err(FieldsError::new(format!("missing colon: {text}")));
        }
        let rest = &text[2..];
        let json = |e: serde_json::Error| FieldsError::new(format!("{e} in {text:?}"));
        match bytes[0] {
            b'f' => Ok(Some(Self::field(rest))),
            b'v' => Ok(Some(Self::value(serde_json::from_str(rest).map_err(json)?))),
            b'k' => {
                let fields: serde_json::Map<String, Value> = serde_json::from_str(rest).map_err(json)?;
                // serde_json's maps are sorted.
                let fields: Vec<(Box<str>, Value)> =
                    fields.into_iter().map(|(k, v)| (k.into_boxed_str(), v)).collect();
                Ok(Some(Self::Key(fields.into())))
            }
            b'i' => match rest.parse() {
                Ok(index) => Ok(Some(Self::Index(index))),
                Err(_) => Err(FieldsError::new(format!("invalid index {rest:?}"))),
            },
            _ => Ok(None),
        }
    }

    /// Appends the form that fieldsV1 has.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Field(name) => {
                out.push_str("f:");
                out.push_str(name);
            }
            Self::Key(fields) => {
                out.push_str("k:{");
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    go::json_string(name, out);
                    out.push(':');
                    go::json(value, out);
                }
                out.push('}');
            }
            Self::Value(value) => {
                out.push_str("v:");
                go::json(value, out);
            }
            Self::Index(index) => {
                out.push_str("i:");
                out.push_str(&index.to_string());
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (i, (name, value)) in fields.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", show(value))?;
                }
                f.write_str("]")
            }
            Self::Value(value) => write!(f, "[={}]", show(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(a), Self::Field(b)) => a.cmp(b),
            (Self::Key(a), Self::Key(b)) => compare_keys(a, b),
            (Self::Value(a), Self::Value(b)) => compare_values(a, b),
            (Self::Index(a), Self::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

/// A path from the root of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(pub Vec<PathElement>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => go::number(n),
        Value::String(s) => quote(s),
        Value::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(k, v)| format!("{k}={}", show(v))).collect(),
    }
}

fn compare_keys(a: &[(Box<str>, Value)], b: &[(Box<str>, Value)]) -> Ordering {
    for ((an, av), (bn, bv)) in a.iter().zip(b) {
        let order = an.cmp(bn).then_with(|| compare_values(av, bv));
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// A total order of values: numbers by size, then strings, booleans, lists, objects, null.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    fn rank(v: &Value) -> u8 {
        match v {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => a
            .iter()
            .zip(b)
            .map(|(a, b)| compare_values(a, b))
            .find(|o| *o != Ordering::Equal)
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .zip(b)
            .map(|((ak, av), (bk, bv))| ak.cmp(bk).then_with(|| compare_values(av, bv)))
            .find(|o| *o != Ordering::Equal)
            .unwrap_or_else(|| a.len().cmp(&b.len())),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_i64(), b.as_i64()) {
        return a.cmp(&b);
    }
    if let (Some(a), Some(b)) = (a.as_u64(), b.as_u64()) {
        return a.cmp(&b);
    }
    let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Whether two values are the same to a merge: 1 and 1.0 are.
pub(crate) fn equal_values(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_values(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ak, av), (bk, bv))| ak == bk && equal_values(av, bv))
        }
        _ => a == b,
    }
}
