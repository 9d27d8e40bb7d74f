//! Field selectors: `metadata.name=x,status.phase!=Running`. Values escape `\`, `,` and `=` with a backslash.

use std::fmt;

/// How a term relates its field to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `field=value`; `==` is the same.
    Eq,
    /// `field!=value`.
    NotEq,
}

/// A field selector: every term must hold. An absent field counts as the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields {
    terms: Vec<(String, Op, String)>,
}

impl Fields {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Parses `?fieldSelector=`. The error is the reference's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let (field, op, value) = split_term(part)
                .ok_or_else(|| format!("invalid selector: '{text}'; can't understand '{part}'"))?;
            terms.push((field.to_owned(), op, unescape(value)?));
        }
        Ok(Self { terms })
    }

    /// The terms, in the order of their text.
    pub fn requirements(&self) -> &[(String, Op, String)] {
        &self.terms
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether an object, given as a lookup of its fields, is selected.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms.iter().all(|(field, op, value)| {
            let same = get(field).unwrap_or_default() == value;
            same == (*op == Op::Eq)
        })
    }

    /// The value that the selector demands of `field`, if it demands one: `metadata.name=x` makes a list a get.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|(f, op, _)| f == field && *op == Op::Eq).map(|(_, _, v)| v.as_str())
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (field, op, value)) in self.terms.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{field}{}", if *op == Op::Eq { "=" } else { "!=" })?;
            for c in value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

/// Cuts at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Cuts at the first operator.
fn split_term(term: &str) -> Option<(&str, Op, &str)> {
    term.char_indices().find_map(|(i, _)| {
        let (field, rest) = term.split_at(i);
        [("!=", Op::NotEq), ("==", Op::Eq), ("=", Op::Eq)]
            .into_iter()
            .find_map(|(text, op)| Some((field, op, rest.strip_prefix(text)?)))
    })
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(e @ ('\\' | ',' | '=')) => out.push(e),
                Some(e) => return Err(format!("invalid field selector: invalid escape sequence: \\{e}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            // The reference prints the character's number.
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {}", c as u32));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strings() {
        for (text, want) in [
            ("", Ok("")),
            ("a=b", Ok("a=b")),
            ("a==b", Ok("a=b")),
            ("c!=d,a=b", Ok("a=b,c!=d")),
            (",a=b,,", Ok("a=b")),
            ("a=", Ok("a=")),
            ("=b", Ok("=b")),
            (r"a=x\,y\=z\\", Ok(r"a=x\,y\=z\\")),
            ("a", Err("invalid selector: 'a'; can't understand 'a'")),
            ("a=b,c", Err("invalid selector: 'a=b,c'; can't understand 'c'")),
            (r"a=\x", Err(r"invalid field selector: invalid escape sequence: \x")),
            (r"a=x\", Err(r"invalid field selector: invalid escape sequence: \")),
            ("a=b=c", Err("invalid field selector: unescaped character in value: 61")),
        ] {
            let got = Fields::parse(text).map(|s| s.to_string());
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{text}");
        }
    }

    #[test]
    fn matching() {
        let get = |f: &str| (f == "metadata.name").then_some("x");
        for (text, want) in [
            ("", true),
            ("metadata.name=x", true),
            ("metadata.name!=x", false),
            ("other=", true),
            ("other=1", false),
        ] {
            assert_eq!(Fields::parse(text).unwrap().matches(get), want, "{text}");
        }
        let s = Fields::parse("metadata.name=x,metadata.namespace!=y").unwrap();
        assert_eq!((s.exact("metadata.name"), s.exact("metadata.namespace")), (Some("x"), None));
    }

    proptest! {
        #[test]
        fn never_panics_and_prints_what_it_parses(text in "[ab.,=!\\\\é]{0,16}") {
            // In which order terms stand depends on how an operator is written, as in the reference.
            let terms = |s: &Fields| {
                let mut terms: Vec<_> = s.terms.iter().map(|(f, op, v)| (f.clone(), *op == Op::Eq, v.clone())).collect();
                terms.sort();
                terms
            };
            if let Ok(s) = Fields::parse(&text) {
                prop_assert_eq!(terms(&Fields::parse(&s.to_string()).unwrap()), terms(&s));
            }
        }
    }
}
