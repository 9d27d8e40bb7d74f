//! Regular expressions as Go's RE2 reads them, on the `regex` crate, which shares RE2's linear time.
//!
//! Both have one syntax but for details, which are translated here. Invariant: no pattern backtracks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regex::{Regex, RegexBuilder};

use crate::rules::Pattern;

/// Bytes of a compiled program.
const SIZE_LIMIT: usize = 4 << 20;

/// The most repetitions that RE2 takes, those of nested groups multiplied.
const REPEATS: usize = 1000;

/// Expressions that are kept compiled. CRDs repeat the same few (names, quantities) hundreds of times.
const MAX_CACHED: usize = 512;

static CACHE: Mutex<BTreeMap<Arc<str>, Regex>> = Mutex::new(BTreeMap::new());

fn cache() -> MutexGuard<'static, BTreeMap<Arc<str>, Regex>> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compiles a Go expression.
pub(crate) fn compile(source: &str) -> Result<Pattern, String> {
    let regex = regex(source)?;
    Ok(Pattern { source: Arc::from(source), regex })
}

/// Whether an expression is compiled already, so that asking for it costs nothing.
pub(crate) fn is_cached(source: &str) -> bool {
    cache().contains_key(source)
}

/// Compiles a Go expression to a [`Regex`], or finds it compiled.
pub fn regex(source: &str) -> Result<Regex, String> {
    if let Some(regex) = cache().get(source) {
        return Ok(regex.clone());
    }
    if let Some(operator) = too_often(source) {
        return Err(format!("invalid repeat count: `{operator}`"));
    }
    let regex = RegexBuilder::new(&translate(source)).size_limit(SIZE_LIMIT).build().map_err(|e| {
        e.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })?;
    let mut cache = cache();
    if cache.len() >= MAX_CACHED {
        // Whoever still needs one of them holds it or compiles it again.
        cache.clear();
    }
    cache.insert(Arc::from(source), regex.clone());
    Ok(regex)
}

/// The first repetition operator that, with those inside of what it repeats, asks for more than [`REPEATS`].
fn too_often(source: &str) -> Option<&str> {
    // For each open group, the most that anything in it is repeated; and how often the last thing is.
    let (mut groups, mut last) = (vec![1], 1);
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let after = at + c.len_utf8();
        let mut next = after;
        match c {
            '\\' if source[after..].starts_with('Q') => {
                next = source[after..].find("\\E").map_or(source.len(), |end| after + end + 2);
                last = 1;
            }
            '\\' => {
                next += source[after..].chars().next().map_or(0, char::len_utf8);
                last = 1;
            }
            '[' => {
                next = class_end(source, after);
                last = 1;
            }
            '(' => {
                groups.push(1);
                last = 1;
            }
            ')' => {
                last = if groups.len() > 1 { groups.pop().unwrap_or(1) } else { 1 };
            }
            '{' => match repeat(&source[at..]) {
                Some((count, length)) => {
                    next = at + length;
                    last = count.max(1).saturating_mul(last);
                    if count > REPEATS || (count > 1 && last > REPEATS) {
                        return Some(&source[at..next]);
                    }
                }
                None => last = 1,
            },
            '*' | '+' | '?' => {}
            _ => last = 1,
        }
        if let Some(group) = groups.last_mut() {
            *group = last.max(*group);
        }
        at = next;
    }
    None
}

/// The most that `{n}`, `{n,}` or `{n,m}` at the start of a text asks for, and its length; `None` where the bracket
/// stands for itself.
fn repeat(text: &str) -> Option<(usize, usize)> {
    let end = text.find('}')?;
    let (least, most) = match text[1..end].split_once(',') {
        None => (&text[1..end], ""),
        Some(parts) => parts,
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let count = |s: &str| if s.is_empty() { Some(0) } else { s.parse().ok().or(Some(usize::MAX)) };
    (!least.is_empty() && digits(least) && digits(most))
        .then(|| Some((count(least)?.max(count(most)?), end + 1)))
        .flatten()
}

/// Where a class ends whose bracket stands just before `at`. A bracket that comes first is a member.
fn class_end(source: &str, at: usize) -> usize {
    let mut inside = source[at..].char_indices().peekable();
    inside.next_if(|(_, c)| *c == '^');
    inside.next_if(|(_, c)| *c == ']');
    while let Some((i, c)) = inside.next() {
        match c {
            '\\' => drop(inside.next()),
            ']' => return at + i + 1,
            _ => {}
        }
    }
    source.len()
}

/// What the last thing inside a class was, to tell a range's `-` from a literal one.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Start,
    Char,
    Other,
}

/// Go's `\d \w \s \b` are ASCII, `\<` is no word boundary, `{` may stand for itself; in classes Go takes `[`, `&&`,
/// `~~` and stray dashes literally.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '\\' => escape(after, false, &mut out).0,
            '[' => class(after, &mut out),
            '{' if !is_repeat(after) => {
                out.push_str("\\{");
                after
            }
            c => {
                out.push(c);
                after
            }
        };
    }
    out
}

/// `n}`, `n,}` or `n,m}`.
fn is_repeat(after: &str) -> bool {
    let Some((inner, _)) = after.split_once('}') else { return false };
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    match inner.split_once(',') {
        None => digits(inner),
        Some((least, most)) => digits(least) && (most.is_empty() || digits(most)),
    }
}

/// What follows a backslash; returns the rest, and whether it was one character (that may begin a range).
fn escape<'a>(after: &'a str, class: bool, out: &mut String) -> (&'a str, bool) {
    let Some(c) = after.chars().next() else {
        out.push('\\');
        return (after, false);
    };
    let rest = &after[c.len_utf8()..];
    let text = match (c, class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('w', true) => "0-9A-Za-z_",
        ('w', false) => "[0-9A-Za-z_]",
        ('s', true) => "\\t\\n\\f\\r ",
        ('s', false) => "[\\t\\n\\f\\r ]",
        ('D', _) => "[^0-9]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('S', _) => "[^\\t\\n\\f\\r ]",
        ('b', false) => "(?-u:\\b)",
        ('<' | '>', _) => {
            out.push(c);
            return (rest, true);
        }
        ('Q', false) => {
            let (quoted, rest) = rest.split_once("\\E").unwrap_or((rest, ""));
            out.push_str(&regex::escape(quoted));
            return (rest, false);
        }
        ('p' | 'P', _) => {
            // The name of a Unicode class, with or without braces.
            out.push('\\');
            out.push(c);
            let end = if rest.starts_with('{') {
                rest.find('}').map_or(rest.len(), |i| i + 1)
            } else {
                rest.chars().next().map_or(0, char::len_utf8)
            };
            out.push_str(&rest[..end]);
            return (&rest[end..], false);
        }
        ('x', _) if rest.starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |i| i + 1);
            out.push_str("\\x");
            out.push_str(&rest[..end]);
            return (&rest[end..], true);
        }
        _ => {
            out.push('\\');
            out.push(c);
            return (rest, true);
        }
    };
    out.push_str(text);
    (rest, false)
}

/// The inside of a class, up to and with its `]`.
fn class<'a>(after: &'a str, out: &mut String) -> &'a str {
    out.push('[');
    let mut rest = after;
    if let Some(r) = rest.strip_prefix('^') {
        out.push('^');
        rest = r;
    }
    let mut last = Last::Start;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            ']' if last != Last::Start => {
                out.push(']');
                return after;
            }
            '\\' => {
                let (r, one) = escape(after, true, out);
                rest = r;
                last = if one { Last::Char } else { Last::Other };
                continue;
            }
            '[' if after.starts_with(':')
                && let Some(end) = after.find(":]") =>
            {
                out.push('[');
                out.push_str(&after[..end + 2]);
                rest = &after[end + 2..];
                last = Last::Other;
                continue;
            }
            '-' if last == Last::Char && !after.starts_with(']') && !after.is_empty() => {
                // A range: what follows is its end, whatever it is.
                out.push('-');
                rest = match after.chars().next() {
                    Some('\\') => escape(&after[1..], true, out).0,
                    Some(end) => {
                        literal(end, out);
                        &after[end.len_utf8()..]
                    }
                    None => after,
                };
                last = Last::Other;
                continue;
            }
            c => literal(c, out),
        }
        last = Last::Char;
        rest = after;
    }
    rest
}

fn literal(c: char, out: &mut String) {
    if matches!(c, '[' | ']' | '-' | '&' | '~' | '^') {
        out.push('\\');
    }
    out.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_expressions_match_as_in_go() {
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "\u{0663}", false),
            (r"^[\w.-]+$", "a-b.c_d", true),
            (r"^[a&&b]+$", "&&", true),
            (r"^[[a]+$", "[[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]]$", "x", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^[a-]+$", "a-", true),
            (r"^\S+\z", "x", true),
            (r"(?i)^abc$", "ABC", true),
            (r"^[\w-.]+$", "a-.", true),
            (r"^[a-z0-9-\p{L}]+$", "a-é", true),
            (r"^[+--]+$", "+,-", true),
            (r"^a{$", "a{", true),
            (r"^{x}$", "{x}", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^\<a\>$", "<a>", true),
            (r"^[\d-]+$", "1-2", true),
            (r"^\x{41}[\x42-\x44]$", "AC", true),
        ];
        for (source, text, want) in cases {
            assert_eq!(regex(source).unwrap().is_match(text), want, "{source} {text}");
        }
        assert!(regex("(").is_err());
        for (source, operator) in [
            ("a{1001}", "{1001}"),
            ("x(a{1000}){2}", "{2}"),
            ("((a{10}){10}b){11}", "{11}"),
            ("a{2,5000}", "{2,5000}"),
            ("a{99999999999999999999}", "{99999999999999999999}"),
        ] {
            let why = format!("invalid repeat count: `{operator}`");
            assert_eq!(regex(source).map(drop), Err(why), "{source}");
        }
        for source in [
            "a{1000}",
            "(a{100}){10}",
            "a{1000}b{1000}",
            r"[{1001}]",
            r"\{1001}",
            r"\Qa{1001}\E",
            "a{,1001}",
            "(a{1000}|b){1}",
        ] {
            assert_eq!(regex(source).map(drop), Ok(()), "{source}");
        }
        assert!(regex("(?=a)").is_err(), "lookahead is no RE2");
    }
}
