//! Shell patterns: `*` is any text, `?` any character; everything else is itself.
//!
//! No classes, no escapes. It takes time in the product of both lengths at most.

/// Whether `text` is of the form of `pattern`.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // The last `*`, and how far the text was when it was met: where the rest doesn't fit, it takes one more.
    let mut star = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether there is no pattern, or one that matches.
pub(crate) fn any(patterns: &[String], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|p| matches(p, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_shells() {
        for (pattern, text, want) in [
            ("redis:*", "redis:7", true),
            ("redis:*", "docker.io/redis:7", false),
            ("*redis*", "docker.io/library/redis:7-alpine", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxxbc", false),
            ("node-1", "node-10", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }
}
