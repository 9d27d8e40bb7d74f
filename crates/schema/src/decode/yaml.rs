//! YAML to values as Go's `sigs.k8s.io/yaml` converts it, for bodies of apply.
//!
//! YAML 1.1 as far as its booleans go (`yes`, `on`). JSON is YAML: it takes the faster way. Invariant: aliases and
//! nesting are bounded by the parser's budget.

use serde::de::DeserializeSeed;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::value::{Seed, Source};
use super::{ParseError, parse_json};
use crate::path::Path;

/// Parses YAML (or JSON). Returns what Go's strict decoder says of keys that stand twice, one text per key:
/// `line 4: key "host" already set in map`. [`yaml_duplicates`] makes one error of them.
pub fn parse_yaml(bytes: &[u8], max_depth: usize) -> Result<(Value, Vec<String>), ParseError> {
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{')
        && let Ok((value, duplicates)) = parse_json(bytes, max_depth)
        && duplicates.is_empty()
    {
        return Ok((value, duplicates));
    }
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        with_snippet: false,
    };
    let mut duplicates = Vec::new();
    let parsed = serde_saphyr::with_deserializer_from_slice_with_options(bytes, options, |deserializer| {
        Seed::<Yaml>::new(max_depth, &mut duplicates).deserialize(deserializer)
    });
    match parsed {
        Ok(value) => Ok((value, duplicates)),
        Err(error) => Err(ParseError(format!("error converting YAML to JSON: yaml: {}", explain(&error)))),
    }
}

/// The error of Go's strict decoder for duplicates that [`parse_yaml`] found.
pub fn yaml_duplicates(duplicates: &[String]) -> ParseError {
    ParseError(format!(
        "error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
        duplicates.join("\n  ")
    ))
}

/// `line 1: did not find expected ',' or ']'`
fn explain(error: &serde_saphyr::Error) -> String {
    let line = error.location().map(|l| l.line());
    let text = error.without_snippet().to_string();
    // The parser's context and position go: libyaml's Go port prints the line and the problem.
    let mut text = text.lines().next().unwrap_or_default();
    for cut in [" at line ", " (line "] {
        text = text.split_once(cut).map_or(text, |(head, _)| head);
    }
    let problem = match text.strip_prefix("error: ").unwrap_or(text) {
        "unclosed bracket '['" => "did not find expected ',' or ']'",
        "unclosed bracket '{'" => "did not find expected ',' or '}'",
        problem if problem.starts_with("unexpected character") || problem.starts_with("tabs ") => {
            "found character that cannot start any token"
        }
        problem => problem,
    };
    let problem = match problem.rsplit_once(", did not find ") {
        Some((_, rest)) => format!("did not find {rest}"),
        None => match problem.rsplit_once(", expected ") {
            Some((_, rest)) => format!("did not find expected {rest}"),
            None => problem
                .rsplit_once(", found ")
                .map_or(problem.to_owned(), |(_, rest)| format!("found {rest}")),
        },
    };
    match line {
        Some(line) => format!("line {line}: {problem}"),
        None => problem,
    }
}

/// YAML's keys, told of by their lines.
struct Yaml;

impl Source for Yaml {
    type Key = Spanned<String>;

    fn key(key: Spanned<String>) -> (String, u64) {
        (key.value, key.referenced.line())
    }

    fn twice(_map: &Path<'_>, key: &str, line: u64, duplicates: &mut Vec<String>) {
        let key = homeostat_model::field::quote(key);
        duplicates.push(format!("line {line}: key {key} already set in map"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_reads_as_in_go() {
        let cases = [
            (
                "a: 1\nb: [x, yes, null]\nc: {d: \"1\"}\n",
                json!({"a": 1, "b": ["x", true, null], "c": {"d": "1"}}),
            ),
            ("1: a\ntrue: b\n", json!({"1": "a", "true": "b"})),
            ("{\"a\": 1.0}", json!({"a": 1})),
            ("a: &x {b: 1}\nc: *x\n", json!({"a": {"b": 1}, "c": {"b": 1}})),
            ("a: |\n  x\n  y\n", json!({"a": "x\ny\n"})),
            ("", json!(null)),
        ];
        for (text, want) in cases {
            assert_eq!(parse_yaml(text.as_bytes(), 20).map(|p| p.0), Ok(want), "{text}");
        }
    }

    #[test]
    fn errors_and_duplicates_read_as_in_go() {
        let text = "apiVersion: v1\nkind: Gateway\nmetadata: {name: warn}\nspec: {host: a, host: b}\n";
        let (value, duplicates) = parse_yaml(text.as_bytes(), 20).unwrap();
        assert_eq!(value["spec"], json!({"host": "b"}));
        assert_eq!(
            yaml_duplicates(&duplicates).to_string(),
            "error converting YAML to JSON: yaml: unmarshal errors:\n  line 4: key \"host\" already set in map"
        );
        let errors = [
            (
                "spec: [unclosed",
                "error converting YAML to JSON: yaml: line 1: did not find expected ',' or ']'",
            ),
            ("a: {b: 1", "error converting YAML to JSON: yaml: line 1: did not find expected ',' or '}'"),
            (
                "a: b: c",
                "error converting YAML to JSON: yaml: line 1: mapping values are not allowed in this context",
            ),
            (
                "a: @x",
                "error converting YAML to JSON: yaml: line 1: found character that cannot start any token",
            ),
            (
                "a:\n\tb: 1",
                "error converting YAML to JSON: yaml: line 2: found character that cannot start any token",
            ),
        ];
        for (text, want) in errors {
            assert_eq!(parse_yaml(text.as_bytes(), 20).unwrap_err().to_string(), want);
        }
        assert!(parse_yaml("[".repeat(100_000).as_bytes(), 256).is_err());
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
            + &(0..9)
                .map(|i| {
                    let (from, to) = ((b'a' + i) as char, (b'b' + i) as char);
                    format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 9].join(","))
                })
                .collect::<String>();
        assert!(parse_yaml(bomb.as_bytes(), 256).is_err(), "aliases that multiply are refused");
    }
}
