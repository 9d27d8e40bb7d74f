//! JSON to values, telling of keys that stand twice.
//!
//! Numbers become what Go's unstructured objects hold: whole ones integers (`3.0` is 3), those beyond 64 bits floats.
//! Invariant: of a key that stands twice the last value counts.

use serde::de::DeserializeSeed;
use serde_json::Value;

use super::value::{Seed, Source};
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
    let value = Seed::<Json>::new(depth, duplicates).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// JSON's keys, told of by their paths.
struct Json;

impl Source for Json {
    type Key = String;

    fn key(key: String) -> (String, u64) {
        (key, 0)
    }

    fn twice(map: &Path<'_>, key: &str, _line: u64, duplicates: &mut Vec<String>) {
        let path = map.field(key).to_string();
        if duplicates.len() < MAX_DUPLICATES && !duplicates.contains(&path) {
            duplicates.push(path);
        }
    }
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
