//! Ranges, multiples and the sizes of number formats, with go-openapi's arithmetic.
//!
//! Limits are float64; where the value is an integer they are cut to integers before they are compared and printed,
//! as the reference does.

use homeostat_model::field::Error;
use serde_json::{Number, Value};

use super::{NIL, Out};
use crate::golang;
use crate::node::{Kind, Node};
use crate::path::Path;
use crate::rules::Rules;

/// A value as Go holds it.
#[derive(Clone, Copy)]
enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    fn of(n: &Number) -> Self {
        match n.as_i64() {
            Some(n) => Self::Int(n),
            None => Self::Float(n.as_f64().unwrap_or(f64::MAX)),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(v) => v,
        }
    }

    fn value(self) -> Value {
        match self {
            Self::Int(n) => n.into(),
            // A whole number prints without a fraction.
            Self::Float(v) if v.fract() == 0.0 && v.abs() < 9e15 => (v as i64).into(),
            Self::Float(v) => v.into(),
        }
    }
}

/// go-openapi's test whether a float is an integer, within 1e-9 and ±(2⁵³-1).
pub(super) fn is_integer(v: f64) -> bool {
    const MOST: f64 = 9_007_199_254_740_991.0;
    if !v.is_finite() || v.abs() > MOST {
        return false;
    }
    if v.fract() == 0.0 {
        return true;
    }
    let whole = v.trunc();
    let difference = (v - whole).abs();
    v.abs() + whole.abs() > 0.0 && difference / (v.abs() + whole.abs()) < 1e-9
}

pub(super) fn check(node: &Node, rules: Option<&Rules>, n: &Number, path: &Path<'_>, out: &mut Out) {
    let value = Num::of(n);
    in_range(node, value, "Checked", path, out);
    let Some(rules) = rules else { return };
    if let Some(factor) = rules.multiple_of {
        let fits = in_range(node, Num::Float(factor), "MultipleOf", path, out);
        multiple_of(value, factor, fits, path, out);
    }
    if let Some(max) = rules.maximum {
        let fits = in_range(node, Num::Float(max), "Maximum boundary", path, out);
        let exclusive = rules.exclusive_maximum;
        let words = if exclusive { "less than" } else { "less than or equal to" };
        limit(
            value,
            max,
            fits,
            words,
            path,
            out,
            |v, m| v > m || (exclusive && v >= m),
            |v, m| v > m || (exclusive && v >= m),
        );
    }
    if let Some(min) = rules.minimum {
        let fits = in_range(node, Num::Float(min), "Minimum boundary", path, out);
        let exclusive = rules.exclusive_minimum;
        let words = if exclusive { "greater than" } else { "greater than or equal to" };
        limit(
            value,
            min,
            fits,
            words,
            path,
            out,
            |v, m| v < m || (exclusive && v <= m),
            |v, m| v < m || (exclusive && v <= m),
        );
    }
}

#[expect(clippy::too_many_arguments, reason = "two comparisons, for integers and floats, share the rest")]
fn limit(
    value: Num,
    bound: f64,
    fits: bool,
    words: &str,
    path: &Path<'_>,
    out: &mut Out,
    breaks_int: impl Fn(i64, i64) -> bool,
    breaks_float: impl Fn(f64, f64) -> bool,
) {
    let shown = match value {
        Num::Int(n) if fits => {
            let bound = bound as i64;
            if !breaks_int(n, bound) {
                return;
            }
            bound.to_string()
        }
        _ => {
            if !breaks_float(value.as_f64(), bound) {
                return;
            }
            golang::float(bound)
        }
    };
    let detail = format!("{path} in body should be {words} {shown}");
    out.push(Error::invalid(path.to_string(), value.value(), detail));
}

fn multiple_of(value: Num, factor: f64, fits: bool, path: &Path<'_>, out: &mut Out) {
    let positive = |shown: String, out: &mut Out| {
        let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        out.push(Error::invalid(path.to_string(), factor, detail));
    };
    let shown = match value {
        Num::Int(n) if fits => {
            let factor = factor as i64;
            if factor <= 0 {
                return positive(factor.to_string(), out);
            }
            if n % factor == 0 {
                return;
            }
            factor.to_string()
        }
        _ => {
            if factor <= 0.0 {
                return positive(golang::float(factor), out);
            }
            let times = if factor < 1.0 { 1.0 / factor * value.as_f64() } else { value.as_f64() / factor };
            if is_integer(times) {
                return;
            }
            golang::float(factor)
        }
    };
    let detail = format!("{path} in body should be a multiple of {shown}");
    out.push(Error::invalid(path.to_string(), value.value(), detail));
}

/// Whether the value can be what type and format say; complains, without a path, if not.
fn in_range(node: &Node, value: Num, prefix: &str, path: &Path<'_>, out: &mut Out) -> bool {
    let format = node.format.as_deref().unwrap_or_default();
    let (fits, kind) = match node.kind {
        Kind::Integer => {
            let whole = match value {
                Num::Int(n) => Some(n),
                Num::Float(v) if v.fract() == 0.0 && v >= i64::MIN as f64 && v < i64::MAX as f64 => {
                    Some(v as i64)
                }
                Num::Float(_) => None,
            };
            let fits = whole.is_some_and(|n| format != "int32" || i32::try_from(n).is_ok());
            (fits, "integer")
        }
        Kind::Number => {
            let v = value.as_f64();
            (format != "float" || (v as f32).is_finite(), "number")
        }
        _ => return true,
    };
    if !fits {
        let what = if format.is_empty() {
            format!("{prefix} value must be of type {kind} (default format) in {path}")
        } else {
            format!("{prefix} value must be of type {kind} with format {format} in {path}")
        };
        out.push(Error::invalid(NIL, "", what));
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::is_integer;

    #[test]
    fn integers_among_floats() {
        for (v, want) in
            [(3.0, true), (-3.0, true), (2.5, false), (1e300, false), (0.0, true), (1e-12, false)]
        {
            assert_eq!(is_integer(v), want, "{v}");
        }
        assert!(is_integer(1_000_000_000.000_000_1));
    }
}
