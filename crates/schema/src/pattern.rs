//! Regular expressions as Go's RE2 reads them, on the `regex` crate, which shares RE2's linear time.
//!
//! Both have one syntax but for details, which are translated here. Invariant: no pattern backtracks.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::rules::Pattern;

/// Bytes of a compiled program; RE2 in Go refuses repetition counts above 1000, which bounds it likewise.
const SIZE_LIMIT: usize = 4 << 20;

/// Compiles a Go expression.
pub(crate) fn compile(source: &str) -> Result<Pattern, String> {
    let regex = regex(source)?;
    Ok(Pattern { source: Arc::from(source), regex })
}

/// Compiles a Go expression to a [`Regex`].
pub fn regex(source: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(source)).size_limit(SIZE_LIMIT).build().map_err(|e| {
        e.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Go's `\d \w \s \b` are ASCII and `\z` is the end; in classes Go takes `[`, `&&`, `--` and `~~` literally.
fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut chars = source.chars().peekable();
    let mut class = false;
    let mut class_start = false;
    let mut quoting = false;
    while let Some(c) = chars.next() {
        if quoting {
            if c == '\\' && chars.peek() == Some(&'E') {
                chars.next();
                quoting = false;
            } else {
                out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
            }
            continue;
        }
        match c {
            '\\' => {
                let Some(next) = chars.next() else {
                    out.push('\\');
                    break;
                };
                match next {
                    'd' if class => out.push_str("0-9"),
                    'd' => out.push_str("[0-9]"),
                    'w' if class => out.push_str("0-9A-Za-z_"),
                    'w' => out.push_str("[0-9A-Za-z_]"),
                    's' if class => out.push_str("\\t\\n\\f\\r "),
                    's' => out.push_str("[\\t\\n\\f\\r ]"),
                    'D' => out.push_str("[^0-9]"),
                    'W' => out.push_str("[^0-9A-Za-z_]"),
                    'S' => out.push_str("[^\\t\\n\\f\\r ]"),
                    'b' if !class => out.push_str("(?-u:\\b)"),
                    // An ASCII \B may split a UTF-8 sequence, which the crate refuses for text; take Unicode's.
                    'Q' if !class => quoting = true,
                    other => {
                        out.push('\\');
                        out.push(other);
                    }
                }
                class_start = false;
            }
            '[' if !class => {
                class = true;
                class_start = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
                // A leading `]` is literal in both.
                if chars.peek() == Some(&']') {
                    chars.next();
                    out.push_str("\\]");
                    class_start = false;
                }
            }
            '[' if chars.peek() == Some(&':') => {
                // `[:alpha:]`
                out.push('[');
                while let Some(c) = chars.next() {
                    out.push(c);
                    if c == ':' && chars.peek() == Some(&']') {
                        chars.next();
                        out.push(']');
                        break;
                    }
                }
                class_start = false;
            }
            '[' => {
                out.push_str("\\[");
                class_start = false;
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
                class_start = false;
            }
            '-' if class && (class_start || chars.peek() == Some(&']')) => {
                out.push_str("\\-");
                class_start = false;
            }
            c => {
                out.push(c);
                class_start = false;
            }
        }
    }
    out
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
        ];
        for (source, text, want) in cases {
            assert_eq!(regex(source).unwrap().is_match(text), want, "{source} {text}");
        }
        assert!(regex("(").is_err());
        assert!(regex("(?=a)").is_err(), "lookahead is no RE2");
    }
}
