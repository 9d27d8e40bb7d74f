//! What Go's standard library makes of texts, where the API shows it: times, durations, URIs, base64, numbers.
//!
//! Pure functions, with Go's own error texts. Invariant: nothing here is laxer than Go.

/// How the reference prints the path of an error that has none.
pub(crate) const NIL: &str = "<nil>";

/// Go's `%v` of a float64: the shortest digits, with an exponent below 1e-04 and from 1e+06 on.
pub(crate) fn float(v: f64) -> String {
    if !v.is_finite() {
        return if v.is_nan() {
            "NaN".into()
        } else if v > 0.0 {
            "+Inf".into()
        } else {
            "-Inf".into()
        };
    }
    // `{:e}` gives the shortest digits: "1.5e3".
    let text = format!("{v:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{v}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// `time.Parse("2006-01-02", s)` succeeds.
pub(crate) fn date(s: &str) -> bool {
    let b = s.as_bytes();
    b.len() == 10 && {
        let mut rest = s;
        calendar(&mut rest).is_ok_and(|exists| exists) && rest.is_empty()
    }
}

/// Why a time doesn't parse: what stands there, and the element of the layout that was expected.
enum Stop<'a> {
    Expected(&'a str, &'static str),
    OutOfRange(&'static str),
    Extra(&'a str),
}

fn two<'a>(s: &mut &'a str, element: &'static str) -> Result<u32, Stop<'a>> {
    let b = s.as_bytes();
    if b.len() < 2 || !b[0].is_ascii_digit() || !b[1].is_ascii_digit() {
        return Err(Stop::Expected(s, element));
    }
    let n = u32::from(b[0] - b'0') * 10 + u32::from(b[1] - b'0');
    *s = &s[2..];
    Ok(n)
}

fn literal<'a>(s: &mut &'a str, text: &'static str) -> Result<(), Stop<'a>> {
    match s.strip_prefix(text) {
        Some(rest) => {
            *s = rest;
            Ok(())
        }
        None => Err(Stop::Expected(s, text)),
    }
}

/// `2006-01-02` at the start of `s`; returns whether the month has such a day.
fn calendar<'a>(s: &mut &'a str) -> Result<bool, Stop<'a>> {
    let b = s.as_bytes();
    if b.len() < 4 || !b[..4].iter().all(u8::is_ascii_digit) {
        return Err(Stop::Expected(s, "2006"));
    }
    let year = s[..4].parse().unwrap_or(0);
    *s = &s[4..];
    literal(s, "-")?;
    let month = two(s, "01")?;
    if !(1..=12).contains(&month) {
        return Err(Stop::OutOfRange("month"));
    }
    literal(s, "-")?;
    let day = two(s, "02")?;
    Ok(day >= 1 && day <= days(year, month))
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The layouts of `metav1.Time` and `metav1.MicroTime`.
const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Reads an RFC 3339 time as `metav1.Time` (`micro` false: any fraction) or `metav1.MicroTime` (exactly six
/// digits) does. The error is Go's.
pub(crate) fn time(s: &str, micro: bool) -> Result<(), String> {
    let layout = if micro { MICROS } else { SECONDS };
    let mut rest = s;
    let parsed = clock(&mut rest, micro).and(if rest.is_empty() { Ok(()) } else { Err(Stop::Extra(rest)) });
    let q = homeostat_model::field::quote;
    parsed.map_err(|stop| match stop {
        Stop::Expected(at, element) => {
            format!("parsing time {} as {}: cannot parse {} as {}", q(s), q(layout), q(at), q(element))
        }
        Stop::OutOfRange(what) => format!("parsing time {}: {what} out of range", q(s)),
        Stop::Extra(at) => format!("parsing time {}: extra text: {}", q(s), q(at)),
    })
}

fn clock<'a>(s: &mut &'a str, micro: bool) -> Result<(), Stop<'a>> {
    let day_exists = calendar(s)?;
    literal(s, "T")?;
    let hour = two(s, "15")?;
    literal(s, ":")?;
    let minute = two(s, "04")?;
    literal(s, ":")?;
    let second = two(s, "05")?;
    for (n, most, what) in [(hour, 23, "hour"), (minute, 59, "minute"), (second, 59, "second")] {
        if n > most {
            return Err(Stop::OutOfRange(what));
        }
    }
    if micro {
        let b = s.as_bytes();
        if b.len() < 7 || !matches!(b[0], b'.' | b',') || !b[1..7].iter().all(u8::is_ascii_digit) {
            return Err(Stop::Expected(s, ".000000"));
        }
        *s = &s[7..];
    } else if s.starts_with(['.', ',']) {
        let digits = s[1..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            *s = &s[1 + digits..];
        }
    }
    if let Some(rest) = s.strip_prefix('Z') {
        *s = rest;
    } else {
        let zone = s.as_bytes();
        let good = zone.len() >= 6
            && matches!(zone[0], b'+' | b'-')
            && zone[3] == b':'
            && [1, 2, 4, 5].iter().all(|i| zone[*i].is_ascii_digit());
        if !good {
            return Err(Stop::Expected(s, "Z07:00"));
        }
        if &zone[1..3] > b"24".as_slice() || &zone[4..6] > b"60".as_slice() {
            return Err(Stop::OutOfRange("time zone offset"));
        }
        *s = &s[6..];
    }
    // Go looks at the whole text before it complains of the day.
    if day_exists { Ok(()) } else { Err(Stop::OutOfRange("day")) }
}

/// `time.ParseDuration`: nanoseconds, if `s` is one.
pub(crate) fn duration(s: &str) -> Option<i64> {
    let (negative, mut rest) = match s.as_bytes().first() {
        Some(b'-') => (true, &s[1..]),
        Some(b'+') => (false, &s[1..]),
        _ => (false, s),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: f64 = 0.0;
    let mut exact: i128 = 0;
    while !rest.is_empty() {
        let number = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let text = &rest[..number];
        if text.is_empty() || text == "." || text.matches('.').count() > 1 {
            return None;
        }
        rest = &rest[number..];
        let unit_len = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let unit: i64 = match &rest[..unit_len] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        rest = &rest[unit_len..];
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()?.into() };
        exact += whole * i128::from(unit);
        if !fraction.is_empty() {
            total += format!("0.{fraction}").parse::<f64>().ok()? * unit as f64;
        }
    }
    let nanos = exact + total as i128;
    i64::try_from(if negative { -nanos } else { nanos }).ok()
}

/// `url.ParseRequestURI(s)` succeeds.
pub(crate) fn request_uri(s: &str) -> bool {
    if s.is_empty() || s.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if s == "*" {
        return true;
    }
    let mut scheme = "";
    let mut rest = s;
    for (i, b) in s.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return false,
            b':' => {
                scheme = &s[..i];
                rest = &s[i + 1..];
                break;
            }
            _ => break,
        }
    }
    rest = rest.split('?').next().unwrap_or(rest);
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    if !scheme.is_empty()
        && let Some(after) = rest.strip_prefix("//")
    {
        let end = after.find('/').unwrap_or(after.len());
        if !authority(&after[..end]) {
            return false;
        }
        rest = &after[end..];
    }
    percent_encoded(rest)
}

fn percent_encoded(s: &str) -> bool {
    let b = s.as_bytes();
    (0..b.len()).filter(|i| b[*i] == b'%').all(|i| {
        b.get(i + 1).is_some_and(u8::is_ascii_hexdigit) && b.get(i + 2).is_some_and(u8::is_ascii_hexdigit)
    })
}

fn authority(s: &str) -> bool {
    let (user, host) = match s.rsplit_once('@') {
        Some((user, host)) => (user, host),
        None => ("", s),
    };
    let user_ok = percent_encoded(user)
        && user.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c));
    let port_ok =
        |p: &str| p.is_empty() || p.strip_prefix(':').is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    let host_ok = if host.starts_with('[') {
        match host.rfind(']') {
            Some(end) => port_ok(&host[end + 1..]),
            None => false,
        }
    } else {
        let (name, port) = host.rfind(':').map_or((host, ""), |i| host.split_at(i));
        // A name may hold only UTF-8 in percent-encoding, and no space or delimiter.
        port_ok(port)
            && percent_encoded(name)
            && !name.chars().any(|c| " \"<>\\^`{|}#/?@[]".contains(c))
            && !name.contains(':')
    };
    user_ok && host_ok
}

/// Where standard base64 goes wrong, as `base64.CorruptInputError` counts; `None` if it is right.
pub(crate) fn base64_error(s: &str) -> Option<usize> {
    let b = s.as_bytes();
    let mut i = 0;
    let skip = |mut i: usize| {
        while i < b.len() && matches!(b[i], b'\n' | b'\r') {
            i += 1;
        }
        i
    };
    loop {
        let mut n = 0;
        while n < 4 {
            i = skip(i);
            if i == b.len() {
                return match n {
                    0 => None,
                    // Go counts back to where the group began.
                    _ => Some(i - n),
                };
            }
            let c = b[i];
            i += 1;
            if c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/') {
                n += 1;
                continue;
            }
            if c != b'=' {
                return Some(i - 1);
            }
            match n {
                0 | 1 => return Some(i - 1),
                2 => {
                    i = skip(i);
                    if i == b.len() {
                        return Some(b.len());
                    }
                    if b[i] != b'=' {
                        return Some(i);
                    }
                    i += 1;
                }
                _ => {}
            }
            i = skip(i);
            return if i < b.len() { Some(i) } else { None };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_in_go() {
        for (v, want) in [
            (0.5, "0.5"),
            (1.0, "1"),
            (65535.0, "65535"),
            (100.0, "100"),
            (1e21, "1e+21"),
            (1e6, "1e+06"),
            (123456.5, "123456.5"),
            (1.5e-7, "1.5e-07"),
            (-3.25, "-3.25"),
            (0.0001, "0.0001"),
        ] {
            assert_eq!(float(v), want);
        }
    }

    #[test]
    fn times_fail_with_gos_texts() {
        let cases = [
            ("2024-01-02T03:04:05Z", false, ""),
            ("2024-01-02T03:04:05.5+01:00", false, ""),
            ("2024-01-02T03:04:05.000001Z", true, ""),
            (
                "yesterday",
                false,
                r#"parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006""#,
            ),
            (
                "2024-05-01T10:00:10Z",
                true,
                r#"parsing time "2024-05-01T10:00:10Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#,
            ),
            ("2024-13-02T03:04:05Z", false, r#"parsing time "2024-13-02T03:04:05Z": month out of range"#),
            ("2023-02-29T03:04:05Z", false, r#"parsing time "2023-02-29T03:04:05Z": day out of range"#),
            ("2024-01-02T03:04:05Zx", false, r#"parsing time "2024-01-02T03:04:05Zx": extra text: "x""#),
            (
                "2024-01-02",
                false,
                r#"parsing time "2024-01-02" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
            (
                "é024-01-02T03:04:05Zé",
                false,
                r#"parsing time "é024-01-02T03:04:05Zé" as "2006-01-02T15:04:05Z07:00": cannot parse "é024-01-02T03:04:05Zé" as "2006""#,
            ),
        ];
        for (text, micro, want) in cases {
            assert_eq!(time(text, micro).err().unwrap_or_default(), want);
        }
    }

    #[test]
    fn durations_are_gos() {
        for (text, want) in [
            ("1h30m", Some(5_400_000_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("-3ms", Some(-3_000_000)),
            ("0", Some(0)),
            ("1", None),
            ("", None),
            ("1d", None),
            ("1.2.3s", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(duration(text), want, "{text}");
        }
    }

    #[test]
    fn base64_fails_where_go_says() {
        for (text, want) in [
            ("YQ==", None),
            ("YWJj", None),
            ("", None),
            ("pas*", Some(3)),
            ("not base64!", Some(3)),
            ("YQ", Some(0)),
            ("YQ=", Some(3)),
            ("YWJj\n", None),
        ] {
            assert_eq!(base64_error(text), want, "{text}");
        }
    }
}
