//! Reads answers as Go's encoding/json does, which is what extenders are written against: field names without regard to
//! case, `null` and what is left out as the zero value, unknown fields passed over.
//!
//! What has the wrong type is an error, with the field's name.

use std::collections::BTreeMap;

use serde_json::Value;

/// What can be an answer, or part of one. `Default` is the zero value.
pub(super) trait Read: Sized + Default {
    /// Reads what isn't `null`.
    fn read(value: &Value) -> Result<Self, String>;

    /// Reads what may be.
    fn of(value: &Value) -> Result<Self, String> {
        if value.is_null() { Ok(Self::default()) } else { Self::read(value) }
    }
}

fn wrong<T>(value: &Value, wanted: &str) -> Result<T, String> {
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Err(format!("{is} where {wanted} is expected"))
}

impl Read for String {
    fn read(value: &Value) -> Result<Self, String> {
        value.as_str().map_or_else(|| wrong(value, "a string"), |text| Ok(text.to_owned()))
    }
}

impl Read for i64 {
    fn read(value: &Value) -> Result<Self, String> {
        value.as_i64().map_or_else(|| wrong(value, "an integer"), Ok)
    }
}

impl<T: Read> Read for Option<T> {
    fn read(value: &Value) -> Result<Self, String> {
        T::read(value).map(Some)
    }
}

impl<T: Read> Read for Vec<T> {
    fn read(value: &Value) -> Result<Self, String> {
        let Some(items) = value.as_array() else { return wrong(value, "an array") };
        items.iter().map(T::of).collect()
    }
}

impl<T: Read> Read for BTreeMap<String, T> {
    fn read(value: &Value) -> Result<Self, String> {
        let Some(fields) = value.as_object() else { return wrong(value, "an object") };
        fields.iter().map(|(key, value)| Ok((key.clone(), T::of(value)?))).collect()
    }
}

/// The fields of an object.
pub(super) struct Fields<'a>(&'a serde_json::Map<String, Value>);

impl<'a> Fields<'a> {
    pub(super) fn of(value: &'a Value) -> Result<Self, String> {
        value.as_object().map_or_else(|| wrong(value, "an object"), |fields| Ok(Self(fields)))
    }

    /// The field of this name: as it is written, else in any case.
    pub(super) fn get<T: Read>(&self, name: &str) -> Result<T, String> {
        let other = || self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        match self.0.get(name).or_else(other) {
            None => Ok(T::default()),
            Some(value) => T::of(value).map_err(|why| format!("{name}: {why}")),
        }
    }
}
