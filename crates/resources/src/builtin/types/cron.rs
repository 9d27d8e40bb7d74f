//! Whether a schedule is one, with the texts of the reference's parser (robfig/cron's standard five fields).
//!
//! It doesn't compute when a schedule fires; the CronJob controller does.

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds { min: 1, max: 12, names: &MONTHS },
    Bounds { min: 0, max: 6, names: &DAYS },
];

/// Says what is wrong with a schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if let Some(descriptor) = schedule.strip_prefix('@') {
        return match descriptor {
            "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly" => Ok(()),
            _ => match descriptor.strip_prefix("every ") {
                Some(duration) if go_duration(duration) => Ok(()),
                Some(duration) => {
                    Err(format!("failed to parse duration {schedule}: time: invalid duration \"{duration}\""))
                }
                None => Err(format!("unrecognized descriptor: {schedule}")),
            },
        };
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for range in field.split(',').filter(|r| !r.is_empty()) {
            check_range(range, bounds)?;
        }
    }
    Ok(())
}

fn check_range(expression: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = expression.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?"] => (bounds.min, bounds.max),
        [one] => {
            let n = number(one, bounds)?;
            (n, n)
        }
        [from, to] => (number(from, bounds)?, number(to, bounds)?),
        _ => return Err(format!("too many hyphens: {expression}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.max;
            }
            plain_number(step)?
        }
        _ => return Err(format!("too many slashes: {expression}")),
    };
    if start < bounds.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {expression}", bounds.min));
    }
    if end > bounds.max {
        return Err(format!("end of range ({end}) above maximum ({}): {expression}", bounds.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {expression}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {expression}"));
    }
    Ok(())
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let lower = text.to_lowercase();
    match bounds.names.iter().position(|n| *n == lower) {
        Some(i) => Ok(bounds.min + u32::try_from(i).unwrap_or_default()),
        None => plain_number(text),
    }
}

fn plain_number(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(n) if n < 0 => Err(format!("negative number ({n}) not allowed: {text}")),
        Ok(n) => Ok(u32::try_from(n).unwrap_or(u32::MAX)),
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing \"{text}\": invalid syntax"))
        }
    }
}

/// `1h30m`, `90s`, `1.5h`.
fn go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if digits == 0 || !rest[..digits].bytes().any(|b| b.is_ascii_digit()) {
            return false;
        }
        rest = &rest[digits..];
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"].iter().find(|u| {
            rest.strip_prefix(**u)
                .is_some_and(|r| r.is_empty() || r.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        });
        match unit {
            Some(unit) => rest = &rest[unit.len()..],
            None => return false,
        }
    }
    !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules() {
        for (schedule, want) in [
            ("0 3 * * *", ""),
            ("*/5 0-6 1,15 jan-mar MON", ""),
            ("@daily", ""),
            ("@every 1h30m", ""),
            ("61 3 * * *", "end of range (61) above maximum (59): 61"),
            ("every day", "expected exactly 5 fields, found 2: [every day]"),
            ("@never", "unrecognized descriptor: @never"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
        ] {
            assert_eq!(check(schedule).err().unwrap_or_default(), want, "{schedule}");
        }
    }
}
