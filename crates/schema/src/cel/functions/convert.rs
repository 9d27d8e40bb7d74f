//! Conversions between types: `int()`, `string()` and the like.

use homeostat_model::clock;

use super::time;
use crate::cel::eval::{Eval, Fault, Out, fault};
use crate::cel::value::Val;
use crate::golang;

pub(super) fn call(_: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Option<Out> {
    let (None, [value]) = (target, args) else { return None };
    let cannot = || fault(format!("type conversion error from '{}' to '{name}'", value.type_name()));
    let overflow = |what: &str| Err(Fault::Error(format!("{what} overflow")));
    Some(match name {
        "int" => match value {
            Val::Int(_) => Ok(value.clone()),
            Val::Uint(n) => i64::try_from(*n).map(Val::Int).or_else(|_| overflow("integer")),
            Val::Double(v) if *v > i64::MIN as f64 && *v < i64::MAX as f64 => Ok(Val::Int(*v as i64)),
            Val::Double(_) => overflow("integer"),
            Val::String(s) => s.parse().map(Val::Int).or_else(|_| cannot()),
            Val::Timestamp(t) => Ok(Val::Int(t.as_second())),
            Val::Duration(n) => Ok(Val::Int(*n)),
            _ => return None,
        },
        "uint" => match value {
            Val::Uint(_) => Ok(value.clone()),
            Val::Int(n) => u64::try_from(*n).map(Val::Uint).or_else(|_| overflow("unsigned integer")),
            Val::Double(v) if *v >= 0.0 && *v < u64::MAX as f64 => Ok(Val::Uint(*v as u64)),
            Val::Double(_) => overflow("unsigned integer"),
            Val::String(s) => s.parse().map(Val::Uint).or_else(|_| cannot()),
            _ => return None,
        },
        "double" => match value {
            Val::Double(_) => Ok(value.clone()),
            Val::Int(n) => Ok(Val::Double(*n as f64)),
            Val::Uint(n) => Ok(Val::Double(*n as f64)),
            Val::String(s) => s.parse().map(Val::Double).or_else(|_| cannot()),
            _ => return None,
        },
        "bool" => match value {
            Val::Bool(_) => Ok(value.clone()),
            Val::String(s) => match &**s {
                "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
                "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
                _ => cannot(),
            },
            _ => return None,
        },
        "string" => match value {
            Val::String(_) => Ok(value.clone()),
            Val::Bool(_)
            | Val::Int(_)
            | Val::Uint(_)
            | Val::Double(_)
            | Val::Timestamp(_)
            | Val::Duration(_)
            | Val::Quantity(..)
            | Val::Ip(_)
            | Val::Cidr(_)
            | Val::Url(_)
            | Val::Semver(_) => Ok(Val::text(display(value))),
            Val::Bytes(b) => match std::str::from_utf8(b) {
                Ok(s) => Ok(Val::text(s)),
                Err(_) => fault("invalid UTF-8 in bytes, cannot convert to string"),
            },
            _ => return None,
        },
        "bytes" => match value {
            Val::Bytes(_) => Ok(value.clone()),
            Val::String(s) => Ok(Val::Bytes(s.as_bytes().into())),
            _ => return None,
        },
        "timestamp" => match value {
            Val::Timestamp(_) => Ok(value.clone()),
            Val::Int(n) => match homeostat_model::Timestamp::from_second(*n) {
                Ok(t) => Ok(Val::Timestamp(t)),
                Err(_) => overflow("timestamp"),
            },
            Val::String(s) => match crate::cel::convert::timestamp(s) {
                Some(t) => Ok(Val::Timestamp(t)),
                None => fault(golang::time(s, false).err().unwrap_or_else(|| "timestamp overflow".into())),
            },
            _ => return None,
        },
        "duration" => match value {
            Val::Duration(_) => Ok(value.clone()),
            Val::Int(n) => Ok(Val::Duration(*n)),
            Val::String(s) => match golang::duration(s) {
                Some(n) => Ok(Val::Duration(n)),
                None => fault(format!("time: invalid duration {}", homeostat_model::field::quote(s))),
            },
            _ => return None,
        },
        _ => return None,
    })
}

/// A value as `string()` and error texts print it.
pub(in crate::cel) fn display(value: &Val) -> String {
    match value {
        Val::Null => "null".into(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(v) => golang::float(*v),
        Val::String(s) => s.to_string(),
        Val::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
        Val::Timestamp(t) => {
            if t.subsec_nanosecond() == 0 {
                clock::seconds(*t)
            } else {
                t.to_string()
            }
        }
        Val::Duration(n) => time::seconds(*n),
        Val::Type(name) => (*name).to_owned(),
        Val::Quantity(q, _) => q.to_string(),
        Val::Ip(ip) => ip.to_string(),
        Val::Cidr(c) => format!("{}/{}", c.ip, c.bits),
        Val::Url(u) => u.text.clone(),
        Val::Semver(s) => {
            let [major, minor, patch] = s.numbers;
            let mut text = format!("{major}.{minor}.{patch}");
            if !s.pre.is_empty() {
                text.push('-');
                text.push_str(&s.pre.join("."));
            }
            if !s.build.is_empty() {
                text.push('+');
                text.push_str(&s.build);
            }
            text
        }
        Val::List(l) => format!("[{}]", l.items.iter().map(display).collect::<Vec<_>>().join(", ")),
        Val::Map(m) => {
            let entries: Vec<String> =
                m.iter().map(|(k, v)| format!("{}: {}", display(&k.value()), display(v))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Val::Optional(o) => {
            o.as_ref().map_or("optional.none()".into(), |v| format!("optional({})", display(v)))
        }
        Val::Format(_) => "format".into(),
        Val::Struct(s) => {
            let fields: Vec<String> = s.fields.iter().map(|(k, v)| format!("{k}: {}", display(v))).collect();
            format!("{}{{{}}}", s.name, fields.join(", "))
        }
        Val::Authz(a) => a.type_name().to_owned(),
    }
}
