//! OpenAPI formats of strings, as apiextensions knows them (kube-openapi's `strfmt`); unknown ones say nothing.
//!
//! Only whether a text has the format; nothing is converted. Some are laxer than their names promise, since that
//! is what the reference takes: `duration` finds `3 weeks`, and `PT1H` for its `1H`.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use homeostat_model::validation;
use regex::Regex;

use crate::golang;

/// A format of strings that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

impl Format {
    /// The format of this name, dashes not counted (`date-time` and `datetime` are one).
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" => Self::DateTime,
            "k8sshortname" => Self::ShortName,
            "k8slongname" => Self::LongName,
            _ => return None,
        })
    }

    /// Whether `s` has the format.
    pub(crate) fn accepts(self, s: &str) -> bool {
        match self {
            Self::BsonObjectId => s.len() == 24 && s.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Uri => golang::request_uri(s),
            Self::Email => email(s),
            Self::Hostname => hostname(s),
            Self::Ipv4 => ip_sloppy(s) && s.contains('.'),
            Self::Ipv6 => s.contains(':') && s.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => cidr(s),
            Self::Mac => mac(s),
            Self::Uuid => UUID.is_match(s),
            Self::Uuid3 => UUID3.is_match(s),
            Self::Uuid4 => UUID4.is_match(s),
            Self::Uuid5 => UUID5.is_match(s),
            Self::Isbn => isbn10(s) || isbn13(s),
            Self::Isbn10 => isbn10(s),
            Self::Isbn13 => isbn13(s),
            Self::CreditCard => credit_card(s),
            Self::Ssn => s.len() == 11 && SSN.is_match(s),
            Self::HexColor => HEX_COLOR.is_match(s),
            Self::RgbColor => RGB_COLOR.is_match(s),
            Self::Byte => BYTE.is_match(s),
            Self::Password => true,
            Self::Date => golang::date(s),
            Self::Duration => golang::duration(s).is_some() || loose_duration(s),
            Self::DateTime => date_time(s),
            Self::ShortName => validation::dns1123_label_value(s).is_empty(),
            Self::LongName => validation::dns1123_subdomain_value(s).is_empty(),
        }
    }
}

macro_rules! patterns {
    ($($name:ident = $source:expr;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| {
            // A constant; the test below compiles every one.
            Regex::new($source).unwrap()
        });)*
        #[cfg(test)]
        fn all_patterns() -> Vec<&'static Regex> {
            vec![$(&$name),*]
        }
    };
}

patterns! {
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    HOSTNAME = concat!(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}]",
        r"(([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    );
    CREDIT_CARD = concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    );
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = concat!(
        r"^rgb\([\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])",
        r"[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])",
        r"[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*\)$",
    );
    BYTE = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    TIME = "^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    DURATION = "([0-9]+)[\\t\\n\\f\\r ]*([A-Za-zµ]+)";
}

fn hostname(s: &str) -> bool {
    s.len() <= 255 && HOSTNAME.is_match(s) && s.split('.').all(|label| label.len() <= 63)
}

/// IPv4 with leading zeros, as Go read it before 1.17 and Kubernetes still does.
fn ipv4_sloppy(s: &str) -> bool {
    let octet = |p: &str| {
        !p.is_empty()
            && p.bytes().all(|b| b.is_ascii_digit())
            && p.trim_start_matches('0').len() <= 3
            && p.trim_start_matches('0').parse::<u16>().unwrap_or(0) < 256
    };
    s.split('.').count() == 4 && s.split('.').all(octet)
}

fn ip_sloppy(s: &str) -> bool {
    if !s.contains(':') {
        return ipv4_sloppy(s);
    }
    match s.rsplit_once(':') {
        Some((head, tail)) if tail.contains('.') => {
            ipv4_sloppy(tail) && format!("{head}:1.1.1.1").parse::<Ipv6Addr>().is_ok()
        }
        _ => s.parse::<Ipv6Addr>().is_ok(),
    }
}

fn cidr(s: &str) -> bool {
    let Some((address, bits)) = s.split_once('/') else { return false };
    let most = if address.contains(':') { 128 } else { 32 };
    ip_sloppy(address)
        && !bits.is_empty()
        && bits.len() <= 9
        && bits.bytes().all(|b| b.is_ascii_digit())
        && bits.parse::<u32>().is_ok_and(|n| n <= most)
}

/// EUI-48, EUI-64 or 20 octets: pairs after `:` or `-`, or fours after `.`.
fn mac(s: &str) -> bool {
    let groups = |separator: char, width: usize, counts: [usize; 3]| {
        counts.contains(&s.split(separator).count())
            && s.split(separator).all(|g| g.len() == width && g.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    groups(':', 2, [6, 8, 20]) || groups('-', 2, [6, 8, 20]) || groups('.', 4, [3, 4, 10])
}

fn isbn_digits(s: &str) -> Vec<u8> {
    s.bytes().filter(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b'-')).collect()
}

fn isbn10(s: &str) -> bool {
    let digits = isbn_digits(s);
    let Some((last, first)) = digits.split_last() else { return false };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X')
    {
        return false;
    }
    let weighted: u32 = first.iter().zip(1..).map(|(d, weight)| weight * u32::from(d - b'0')).sum();
    let check = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    (weighted + 10 * check).is_multiple_of(11)
}

fn isbn13(s: &str) -> bool {
    let digits = isbn_digits(s);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = digits[..12].iter().enumerate().map(|(i, d)| [1, 3][i % 2] * u32::from(d - b'0')).sum();
    u32::from(digits[12] - b'0') == (10 - sum % 10) % 10
}

fn credit_card(s: &str) -> bool {
    let digits: String = s.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&digits) {
        return false;
    }
    // Luhn's sum.
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, d)| {
            let n = u32::from(d - b'0') * if i % 2 == 1 { 2 } else { 1 };
            n / 10 + n % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

fn loose_duration(s: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let mut found = false;
    for parts in DURATION.captures_iter(s) {
        if parts[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = parts[2].to_lowercase();
        found |= UNITS.iter().any(|names| {
            names.contains(&unit.as_str()) || names.last().is_some_and(|last| unit.starts_with(last))
        });
    }
    found
}

fn date_time(s: &str) -> bool {
    let lower = s.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    golang::date(date) && TIME.captures(time).is_some_and(|m| &m[1] <= "23" && &m[2] <= "59" && &m[3] <= "59")
}

/// An address as Go's `net/mail` reads one: `a@b`, or a name and `<a@b>`.
fn email(s: &str) -> bool {
    let s = s.trim_matches([' ', '\t']);
    if let Some(inner) = s.strip_suffix('>') {
        return match inner.rsplit_once('<') {
            Some((name, address)) => display_name(name.trim_matches([' ', '\t'])) && addr_spec(address),
            None => false,
        };
    }
    addr_spec(s)
}

fn is_atext(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii()
}

fn is_quoted(s: &str) -> bool {
    let Some(inner) = s.strip_prefix('"').and_then(|s| s.strip_suffix('"')) else { return false };
    let mut escaped = false;
    for c in inner.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' | '\r' | '\n' => return false,
            _ => {}
        }
    }
    !escaped
}

fn display_name(s: &str) -> bool {
    s.is_empty()
        || is_quoted(s)
        || s.split([' ', '\t']).all(|word| word.chars().all(|c| is_atext(c) || c == '.'))
}

fn dot_atom(s: &str) -> bool {
    !s.is_empty() && s.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atext))
}

fn addr_spec(s: &str) -> bool {
    let Some((local, domain)) = s.rsplit_once('@') else { return false };
    let literal = domain.strip_prefix('[').and_then(|d| d.strip_suffix(']')).is_some_and(|d| {
        d.parse::<std::net::IpAddr>().is_ok()
            || d.strip_prefix("IPv6:").is_some_and(|d| d.parse::<Ipv6Addr>().is_ok())
    });
    (dot_atom(local) || is_quoted(local)) && (dot_atom(domain) || literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_take_what_the_reference_takes() {
        for pattern in all_patterns() {
            assert!(!pattern.as_str().is_empty());
        }
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f", "507f1f77bcf86cd79943901g"]),
            (
                "uri",
                &["https://a.b/c?d=e", "/path", "mailto:a@b", "http://[::1]:80/x", "urn:isbn:1"],
                &["", "a b", "example.com/x", "http://a b/", "http://h/%zz", "http://[::1", "http://h:port/"],
            ),
            ("email", &["a@b.c", "A B <a@b>", "\"x y\"@b"], &["a", "a@", "@b", "a@b@", "a b@c", "<a@b"]),
            ("hostname", &["a", "a.example.com", "1a.example.com", "localhost"], &["", "a_b", "-a", "a..b"]),
            ("ipv4", &["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], &["1.2.3", "1.2.3.256", "::1", "a.b.c.d"]),
            ("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "fe80::1%eth0", "::g"]),
            ("cidr", &["10.0.0.0/8", "fd00::/64", "010.0.0.0/8"], &["10.0.0.0", "10.0.0.0/33", "x/8"]),
            (
                "mac",
                &["01:23:45:67:89:ab", "01-23-45-67-89-ab", "0123.4567.89ab"],
                &["01:23", "01:23:45:67:89:zz"],
            ),
            ("uuid", &["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], &["123"]),
            ("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044", "978-0321751042"]),
            ("isbn10", &["0321751043"], &["978-0321751041"]),
            ("creditcard", &["4111 1111 1111 1111", "4111-1111-1111-1111"], &["4111111111111112", "1"]),
            ("ssn", &["111-11-1111", "111 11 1111"], &["111111111", "111-11-111"]),
            ("hexcolor", &["#FFF", "ffffff"], &["#ffff", "#ggg"]),
            ("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2,256)", "rgb(1,2)"]),
            ("byte", &["YQ==", "YWJj"], &["", "Y", "YQ=", "Y_=="]),
            ("password", &["", "x"], &[]),
            ("date", &["2024-02-29"], &["2023-02-29", "2024-2-9", "2024-01-01T00:00:00Z"]),
            ("duration", &["1h30m", "3 weeks", "PT1H", "22 ns", "5 Days"], &["", "x", "1", "soon"]),
            (
                "date-time",
                &["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.678+01:00"],
                &["2024-01-02", "2024-01-02T24:00:00Z", "2024-13-02T03:04:05Z", "2024-01-02T03:04:05"],
            ),
            ("k8s-short-name", &["a-b", "1"], &["A", "a.b", "-a"]),
            ("k8s-long-name", &["a-b.c"], &["a_b", ".a"]),
        ];
        for (name, good, bad) in cases {
            let format = Format::named(name).unwrap();
            for s in *good {
                assert!(format.accepts(s), "{name} takes {s:?}");
            }
            for s in *bad {
                assert!(!format.accepts(s), "{name} refuses {s:?}");
            }
        }
        assert_eq!(Format::named("int-or-string"), None);
    }
}
