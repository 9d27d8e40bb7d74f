//! `'%s-%d'.format([…])`.

use super::strings::shown;
use crate::cel::eval::{Eval, Out, fault};
use crate::cel::value::Val;

pub(super) fn format(eval: &mut Eval<'_>, pattern: &str, args: &[Val]) -> Out {
    let mut out = String::new();
    let mut rest = pattern;
    let mut next = args.iter();
    let mut index = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let mut precision = None;
        if let Some(after) = rest.strip_prefix('.') {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            precision = after[..digits].parse::<usize>().ok().map(|p| p.min(1000));
            rest = &after[digits..];
        }
        let Some(verb) = rest.chars().next() else {
            return fault("could not parse formatting clause: unexpected end of string");
        };
        rest = &rest[verb.len_utf8()..];
        let Some(value) = next.next() else { return fault(format!("index {index} out of range")) };
        index += 1;
        match one(verb, precision, value) {
            Ok(text) => out.push_str(&text),
            Err(why) => return fault(why),
        }
        eval.charge(1 + out.len() as u64 / 10)?;
    }
    if next.next().is_some() {
        return fault("too many arguments supplied to string.format");
    }
    out.push_str(rest);
    Ok(Val::text(out))
}

fn one(verb: char, precision: Option<usize>, value: &Val) -> Result<String, String> {
    let wrong = |expected: &str| {
        Err(format!("error during formatting: {expected} clause cannot be used on {}", value.type_name()))
    };
    let float = |v: f64| {
        if v.is_nan() {
            Some("NaN".to_owned())
        } else if v.is_infinite() {
            Some(if v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned())
        } else {
            None
        }
    };
    match (verb, value) {
        ('s', value) => Ok(shown(value)),
        ('d', Val::Int(n)) => Ok(n.to_string()),
        ('d', Val::Uint(n)) => Ok(n.to_string()),
        ('d', Val::Double(v)) if v.fract() == 0.0 => Ok(format!("{v}")),
        ('d', Val::Double(v)) => float(*v).map_or_else(|| wrong("integer"), Ok),
        ('d', _) => wrong("integer"),
        ('f' | 'e', Val::Double(_) | Val::Int(_) | Val::Uint(_)) => {
            let v = match value {
                Val::Double(v) => *v,
                Val::Int(n) => *n as f64,
                Val::Uint(n) => *n as f64,
                _ => 0.0,
            };
            let precision = precision.unwrap_or(6);
            if let Some(text) = float(v) {
                return Ok(text);
            }
            if verb == 'f' {
                return Ok(format!("{v:.precision$}"));
            }
            let text = format!("{v:.precision$e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            Ok(format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()))
        }
        ('f', _) => wrong("fixed-point"),
        ('e', _) => wrong("scientific"),
        ('b', Val::Int(n)) if *n < 0 => Ok(format!("-{:b}", n.unsigned_abs())),
        ('b', Val::Int(n)) => Ok(format!("{n:b}")),
        ('b', Val::Uint(n)) => Ok(format!("{n:b}")),
        ('b', Val::Bool(b)) => Ok(u8::from(*b).to_string()),
        ('b', _) => wrong("binary"),
        ('o', Val::Int(n)) if *n < 0 => Ok(format!("-{:o}", n.unsigned_abs())),
        ('o', Val::Int(n)) => Ok(format!("{n:o}")),
        ('o', Val::Uint(n)) => Ok(format!("{n:o}")),
        ('o', _) => wrong("octal"),
        ('x' | 'X', value) => {
            let text = match value {
                Val::Int(n) if *n < 0 => format!("-{:x}", n.unsigned_abs()),
                Val::Int(n) => format!("{n:x}"),
                Val::Uint(n) => format!("{n:x}"),
                Val::String(s) => s.bytes().map(|b| format!("{b:02x}")).collect(),
                Val::Bytes(b) => b.iter().map(|b| format!("{b:02x}")).collect(),
                _ => return wrong("hex"),
            };
            Ok(if verb == 'X' { text.to_uppercase() } else { text })
        }
        (verb, _) => {
            Err(format!("could not parse formatting clause: unrecognized formatting clause \"{verb}\""))
        }
    }
}
