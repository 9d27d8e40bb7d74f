//! Lengths of time in the words of the API's texts.

use std::fmt::Write as _;
use std::time::Duration;

/// As Go's `Duration.String` prints it: `5m0s`, `1.5s`, `20ms`, `0s`.
pub fn go(d: Duration) -> String {
    if d.is_zero() {
        return "0s".to_owned();
    }
    if d < Duration::from_secs(1) {
        return match d.subsec_nanos() {
            n if n >= 1_000_000 => format!("{}ms", decimal(n / 1_000_000, n % 1_000_000, 6)),
            n if n >= 1_000 => format!("{}µs", decimal(n / 1_000, n % 1_000, 3)),
            n => format!("{n}ns"),
        };
    }
    let seconds = d.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let mut text = String::new();
    if hours > 0 {
        let _ = write!(text, "{hours}h");
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(text, "{minutes}m");
    }
    let rest = u32::try_from(seconds % 60).unwrap_or(0);
    let _ = write!(text, "{}s", decimal(rest, d.subsec_nanos(), 9));
    text
}

fn decimal(whole: u32, part: u32, digits: usize) -> String {
    if part == 0 {
        return whole.to_string();
    }
    let part = format!("{part:0digits$}");
    format!("{whole}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_print_as_gos() {
        for (nanos, want) in [
            (0, "0s"),
            (7, "7ns"),
            (1_500, "1.5µs"),
            (20_000_000, "20ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "1m0s"),
            (5_400_000_000_000, "1h30m0s"),
        ] {
            assert_eq!(go(Duration::from_nanos(nanos)), want);
        }
    }
}
