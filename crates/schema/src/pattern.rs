//! Regular expressions as Go's RE2 reads them, on the `regex` crate, which shares RE2's linear time.
//!
//! Both have one syntax but for details, which are translated here. Invariant: no pattern backtracks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regex::{Regex, RegexBuilder};

use crate::rules::Pattern;

/// Bytes of a compiled program; RE2 in Go refuses repetition counts above 1000, which bounds it likewise.
const SIZE_LIMIT: usize = 4 << 20;

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
        assert!(regex("(?=a)").is_err(), "lookahead is no RE2");
    }
}
