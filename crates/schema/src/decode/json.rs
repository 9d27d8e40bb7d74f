//! JSON to values, telling of keys that stand twice.
//!
//! Numbers become what Go's unstructured objects hold: whole ones integers (`3.0` is 3), those beyond 64 bits floats.
//! Invariant: of a key that stands twice the last value counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{ParseError, scan};
use crate::path::Path;

/// Duplicates that are told of; Go's decoder stops counting there, too.
const MAX_DUPLICATES: usize = 100;

/// Parses JSON. Returns the paths of keys that stand twice, in the order in which they were met.
///
/// `max_depth` should be at most [`super::MAX_DEPTH`], unless the stack is known to be large.
pub fn parse_json(bytes: &[u8], max_depth: usize) -> Result<(Value, Vec<String>), ParseError> {
    let mut duplicates = Vec::new();
    match parse(bytes, max_depth, &mut duplicates) {
        Ok(value) => Ok((value, duplicates)),
        Err(error) => {
            if let Some(text) = scan::error(bytes, max_depth) {
                return Err(ParseError(text));
            }
            // Go reads broken UTF-8 and lone surrogates as U+FFFD.
            let text = String::from_utf8_lossy(bytes);
            let text = scan::without_lone_surrogates(&text);
            duplicates.clear();
            match parse(text.as_bytes(), max_depth, &mut duplicates) {
                Ok(value) => Ok((value, duplicates)),
                Err(_) => Err(ParseError(error.to_string())),
            }
        }
    }
}

fn parse(bytes: &[u8], depth: usize, duplicates: &mut Vec<String>) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    // The seed counts the levels.
    deserializer.disable_recursion_limit();
    let value = Seed { path: &Path::Root, depth, duplicates }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

pub(super) struct Seed<'a> {
    pub(super) path: &'a Path<'a>,
    pub(super) depth: usize,
    pub(super) duplicates: &'a mut Vec<String>,
}

impl Seed<'_> {
    fn note(&mut self, key: &str) {
        let path = self.path.field(key).to_string();
        if self.duplicates.len() < MAX_DUPLICATES && !self.duplicates.contains(&path) {
            self.duplicates.push(path);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut items = Vec::new();
        loop {
            let path = self.path.index(items.len());
            let seed = Seed { path: &path, depth, duplicates: &mut *self.duplicates };
            match access.next_element_seed(seed)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let depth = deeper(self.depth)?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                self.note(&key);
            }
            let path = self.path.field(&key);
            let value =
                access.next_value_seed(Seed { path: &path, depth, duplicates: &mut *self.duplicates })?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

pub(super) fn deeper<E: serde::de::Error>(depth: usize) -> Result<usize, E> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_what_go_would_hold() {
        let cases = [
            (r#"{"a":[1,"x",true,null,{"b":1.5}]}"#, json!({"a": [1, "x", true, null, {"b": 1.5}]})),
            ("3.0", json!(3)),
            ("-0", json!(0)),
            ("1e2", json!(100)),
            ("12345678901234567890", json!(12_345_678_901_234_567_000_u64)),
            ("0.1", json!(0.1)),
            (" \"\\u00e9\\n\" ", json!("é\n")),
            (r#""\ud800x""#, json!("\u{fffd}x")),
        ];
        for (text, want) in cases {
            assert_eq!(parse_json(text.as_bytes(), 10).map(|p| p.0), Ok(want), "{text}");
        }
        assert_eq!(parse_json(b"\"a\xff\"", 10).map(|p| p.0), Ok(json!("a\u{fffd}")));
    }

    #[test]
    fn keys_that_stand_twice_are_told_where_they_are_met() {
        let text = r#"{"spec":{"port":1,"port":2,"x":1},"spec":{"host":"a","host":"b"},"l":[{},{"k":1,"k":2,"k":3}]}"#;
        let (value, duplicates) = parse_json(text.as_bytes(), 10).unwrap();
        assert_eq!(duplicates, ["spec.port", "spec", "spec.host", "l[1].k"]);
        assert_eq!(value, json!({"spec": {"host": "b"}, "l": [{}, {"k": 3}]}));
    }

    #[test]
    fn depth_is_limited() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(parse_json(nested(10).as_bytes(), 10).is_ok());
        assert_eq!(parse_json(nested(11).as_bytes(), 10), Err(ParseError("exceeded max depth".into())));
        assert!(parse_json(nested(1_000_000).as_bytes(), 256).is_err());
        assert!(parse_json("[".repeat(1_000_000).as_bytes(), 256).is_err());
    }
}
