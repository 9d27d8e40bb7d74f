//! Functions: the standard library, strings, lists, sets, optionals, and Kubernetes' own.

pub(super) mod arithmetic;
mod convert;
mod format;
mod kubernetes;
pub(super) mod lists;
mod strings;
mod time;

use super::eval::{Eval, Fault, Out, fault, no_overload};
use super::value::Val;

pub(super) use convert::display;

/// Calls a function. Each library returns `None` for names and types that it doesn't know.
pub(super) fn call(eval: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Out {
    // Reading the arguments costs their size; what returns more is charged by the next step that reads it.
    let size: u64 = target.into_iter().chain(args).map(|v| if is_text(v) { v.size_cost() } else { 1 }).sum();
    eval.charge(size)?;
    let libraries = [
        standard,
        convert::call,
        time::call,
        strings::call,
        lists::call,
        kubernetes::call,
        super::authorizer::call,
    ];
    for library in libraries {
        if let Some(result) = library(eval, name, target, args) {
            return result;
        }
    }
    no_overload()
}

fn is_text(value: &Val) -> bool {
    matches!(value, Val::String(_) | Val::Bytes(_))
}

fn standard(eval: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Option<Out> {
    Some(match (name, target, args) {
        ("size", Some(value), []) | ("size", None, [value]) => match value {
            Val::String(s) => Ok(Val::Int(s.chars().count() as i64)),
            Val::Bytes(b) => Ok(Val::Int(b.len() as i64)),
            Val::List(l) => Ok(Val::Int(l.items.len() as i64)),
            Val::Map(m) => Ok(Val::Int(m.len() as i64)),
            _ => no_overload(),
        },
        ("contains", Some(Val::String(s)), [Val::String(part)]) => Ok(Val::Bool(s.contains(&**part))),
        ("startsWith", Some(Val::String(s)), [Val::String(part)]) => Ok(Val::Bool(s.starts_with(&**part))),
        ("endsWith", Some(Val::String(s)), [Val::String(part)]) => Ok(Val::Bool(s.ends_with(&**part))),
        ("matches", Some(Val::String(s)), [Val::String(pattern)])
        | ("matches", None, [Val::String(s), Val::String(pattern)]) => match regex(eval, pattern, s) {
            Ok(regex) => Ok(Val::Bool(regex.is_match(s))),
            Err(why) => Err(why),
        },
        ("dyn", None, [value]) => Ok(value.clone()),
        ("type", None, [value]) => Ok(Val::Type(value.type_name())),
        ("jsonpatch.escapeKey", None, [Val::String(key)]) => {
            Ok(Val::text(key.replace('~', "~0").replace('/', "~1")))
        }
        ("optional.of", None, [value]) => Ok(Val::some(value.clone())),
        ("optional.none", None, []) => Ok(Val::NONE),
        ("optional.ofNonZeroValue", None, [value]) => {
            Ok(if value.is_zero() { Val::NONE } else { Val::some(value.clone()) })
        }
        ("optional.unwrap", None, [Val::List(l)]) | ("unwrapOpt", Some(Val::List(l)), []) => {
            let mut items = Vec::new();
            for item in &l.items {
                match item {
                    Val::Optional(value) => items.extend(value.iter().map(|v| (**v).clone())),
                    _ => return Some(no_overload()),
                }
            }
            Ok(Val::list(items))
        }
        ("hasValue", Some(Val::Optional(o)), []) => Ok(Val::Bool(o.is_some())),
        ("value", Some(Val::Optional(o)), []) => match o {
            Some(value) => Ok((**value).clone()),
            None => fault("optional.none() dereference"),
        },
        ("or", Some(a @ Val::Optional(o)), [b @ Val::Optional(_)]) => {
            Ok(if o.is_some() { a.clone() } else { b.clone() })
        }
        ("orValue", Some(Val::Optional(o)), [other]) => {
            Ok(o.as_ref().map_or_else(|| other.clone(), |v| (**v).clone()))
        }
        _ => return None,
    })
}

/// A compiled pattern for a search in `text`. Compiling is dear, and so is a long search.
fn regex(eval: &mut Eval<'_>, pattern: &str, text: &str) -> Result<regex::Regex, Fault> {
    let search = (1 + text.len() as u64 / 10) * (1 + pattern.len() as u64 / 4);
    let compile = if crate::pattern::is_cached(pattern) { 0 } else { 1000 + 10 * pattern.len() as u64 };
    eval.charge(search + compile)?;
    crate::pattern::regex(pattern).or_else(|why| fault(format!("error parsing regexp: {why}")))
}
