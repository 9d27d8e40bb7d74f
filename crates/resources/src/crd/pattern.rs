//! Errors of regular expressions in the words of Go's `regexp` package.
//!
//! Whether an expression is one is decided by the schema crate, which runs it; here only the reason is put as
//! clients of the reference know it.

/// Why a pattern isn't a regular expression; `None` if it is one. The empty pattern is.
pub(crate) fn error(pattern: &str) -> Option<String> {
    let reason = homeostat_schema::pattern::regex(pattern).err()?;
    Some(format!("error parsing regexp: {}", explain(pattern, &reason)))
}

fn explain(pattern: &str, reason: &str) -> String {
    if let Some(at) = look_around(pattern) {
        return format!("invalid or unsupported Perl syntax: `{at}`");
    }
    if pattern.ends_with('\\') && !pattern.ends_with("\\\\") {
        return "trailing backslash at end of expression: ``".to_owned();
    }
    let scan = Scan::of(pattern);
    if let Some(at) = scan.open_class {
        return format!("missing closing ]: `{}`", &pattern[at..]);
    }
    if scan.open > 0 {
        return format!("missing closing ): `{pattern}`");
    }
    if scan.open < 0 {
        return format!("unexpected ): `{pattern}`");
    }
    if let Some(operator) = scan.dangling {
        return format!("missing argument to repetition operator: `{operator}`");
    }
    if let Some(escape) = scan.escape {
        return format!("invalid escape sequence: `{escape}`");
    }
    if reason.starts_with("invalid repeat count") {
        return reason.to_owned();
    }
    format!("{reason}: `{pattern}`")
}

/// `(?!`, `(?=`, `(?<` that names nothing: RE2 has none of them.
fn look_around(pattern: &str) -> Option<&str> {
    let bytes = pattern.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'(' if bytes.get(at + 1) == Some(&b'?') => match bytes.get(at + 2) {
                Some(b'!' | b'=') => return pattern.get(at..at + 3),
                Some(b'<') if matches!(bytes.get(at + 3), Some(b'!' | b'=')) => {
                    return pattern.get(at..at + 4);
                }
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
    None
}

/// What a walk over the characters finds.
#[derive(Default)]
struct Scan {
    open: i32,
    open_class: Option<usize>,
    dangling: Option<char>,
    escape: Option<String>,
}

impl Scan {
    fn of(pattern: &str) -> Self {
        let mut scan = Self::default();
        let (mut start, mut chars) = (true, pattern.char_indices().peekable());
        while let Some((at, c)) = chars.next() {
            let begins = std::mem::replace(&mut start, false);
            match c {
                '\\' => {
                    if let Some((_, next)) = chars.next()
                        && next.is_ascii_alphabetic()
                        && !"aAbBCdDfnpPQrsStvwWxzE".contains(next)
                        && scan.escape.is_none()
                        && scan.open_class.is_none()
                    {
                        scan.escape = Some(format!("\\{next}"));
                    }
                }
                ']' if scan.open_class.is_some() => scan.open_class = None,
                _ if scan.open_class.is_some() => {}
                '[' => {
                    scan.open_class = Some(at);
                    // A bracket that comes first, maybe after `^`, is a member of the class.
                    if chars.peek().is_some_and(|(_, c)| *c == '^') {
                        chars.next();
                    }
                    if chars.peek().is_some_and(|(_, c)| *c == ']') {
                        chars.next();
                    }
                }
                '(' => {
                    scan.open += 1;
                    start = true;
                    if chars.peek().is_some_and(|(_, c)| *c == '?') {
                        chars.next();
                        start = false;
                    }
                }
                ')' => {
                    scan.open -= 1;
                    if scan.open < 0 {
                        return scan;
                    }
                }
                '|' => start = true,
                '*' | '+' | '?' if begins && scan.dangling.is_none() => scan.dangling = Some(c),
                _ => {}
            }
        }
        scan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, want: &str) {
        assert_eq!(error(pattern).unwrap_or_default(), want, "{pattern}");
    }

    #[test]
    fn reasons_are_gos() {
        check("^(a", "error parsing regexp: missing closing ): `^(a`");
        check("^(?!x)", "error parsing regexp: invalid or unsupported Perl syntax: `(?!`");
        check("a)", "error parsing regexp: unexpected ): `a)`");
        check("x[ab", "error parsing regexp: missing closing ]: `[ab`");
        check("*a", "error parsing regexp: missing argument to repetition operator: `*`");
        check("a|+", "error parsing regexp: missing argument to repetition operator: `+`");
        check("a\\", "error parsing regexp: trailing backslash at end of expression: ``");
        check("\\y", "error parsing regexp: invalid escape sequence: `\\y`");
        check("^[a-z]+(-[0-9]{1,3})?$", "");
    }
}
