//! The one visitor that makes values of whatever serde reads, for JSON and YAML alike.
//!
//! It counts levels and meets keys that stand twice; how such a key is told of is the [`Source`]'s. Invariant: numbers
//! are what Go's unstructured objects hold, and of a key that stands twice the last value counts.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::scan;
use crate::path::Path;

/// A notation: how its keys are read, and what is noted of one that stands twice.
pub(super) trait Source {
    /// A key as it is read.
    type Key: DeserializeOwned;

    /// The key's text, and its line where it is known.
    fn key(key: Self::Key) -> (String, u64);

    /// Notes that a key of the map at a path stands twice.
    fn twice(map: &Path<'_>, key: &str, line: u64, duplicates: &mut Vec<String>);
}

/// Reads one value.
pub(super) struct Seed<'a, S> {
    path: &'a Path<'a>,
    /// Levels that may still come.
    depth: usize,
    duplicates: &'a mut Vec<String>,
    source: PhantomData<S>,
}

impl<'a, S: Source> Seed<'a, S> {
    pub(super) fn new(depth: usize, duplicates: &'a mut Vec<String>) -> Self {
        Self { path: &Path::Root, depth, duplicates, source: PhantomData }
    }

    /// The seed of what is inside.
    fn inner<'b>(&'b mut self, path: &'b Path<'b>, depth: usize) -> Seed<'b, S> {
        Seed { path, depth, duplicates: &mut *self.duplicates, source: PhantomData }
    }
}

impl<'de, S: Source> DeserializeSeed<'de> for Seed<'_, S> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: Source> Visitor<'de> for Seed<'_, S> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(if v > i64::MAX as u64 { number(v as f64) } else { v.into() })
    }

    fn visit_i128<E>(self, v: i128) -> Result<Value, E> {
        Ok(number(v as f64))
    }

    fn visit_u128<E>(self, v: u128) -> Result<Value, E> {
        Ok(number(v as f64))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(number(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut items = Vec::new();
        loop {
            let path = self.path.index(items.len());
            match access.next_element_seed(self.inner(&path, depth))? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<S::Key>()? {
            let (key, line) = S::key(key);
            if map.contains_key(&key) {
                S::twice(self.path, &key, line, self.duplicates);
            }
            let path = self.path.field(&key);
            let value = access.next_value_seed(self.inner(&path, depth))?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn deeper<E: serde::de::Error>(depth: usize) -> Result<usize, E> {
    depth.checked_sub(1).ok_or_else(|| E::custom(scan::TOO_DEEP))
}

/// A float as Go's unstructured objects end up holding it, once written and read again.
pub(super) fn number(v: f64) -> Value {
    if v.fract() == 0.0 && v.abs() < 9_223_372_036_854_775_807.0 {
        return (v as i64).into();
    }
    if v.fract() == 0.0 && v > 0.0 {
        // Go writes the shortest digits and fills up with zeros.
        if let Ok(n) = v.to_string().parse::<u64>() {
            return n.into();
        }
    }
    Number::from_f64(v).map_or(Value::Null, Value::Number)
}
