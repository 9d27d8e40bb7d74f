//! Quantities: `500m`, `1.5Gi`, `12e6`: fixed-point numbers with suffixes, parsed, computed and printed as
//! apimachinery's `resource.Quantity` does.
//!
//! Not a float anywhere. Precision ends at nano (finer values round away from zero) and at 36 significant digits,
//! where the reference goes on; binary quantities are capped at 2^63-1, as there.
//! Invariant: equality and order are those of the numbers, whatever their notation.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use serde_json::Value;

/// Why a text is no quantity. The texts are the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It is not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The number cannot be read.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The notation in which a quantity is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi` (12 × 2^20).
    BinarySi,
    /// `12M` (12 × 10^6).
    #[default]
    DecimalSi,
}

/// A quantity. The default is zero.
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    /// Value = `mantissa` × 10^`scale`; `scale` is at least -9 and `mantissa` below 10^37.
    mantissa: i128,
    scale: i64,
    format: Format,
    /// The text it was parsed from, where the reference keeps it: in its eyes it was canonical already.
    text: Option<Box<str>>,
}

const NANO: i64 = -9;
const BINARY_MAX: i128 = i64::MAX as i128;
const DIGITS: u32 = 36;
const DECIMAL: [(&str, i64); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// A text cut into its parts.
struct Parts<'a> {
    negative: bool,
    integer: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

fn span(text: &str, member: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|b| !member(b)).unwrap_or(text.len()))
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let negative = text.starts_with('-');
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (integer, rest) = span(rest, |b| b.is_ascii_digit());
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => span(rest, |b| b.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, tail) = span(suffix, |b| b"eEinumkKMGTP".contains(&b));
    let tail = tail.strip_prefix(['+', '-']).unwrap_or(tail);
    if !tail.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    let integer = integer.trim_start_matches('0');
    Ok(Parts { negative, integer: if integer.is_empty() { "0" } else { integer }, fraction, suffix })
}

enum Suffix {
    Ten(i64, Format),
    Two(u32),
}

fn interpret(suffix: &str) -> Result<Suffix, QuantityError> {
    if let Some((_, e)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Ok(Suffix::Ten(*e, Format::DecimalSi));
    }
    if let Some((_, e)) = BINARY.iter().find(|(s, _)| *s == suffix) {
        return Ok(Suffix::Two(*e));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    let exponent: i64 = exponent.parse().map_err(|_| QuantityError::Suffix)?;
    // The reference truncates to 32 bits.
    #[allow(clippy::cast_possible_truncation)]
    Ok(Suffix::Ten(i64::from(exponent as i32), Format::DecimalExponent))
}

/// The quotient by a power of ten, rounded away from zero.
fn shrink(mantissa: i128, by: u64) -> i128 {
    if by > 38 {
        return mantissa.signum();
    }
    let divisor = 10_i128.pow(u32::try_from(by).unwrap_or(38));
    let (q, r) = (mantissa / divisor, mantissa % divisor);
    q + r.signum()
}

impl Quantity {
    /// Parses a text such as `1.5Gi`.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let parts = split(text)?;
        let suffix = interpret(parts.suffix)?;
        let digits = [parts.integer, parts.fraction].concat();
        let decimals = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
        let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let sign = if parts.negative { -1 } else { 1 };

        // What fits easily: the reference remembers the text if it looks canonical.
        let (fits, scale, factor) = match suffix {
            Suffix::Ten(e, _) => (length <= 18 && e - decimals >= NANO, e - decimals, 0),
            Suffix::Two(e) => (decimals == 0 && 14 - length - i64::from(e * 3 / 10) >= 0, 0, e),
        };
        if fits {
            let value: i128 = digits.parse().map_err(|_| QuantityError::Numeric)?;
            let (format, canonical) = match suffix {
                Suffix::Ten(_, format) => {
                    (format, scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'))
                }
                Suffix::Two(_) => (Format::BinarySi, value & 7 != 0),
            };
            let text = canonical.then(|| text.into());
            return Ok(Self { mantissa: sign * (value << factor), scale, format, text });
        }

        let mut q = Self::from_digits(&digits, -decimals);
        match suffix {
            Suffix::Ten(e, format) => {
                q.scale = q.scale.saturating_add(e);
                q.format = format;
            }
            Suffix::Two(e) => {
                q.format = Format::BinarySi;
                for _ in 0..e {
                    q.mantissa *= 2;
                    q.trim();
                }
            }
        }
        q.floor_at_nano();
        if q.format == Format::BinarySi {
            let max = Self::integer(BINARY_MAX, Format::BinarySi);
            if q > max {
                q = max;
            }
            if !q.is_zero() && q < Self::integer(1, Format::BinarySi) {
                q.format = Format::DecimalSi;
            }
        }
        q.mantissa *= sign;
        Ok(q)
    }

    /// From a JSON string or number, as objects carry them.
    pub fn from_value(value: &Value) -> Result<Self, QuantityError> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::String(s) => Self::parse(s.trim()),
            Value::Number(n) => Self::parse(&n.to_string()),
            _ => Err(QuantityError::Format),
        }
    }

    /// A whole number.
    pub fn integer(value: i128, format: Format) -> Self {
        let mut q = Self { mantissa: value, scale: 0, format, text: None };
        q.trim();
        q
    }

    /// A number of thousandths.
    pub fn from_milli(value: i128, format: Format) -> Self {
        let mut q = Self { mantissa: value, scale: -3, format, text: None };
        q.trim();
        q
    }

    /// Any number of digits, at 10^`scale`.
    fn from_digits(digits: &str, scale: i64) -> Self {
        let digits = digits.trim_start_matches('0');
        let kept = digits.len().min(DIGITS as usize);
        let (head, tail) = digits.split_at(kept);
        let mut mantissa: i128 = head.parse().unwrap_or(0);
        if tail.bytes().any(|b| b != b'0') {
            mantissa += 1;
        }
        let dropped = i64::try_from(tail.len()).unwrap_or(i64::MAX);
        Self { mantissa, scale: scale.saturating_add(dropped), format: Format::DecimalSi, text: None }
    }

    /// Keeps the mantissa below its limit.
    fn trim(&mut self) {
        let limit = 10_i128.pow(DIGITS);
        while self.mantissa.abs() > limit {
            self.mantissa = shrink(self.mantissa, 1);
            self.scale += 1;
        }
    }

    fn floor_at_nano(&mut self) {
        if self.scale < NANO {
            self.mantissa = shrink(self.mantissa, self.scale.abs_diff(NANO));
            self.scale = NANO;
        }
    }

    /// The number in units of 10^`scale`, rounded away from zero; saturates.
    pub fn scaled(&self, scale: i32) -> i128 {
        let by = self.scale - i64::from(scale);
        if by <= 0 {
            return shrink(self.mantissa, by.unsigned_abs());
        }
        let saturated = if self.mantissa < 0 { i128::MIN } else { i128::MAX };
        match u32::try_from(by).ok().and_then(|by| 10_i128.checked_pow(by)) {
            _ if self.mantissa == 0 => 0,
            Some(factor) => self.mantissa.checked_mul(factor).unwrap_or(saturated),
            None => saturated,
        }
    }

    /// The whole number, rounded away from zero.
    pub fn value(&self) -> i128 {
        self.scaled(0)
    }

    /// The number of thousandths, rounded away from zero.
    pub fn milli(&self) -> i128 {
        self.scaled(-3)
    }

    /// Its notation.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i8 {
        match self.mantissa.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Whether there is nothing behind the decimal point.
    pub fn is_integer(&self) -> bool {
        self.scale >= 0 || self.mantissa % 10_i128.pow(self.digits_behind()) == 0
    }

    fn digits_behind(&self) -> u32 {
        u32::try_from(self.scale.min(0).unsigned_abs()).unwrap_or(9)
    }

    /// Mantissa without factors of ten, and the exponent.
    fn reduced(&self) -> (i128, i64) {
        let (mut m, mut e) = (self.mantissa, self.scale);
        while m != 0 && m % 10 == 0 {
            m /= 10;
            e += 1;
        }
        (m, if m == 0 { 0 } else { e })
    }

    fn plus(&self, other: &Self, sign: i128) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        let (mut a, mut b) = ((self.mantissa, self.scale), (sign * other.mantissa, other.scale));
        // To the finer of the two scales, as far as the digits reach.
        for _ in 0..2 {
            while a.1 > b.1 && a.0 != 0 && a.0.abs() < 10_i128.pow(DIGITS) {
                a = (a.0 * 10, a.1 - 1);
            }
            std::mem::swap(&mut a, &mut b);
        }
        let scale = match (a.0, b.0) {
            (0, _) => b.1,
            (_, 0) => a.1,
            _ => a.1.max(b.1),
        };
        let at = |(m, s): (i128, i64)| if m == 0 { 0 } else { shrink(m, s.abs_diff(scale)) };
        let mut sum = Self { mantissa: at(a) + at(b), scale, format, text: None };
        sum.trim();
        sum
    }

    fn magnitude(&self) -> (i64, i128) {
        // Digits before the point, then the digits themselves, aligned.
        let (m, e) = self.reduced();
        let digits = m.unsigned_abs().checked_ilog10().map_or(0, |d| d + 1);
        let aligned = m.unsigned_abs() * 10_u128.pow((DIGITS + 2).saturating_sub(digits));
        (i64::from(digits) + e, i128::try_from(aligned).unwrap_or(i128::MAX))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.scale == other.scale {
            return self.mantissa.cmp(&other.mantissa);
        }
        self.signum().cmp(&other.signum()).then_with(|| match self.signum() {
            0 => Ordering::Equal,
            1 => self.magnitude().cmp(&other.magnitude()),
            _ => other.magnitude().cmp(&self.magnitude()),
        })
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl Add<&Quantity> for &Quantity {
    type Output = Quantity;
    fn add(self, other: &Quantity) -> Quantity {
        self.plus(other, 1)
    }
}

impl Sub<&Quantity> for &Quantity {
    type Output = Quantity;
    fn sub(self, other: &Quantity) -> Quantity {
        self.plus(other, -1)
    }
}

impl AddAssign<&Quantity> for Quantity {
    fn add_assign(&mut self, other: &Quantity) {
        *self = self.plus(other, 1);
    }
}

impl SubAssign<&Quantity> for Quantity {
    fn sub_assign(&mut self, other: &Quantity) {
        *self = self.plus(other, -1);
    }
}

impl Neg for Quantity {
    type Output = Quantity;
    fn neg(self) -> Quantity {
        Self { mantissa: -self.mantissa, text: None, ..self }
    }
}

impl std::iter::Sum for Quantity {
    fn sum<I: Iterator<Item = Quantity>>(all: I) -> Quantity {
        all.fold(Quantity::default(), |a, b| &a + &b)
    }
}

impl std::str::FromStr for Quantity {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, the largest suffix that allows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return f.write_str(text);
        }
        if self.is_zero() {
            return f.write_str("0");
        }
        if self.format == Format::BinarySi && self.is_integer() {
            let mut n = self.value();
            if n.abs() >= 1024 {
                let mut power = 0;
                while n % 1024 == 0 && power < BINARY.len() {
                    n /= 1024;
                    power += 1;
                }
                let suffix = power.checked_sub(1).and_then(|p| BINARY.get(p)).map_or("", |(s, _)| s);
                return write!(f, "{n}{suffix}");
            }
        }
        let (mut m, mut e) = self.reduced();
        while e.rem_euclid(3) != 0 {
            m *= 10;
            e -= 1;
        }
        let si =
            (self.format != Format::DecimalExponent).then(|| DECIMAL.iter().find(|(_, x)| *x == e)).flatten();
        match si {
            Some((suffix, _)) => write!(f, "{m}{suffix}"),
            None if e == 0 => write!(f, "{m}"),
            None => write!(f, "{m}e{e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn q(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn canonical_forms() {
        for (text, want) in [
            ("0", "0"),
            ("0Mi", "0"),
            ("0.0", "0"),
            ("-0", "0"),
            ("1", "1"),
            ("1.5", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("1025Mi", "1025Mi"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1024", "1024"),
            ("1000k", "1M"),
            ("12e6", "12e6"),
            ("12E6", "12E6"),
            ("12000e3", "12e6"),
            ("1e-3", "1e-3"),
            ("1.5e3", "1500"),
            ("15e2", "1500"),
            ("1000E", "1e21"),
            ("18446744073709551616", "18446744073709551616"),
            ("1.2345", "1234500u"),
            ("0.9n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("8Ei", "9223372036854775807"),
            ("0.0001Ki", "102400u"),
            ("1.1Ki", "1126400m"),
            ("-1.5Gi", "-1536Mi"),
            // The reference keeps these texts: they look canonical to it.
            ("+5", "+5"),
            ("05", "05"),
            ("1.500", "1.500"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1e1000", "10e999"),
            ("1e999", "1e999"),
        ] {
            assert_eq!(q(text).to_string(), want, "{text}");
        }
    }

    #[test]
    fn errors_are_the_references() {
        for (text, want) in [
            ("", QuantityError::Format),
            ("a", QuantityError::Format),
            ("1 ", QuantityError::Format),
            ("1.2.3", QuantityError::Format),
            ("1mm", QuantityError::Suffix),
            ("1i", QuantityError::Suffix),
            ("1K", QuantityError::Suffix),
            ("1m1", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1e99999999999999999999", QuantityError::Suffix),
            ("--1", QuantityError::Suffix),
            ("1é", QuantityError::Format),
        ] {
            assert_eq!(Quantity::parse(text), Err(want), "{text}");
        }
        assert_eq!(
            QuantityError::Format.to_string(),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        );
    }

    #[test]
    fn numbers() {
        for (text, value, milli) in [
            ("1500m", 2, 1500),
            ("1n", 1, 1),
            ("-1500m", -2, -1500),
            ("1Gi", 1 << 30, 1000 << 30),
            ("1e3", 1000, 1_000_000),
        ] {
            assert_eq!((q(text).value(), q(text).milli()), (value, milli), "{text}");
        }
        assert_eq!(q("1e900").value(), i128::MAX);
        assert!(!q("1500m").is_integer() && q("2000m").is_integer());
    }

    #[test]
    fn order_is_of_numbers() {
        let sorted =
            ["-1e900", "-1Gi", "-1n", "0", "1n", "1m", "0.5", "999m", "1", "1k", "1Ki", "1M", "1Ei", "1e900"];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(q(a).cmp(&q(b)), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [("1", "1000m"), ("1Ki", "1024"), ("1e3", "1k"), ("0", "0Mi"), ("1.500", "1500m")] {
            assert_eq!(q(a), q(b), "{a} {b}");
        }
    }

    #[test]
    fn sums() {
        for (a, b, sum, difference) in [
            ("1", "500m", "1500m", "500m"),
            ("1Gi", "512Mi", "1536Mi", "512Mi"),
            ("0", "1Gi", "1Gi", "-1Gi"),
            ("1Gi", "1G", "2073741824", "73741824"),
            ("1", "1e3", "1001", "-999"),
            ("1e900", "0", "1e900", "1e900"),
            ("100m", "100m", "200m", "0"),
        ] {
            assert_eq!((&q(a) + &q(b)).to_string(), sum, "{a}+{b}");
            assert_eq!((&q(a) - &q(b)).to_string(), difference, "{a}-{b}");
        }
        assert_eq!([q("1"), q("2")].into_iter().sum::<Quantity>().to_string(), "3");
    }

    proptest! {
        #[test]
        fn never_panics(text in "[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,5}") {
            if let Ok(q) = Quantity::parse(&text) {
                let (_, _, _) = (q.milli(), &q + &q, q.cmp(&Quantity::default()));
                // What is printed is the same number.
                prop_assert_eq!(Quantity::parse(&q.to_string()).unwrap(), q);
            }
        }

        #[test]
        fn addition_undone(a in -1_000_000_000_i64..1_000_000_000, b in -1_000_000_000_i64..1_000_000_000) {
            let (a, b) = (Quantity::from_milli(a.into(), Format::DecimalSi), Quantity::from_milli(b.into(), Format::BinarySi));
            prop_assert_eq!(&(&a + &b) - &b, a);
        }
    }
}
