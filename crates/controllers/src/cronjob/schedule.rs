//! Cron schedules in a time zone, and `@every` a duration.
//!
//! The five fields and nicknames are parsed by `croner`, which finds times on a clock without daylight saving. What a
//! zone's clock shows is such a clock between two of its changes; so a time that is skipped doesn't come that day, and
//! one that comes twice is due twice, as in the reference.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};

/// Who waits for longer waits in vain (the reference's limit).
const LIMIT: SignedDuration = SignedDuration::from_hours(5 * 366 * 24);

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
            Self::Cron(cron, zone) => next_in(cron, zone, then),
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
            Self::Cron(cron, zone) => latest_in(cron, zone, since, now)?,
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

/// What clocks of the zone show at a time, read as if it were UTC; and what has to be taken from such a reading.
fn shown(zone: &TimeZone, at: Timestamp) -> Option<(Zoned, SignedDuration)> {
    let ahead = SignedDuration::from_secs(zone.to_offset(at).seconds().into());
    Some((at.checked_add(ahead).ok()?.to_zoned(TimeZone::UTC), ahead))
}

/// The first time after `then`: what comes first on the clock as it goes until it is set anew, and so on.
fn next_in(cron: &Cron, zone: &TimeZone, then: Timestamp) -> Option<Timestamp> {
    let mut from = (then, false);
    while from.0.duration_since(then) < LIMIT {
        let (clock, ahead) = shown(zone, from.0)?;
        let change = zone.following(from.0).next().map(|t| t.timestamp());
        // What comes on no clock comes at no change of clocks either.
        let found = cron.find_next_occurrence(&clock, from.1).ok()?;
        let next = found.timestamp().checked_sub(ahead).ok()?;
        match change {
            Some(change) if next >= change => from = (change, true),
            _ => return Some(next),
        }
    }
    None
}

/// The last time after `since` and not after `now`, found in the same way backwards.
fn latest_in(cron: &Cron, zone: &TimeZone, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let second = SignedDuration::from_secs(1);
    let mut until = now;
    while until > since {
        let (clock, ahead) = shown(zone, until)?;
        let change = zone.preceding(until.checked_add(second).ok()?).next().map(|t| t.timestamp());
        let found = cron.find_previous_occurrence(&clock, true).ok();
        let latest = found.and_then(|z| z.timestamp().checked_sub(ahead).ok());
        match change {
            Some(change) if latest.is_none_or(|l| l < change) => until = change.checked_sub(second).ok()?,
            _ => return latest,
        }
    }
    None
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
    fn a_skipped_time_does_not_come_and_a_repeated_one_is_due_twice() {
        let new_york = Some("America/New_York");
        // Clocks go from 2:00 to 3:00 on 8 March 2026, and from 2:00 back to 1:00 on 1 November.
        check("30 2 * * *", new_york, "2026-03-07T08:00:00Z", "2026-03-09T06:30:00Z");
        check("30 1 * * *", new_york, "2026-03-07T08:00:00Z", "2026-03-08T06:30:00Z");
        check("0 3 * * *", new_york, "2026-03-07T09:00:00Z", "2026-03-08T07:00:00Z");
        check("*/30 * * * *", new_york, "2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z");
        check("30 1 * * *", new_york, "2026-11-01T00:00:00Z", "2026-11-01T05:30:00Z");
        check("30 1 * * *", new_york, "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z");
        check("30 1 * * *", new_york, "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z");
        let latest = |since: &str, now: &str| {
            let schedule = Schedule::parse("30 1 * * *", new_york).unwrap();
            schedule.latest(at(since), at(now)).map(|t| t.to_string())
        };
        let first = Some("2026-11-01T05:30:00Z".to_owned());
        assert_eq!(latest("2026-10-31T06:00:00Z", "2026-11-01T06:00:00Z"), first);
        assert_eq!(latest("2026-10-31T06:00:00Z", "2026-11-01T06:29:59Z"), first);
        let second = Some("2026-11-01T06:30:00Z".to_owned());
        assert_eq!(latest("2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"), second);
        assert_eq!(latest("2026-11-01T06:30:00Z", "2026-11-01T07:00:00Z"), None);
        let schedule = Schedule::parse("30 2 * * *", new_york).unwrap();
        assert_eq!(schedule.latest(at("2026-03-07T08:00:00Z"), at("2026-03-08T12:00:00Z")), None);
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
