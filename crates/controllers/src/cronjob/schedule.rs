//! Cron schedules in a time zone, and `@every` a duration.
//!
//! The five fields and nicknames are parsed by `croner`; what it makes of daylight saving is what vixie-cron does: a
//! time that is skipped is made up for, one that comes twice is taken once.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// When something is due.
#[derive(Debug)]
pub(super) enum Schedule {
    Cron(Box<Cron>, TimeZone),
    Every(Duration),
}

/// A schedule that can't be kept, as the reference's event about it.
#[derive(Debug, PartialEq)]
pub(super) struct Unparseable {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Schedule {
    pub(super) fn parse(text: &str, zone: Option<&str>) -> Result<Self, Unparseable> {
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|e| Unparseable {
                reason: "UnknownTimeZone",
                message: format!("invalid timeZone: {name:?}: {e}"),
            })?,
        };
        let unparseable = |why: String| Unparseable {
            reason: "UnparseableSchedule",
            message: format!("unparseable schedule: {text:?} : {why}"),
        };
        if let Some(period) = text.trim().strip_prefix("@every ") {
            let period = duration(period).ok_or_else(|| unparseable("not a duration".into()))?;
            return Ok(Self::Every(period));
        }
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|e| unparseable(e.to_string()))?;
        Ok(Self::Cron(Box::new(cron), zone))
    }

    /// The first time after `then`. For a period, `then` is the last one.
    pub(super) fn next(&self, then: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Every(period) => then.checked_add(*period).ok(),
            Self::Cron(cron, zone) => {
                let next: Zoned = cron.find_next_occurrence(&then.to_zoned(zone.clone()), false).ok()?;
                Some(next.timestamp())
            }
        }
    }

    /// The last time after `since` and not after `now`.
    pub(super) fn latest(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let latest = match self {
            Self::Every(period) => {
                let passed = Duration::try_from(now.duration_since(since)).ok()?;
                let n = u32::try_from(passed.as_secs() / period.as_secs().max(1)).ok()?;
                since.checked_add(period.saturating_mul(n)).ok()?
            }
            Self::Cron(cron, zone) => {
                let latest: Zoned = cron.find_previous_occurrence(&now.to_zoned(zone.clone()), true).ok()?;
                latest.timestamp()
            }
        };
        (latest > since && latest <= now).then_some(latest)
    }

    /// The zone in which times are told.
    pub(super) fn zone(&self) -> TimeZone {
        match self {
            Self::Cron(_, zone) => zone.clone(),
            Self::Every(_) => TimeZone::UTC,
        }
    }
}

/// Go's durations in whole seconds at least: `1h30m`, `90s`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += number
            * match &rest[..unit] {
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 0.001,
                _ => return None,
            };
        rest = &rest[unit..];
    }
    // Periods below a second are one, as in the reference.
    Duration::try_from_secs_f64(total.max(1.0).trunc()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(schedule: &str, zone: Option<&str>, then: &str, next: &str) {
        let schedule = Schedule::parse(schedule, zone).unwrap();
        assert_eq!(schedule.next(at(then)).unwrap().to_string(), next);
    }

    #[test]
    fn the_next_time() {
        check("*/5 * * * *", None, "2026-01-01T00:01:00Z", "2026-01-01T00:05:00Z");
        check("0 3 * * *", None, "2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z");
        check("@hourly", None, "2026-01-01T03:10:00Z", "2026-01-01T04:00:00Z");
        check("0 0 1 * 1", None, "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z");
        check("0 9 * * MON-FRI", Some("Europe/Berlin"), "2026-07-04T00:00:00Z", "2026-07-06T07:00:00Z");
        check("0 9 * * *", Some("America/New_York"), "2026-01-01T00:00:00Z", "2026-01-01T14:00:00Z");
        check("@every 1h30m", None, "2026-01-01T00:00:00Z", "2026-01-01T01:30:00Z");
    }

    #[test]
    fn the_latest_time() {
        let latest = |schedule: &str, since: &str, now: &str| {
            let schedule = Schedule::parse(schedule, None).unwrap();
            schedule.latest(at(since), at(now)).map(|t| t.to_string())
        };
        let day = |h: &str| format!("2026-01-01T{h}:00Z");
        assert_eq!(latest("0 * * * *", &day("00:10"), &day("00:50")), None);
        assert_eq!(latest("0 * * * *", &day("00:10"), &day("03:50")), Some(day("03:00")));
        assert_eq!(latest("0 * * * *", &day("00:10"), &day("03:00")), Some(day("03:00")));
        assert_eq!(latest("0 * * * *", &day("03:00"), &day("03:00")), None);
        assert_eq!(latest("@every 10m", &day("00:05"), &day("00:31")), Some(day("00:25")));
        assert_eq!(latest("@every 10m", &day("00:05"), &day("00:14")), None);
    }

    #[test]
    fn bad_schedules_are_refused() {
        let reason = |s, z| Schedule::parse(s, z).unwrap_err().reason;
        for schedule in ["", "* * * *", "61 * * * *", "0 0 * * * *", "@every x"] {
            assert_eq!(reason(schedule, None), "UnparseableSchedule", "{schedule}");
        }
        assert_eq!(reason("* * * * *", Some("Mars/Olympus")), "UnknownTimeZone");
    }

    #[test]
    fn durations_are_gos() {
        assert_eq!(duration("1h30m"), Some(Duration::from_secs(5400)));
        assert_eq!(duration("1.5h"), Some(Duration::from_secs(5400)));
        assert_eq!(duration("10ms"), Some(Duration::from_secs(1)));
        assert_eq!(duration("5"), None);
        assert_eq!(duration("1d"), None);
    }
}
