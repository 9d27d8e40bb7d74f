//! Times between RFC 3339 text and seconds since 1970.
//!
//! `Time` has whole seconds, `MicroTime` six digits after them; both are written in UTC.

use jiff::Timestamp;
use jiff::fmt::temporal::{DateTimeParser, DateTimePrinter};

/// Year 1, which Go takes for no time at all.
pub(crate) const ZERO: i64 = -62_135_596_800;

/// `2026-01-02T03:04:05Z`; `None` outside the years 0 to 9999.
pub(crate) fn seconds(seconds: i64) -> Option<String> {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
    print(&PRINTER, Timestamp::from_second(seconds).ok()?)
}

/// `2026-01-02T03:04:05.000006Z`; nanoseconds are cut.
pub(crate) fn micros(seconds: i64, nanos: i64) -> Option<String> {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
    let nanos = i32::try_from(nanos).ok()? / 1000 * 1000;
    let whole = Timestamp::from_second(seconds).ok()?;
    print(&PRINTER, whole.checked_add(jiff::SignedDuration::from_nanos(nanos.into())).ok()?)
}

fn print(printer: &DateTimePrinter, at: Timestamp) -> Option<String> {
    let text = printer.timestamp_to_string(&at);
    (!text.starts_with('-')).then_some(text)
}

/// Seconds and nanoseconds, the latter never negative.
pub(crate) fn parse(text: &str) -> Option<(i64, i32)> {
    const PARSER: DateTimeParser = DateTimeParser::new();
    let at = PARSER.parse_timestamp(text).ok()?;
    let (seconds, nanos) = (at.as_second(), at.subsec_nanosecond());
    Some(if nanos < 0 { (seconds - 1, nanos + 1_000_000_000) } else { (seconds, nanos) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_are_read() {
        for text in
            ["1970-01-01T00:00:00Z", "2026-11-30T06:00:00Z", "1969-12-31T23:59:58Z", "9999-12-30T00:00:00Z"]
        {
            let (s, n) = parse(text).unwrap();
            assert_eq!((seconds(s).as_deref(), n), (Some(text), 0));
        }
        for text in
            ["2026-11-30T06:00:00.000001Z", "1969-12-31T23:59:58.999999Z", "1970-01-01T00:00:00.000000Z"]
        {
            let (s, n) = parse(text).unwrap();
            assert_eq!(micros(s, n.into()).as_deref(), Some(text));
        }
        assert_eq!(parse("2026-11-30T06:00:00+01:00"), parse("2026-11-30T05:00:00Z"));
        assert_eq!(parse("0001-01-01T00:00:00Z"), Some((ZERO, 0)));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(seconds(i64::MAX), None);
        assert_eq!(micros(0, i64::MIN), None);
    }
}
