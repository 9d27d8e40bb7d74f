//! Functions of texts.

use super::{convert, format, regex};
use crate::cel::eval::{Eval, Out, fault};
use crate::cel::value::Val;

pub(super) fn call(eval: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Option<Out> {
    if let ("strings.quote", None, [Val::String(s)]) = (name, target, args) {
        return Some(Ok(Val::text(homeostat_model::field::quote(s))));
    }
    if let ("join", Some(Val::List(list)), [] | [Val::String(_)]) = (name, target, args) {
        let separator = match args.first() {
            Some(Val::String(s)) => &**s,
            _ => "",
        };
        let mut parts = Vec::with_capacity(list.items.len());
        for item in &list.items {
            let Val::String(s) = item else { return Some(fault("no such overload")) };
            parts.push(&**s);
        }
        let text = parts.join(separator);
        return Some(eval.charge(text.len() as u64 / 10).map(|()| Val::text(text)));
    }
    let Some(Val::String(s)) = target else { return None };
    Some(match (name, args) {
        ("charAt", [Val::Int(i)]) => char_at(s, *i),
        ("indexOf", [Val::String(part)]) => index_of(s, part, 0),
        ("indexOf", [Val::String(part), Val::Int(from)]) => index_of(s, part, *from),
        ("lastIndexOf", [Val::String(part)]) => last_index_of(s, part, None),
        ("lastIndexOf", [Val::String(part), Val::Int(to)]) => last_index_of(s, part, Some(*to)),
        ("lowerAscii", []) => Ok(Val::text(s.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(s.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(s.trim())),
        ("replace", [Val::String(from), Val::String(to)]) => replace(eval, s, from, to, -1),
        ("replace", [Val::String(from), Val::String(to), Val::Int(n)]) => replace(eval, s, from, to, *n),
        ("split", [Val::String(separator)]) => split(eval, s, separator, -1),
        ("split", [Val::String(separator), Val::Int(n)]) => split(eval, s, separator, *n),
        ("substring", [Val::Int(from)]) => substring(s, *from, None),
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(s, *from, Some(*to)),
        ("format", [Val::List(args)]) => format::format(eval, s, &args.items),
        ("find", [Val::String(pattern)]) => match regex(eval, pattern, s) {
            Ok(regex) => Ok(Val::text(regex.find(s).map_or("", |m| m.as_str()))),
            Err(why) => Err(why),
        },
        ("findAll", [Val::String(pattern)]) => find_all(eval, s, pattern, -1),
        ("findAll", [Val::String(pattern), Val::Int(n)]) => find_all(eval, s, pattern, *n),
        _ => return None,
    })
}

fn out_of_range(i: i64) -> Out {
    fault(format!("index out of range: {i}"))
}

fn char_at(s: &str, i: i64) -> Out {
    let length = s.chars().count() as i64;
    if i < 0 || i > length {
        return out_of_range(i);
    }
    Ok(Val::text(s.chars().nth(i as usize).map(String::from).unwrap_or_default()))
}

fn index_of(s: &str, part: &str, from: i64) -> Out {
    let chars: Vec<char> = s.chars().collect();
    let part: Vec<char> = part.chars().collect();
    if from < 0 || from > chars.len() as i64 {
        return out_of_range(from);
    }
    let from = from as usize;
    if part.is_empty() {
        return Ok(Val::Int(from as i64));
    }
    let at = chars[from..].windows(part.len()).position(|w| w == part);
    Ok(Val::Int(at.map_or(-1, |i| (i + from) as i64)))
}

fn last_index_of(s: &str, part: &str, to: Option<i64>) -> Out {
    let chars: Vec<char> = s.chars().collect();
    let part: Vec<char> = part.chars().collect();
    let length = chars.len() as i64;
    if let Some(to) = to
        && (to < 0 || to > length)
    {
        return out_of_range(to);
    }
    let most = to.unwrap_or(length);
    if part.is_empty() {
        return Ok(Val::Int(most));
    }
    let at = chars.windows(part.len()).enumerate().rfind(|(i, w)| *i as i64 <= most && *w == part);
    Ok(Val::Int(at.map_or(-1, |(i, _)| i as i64)))
}

fn substring(s: &str, from: i64, to: Option<i64>) -> Out {
    let length = s.chars().count() as i64;
    let to = to.unwrap_or(length);
    if from < 0 || from > length {
        return out_of_range(from);
    }
    if to < 0 || to > length {
        return out_of_range(to);
    }
    if from > to {
        return fault(format!("invalid substring range. start: {from}, end: {to}"));
    }
    Ok(Val::text(s.chars().skip(from as usize).take((to - from) as usize).collect::<String>()))
}

fn replace(eval: &mut Eval<'_>, s: &str, from: &str, to: &str, n: i64) -> Out {
    let text = if n < 0 { s.replace(from, to) } else { s.replacen(from, to, n as usize) };
    eval.charge(text.len() as u64 / 10)?;
    Ok(Val::text(text))
}

fn split(eval: &mut Eval<'_>, s: &str, separator: &str, n: i64) -> Out {
    let all = |parts: Vec<&str>| Val::list(parts.into_iter().map(Val::text).collect());
    eval.charge(s.len() as u64)?;
    let chars: Vec<&str> = s.split("").filter(|p| !p.is_empty()).collect();
    Ok(match (n, separator.is_empty()) {
        (0, _) => Val::list(Vec::new()),
        (1, _) => all(vec![s]),
        (n, false) if n < 0 => all(s.split(separator).collect()),
        (n, false) => all(s.splitn(n as usize, separator).collect()),
        (n, true) if n < 0 || n as usize >= chars.len() => all(chars),
        (n, true) => {
            let head: usize = chars[..n as usize - 1].iter().map(|c| c.len()).sum();
            all(chars[..n as usize - 1].iter().copied().chain([&s[head..]]).collect())
        }
    })
}

fn find_all(eval: &mut Eval<'_>, s: &str, pattern: &str, n: i64) -> Out {
    let regex = regex(eval, pattern, s)?;
    let most = usize::try_from(n).unwrap_or(usize::MAX);
    let found: Vec<Val> = regex.find_iter(s).take(most).map(|m| Val::text(m.as_str())).collect();
    eval.charge(found.len() as u64)?;
    Ok(Val::list(found))
}

/// Texts that stand for values inside `format`.
pub(super) fn shown(value: &Val) -> String {
    convert::display(value)
}
