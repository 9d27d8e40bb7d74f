//! Lengths of time as people write them, in Go's form: `1h30m`, `2.5s`, `300ms`.
//!
//! Only lengths that can pass are admitted: no negative ones. Printed, a span reads as Go prints it, so that texts
//! such as "back-off 5m0s" are the kubelet's.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A length of time, written as Go writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no length of time; write one such as 300ms, 5s or 1h30m")]
pub struct BadSpan(String);

/// What the API server holds the text to; [`Span::parse`] takes what this takes.
const PATTERN: &str = r"^([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h))+$";
/// A century: longer is as good as for ever, and sums of a few don't overflow.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

impl Span {
    /// Reads a length of time.
    pub fn parse(text: &str) -> Result<Self, BadSpan> {
        let bad = || BadSpan(text.to_owned());
        let (mut rest, mut total) = (text, 0.0_f64);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
            let (number, tail) = rest.split_at(digits);
            let unit = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
            let seconds = match &tail[..unit] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(bad()),
            };
            total += number.parse::<f64>().map_err(|_| bad())? * seconds;
            rest = &tail[unit..];
        }
        if text.is_empty() {
            return Err(bad());
        }
        Ok(Self(Duration::try_from_secs_f64(total).unwrap_or(LONGEST).min(LONGEST)))
    }
}

impl TryFrom<String> for Span {
    type Error = BadSpan;

    fn try_from(text: String) -> Result<Self, BadSpan> {
        Self::parse(&text)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        homeostat_model::duration::go(span.0)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": PATTERN, "maxLength": 64})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, millis: Option<u64>, printed: &str) {
        let span = Span::parse(text).ok();
        assert_eq!(span.map(|s| s.0), millis.map(Duration::from_millis), "{text}");
        if let Some(span) = span {
            assert_eq!(String::from(span), printed);
        }
    }

    #[test]
    fn lengths_read_and_print_as_gos() {
        check("300ms", Some(300), "300ms");
        check("5s", Some(5_000), "5s");
        check("2.5s", Some(2_500), "2.5s");
        check("1h30m", Some(5_400_000), "1h30m0s");
        check("160s", Some(160_000), "2m40s");
        check("5m", Some(300_000), "5m0s");
        check("0s", Some(0), "0s");
        for bad in ["", "5", "s", "-1s", "5 s", "1d", "1..2s", "1s2"] {
            check(bad, None, "");
        }
    }

    #[test]
    fn what_is_longer_than_a_century_is_a_century() {
        assert_eq!(Span::parse("999999999h").unwrap().0, LONGEST);
    }
}
