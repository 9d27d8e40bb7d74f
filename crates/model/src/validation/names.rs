//! The grammars of names: DNS labels and subdomains, label keys and values, path segments, field managers.

use crate::field;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// The rule, examples of what keeps it, and its regular expression.
fn regex_error(rule: &str, regex: &str, examples: &[&str]) -> String {
    let mut out = format!("{rule} (");
    for (i, e) in examples.iter().enumerate() {
        out.push_str(if i == 0 { "e.g. " } else { "or " });
        out.push_str(&format!("'{e}', "));
    }
    out.push_str(&format!("regex used for validation is '{regex}')"));
    out
}

fn max_len(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn lower(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

/// `s` is not empty, starts and ends with `edge`, and holds only `edge` or `middle`.
fn shaped(s: &str, edge: fn(u8) -> bool, middle: &[u8]) -> bool {
    let b = s.as_bytes();
    match (b.first(), b.last()) {
        (Some(f), Some(l)) => edge(*f) && edge(*l) && b.iter().all(|c| edge(*c) || middle.contains(c)),
        _ => false,
    }
}

fn is_label(s: &str) -> bool {
    shaped(s, lower, b"-")
}

fn is_subdomain(s: &str) -> bool {
    s.split('.').all(is_label)
}

fn is_qualified(s: &str) -> bool {
    shaped(s, |b| b.is_ascii_alphanumeric(), b"-_.")
}

/// The base of a generated name may end with a dash: it is followed by more.
fn masked(name: &str, prefix: bool) -> std::borrow::Cow<'_, str> {
    match name.strip_suffix('-') {
        // The character before the dash goes too, as in the reference.
        Some(base) if prefix && !base.is_empty() => {
            let mut chars = base.chars();
            chars.next_back();
            format!("{}a", chars.as_str()).into()
        }
        _ => name.into(),
    }
}

/// RFC 1123 subdomain, at most 253 bytes; `prefix` for the value of `generateName`.
pub fn dns1123_subdomain(name: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain_value(&masked(name, prefix))
}

/// RFC 1123 subdomain of a value that is no object's name.
pub fn dns1123_subdomain_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 253 {
        errors.push(max_len(253));
    }
    if !is_subdomain(value) {
        errors.push(regex_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    errors
}

/// RFC 1123 label, at most 63 bytes; `prefix` for the value of `generateName`.
pub fn dns1123_label(name: &str, prefix: bool) -> Vec<String> {
    dns1123_label_value(&masked(name, prefix))
}

/// RFC 1123 label of a value that is no object's name.
pub fn dns1123_label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(max_len(63));
    }
    if !is_label(value) {
        errors.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_error(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    errors
}

/// RFC 1035 label (starts with a letter), at most 63 bytes; `prefix` for the value of `generateName`.
pub fn dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    let name = masked(name, prefix);
    let mut errors = Vec::new();
    if name.len() > 63 {
        errors.push(max_len(63));
    }
    if !(is_label(&name) && name.starts_with(|c: char| c.is_ascii_lowercase())) {
        errors.push(regex_error(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
            LABEL_1035,
            &["my-name", "abc-123"],
        ));
    }
    errors
}

/// A label key, and whatever else has its shape: `name` or `example.com/name`.
pub fn qualified_name(value: &str) -> Vec<String> {
    const RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let rule = || regex_error(RULE, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors
                    .extend(dns1123_subdomain_value(prefix).into_iter().map(|e| format!("prefix part {e}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                rule()
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", max_len(63)));
    }
    if !is_qualified(name) {
        errors.push(format!("name part {}", rule()));
    }
    errors
}

/// A label's value: empty, or at most 63 bytes.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push(max_len(63));
    }
    if !value.is_empty() && !is_qualified(value) {
        errors.push(regex_error(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            LABEL_VALUE,
            &["MyValue", "my_value", "12345"],
        ));
    }
    errors
}

/// A name that fits into a URL's path, such as those of RBAC objects; `prefix` for the value of `generateName`.
pub fn path_segment_name(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    let found = ['/', '%'].into_iter().filter(|c| name.contains(*c));
    found.map(|c| format!("may not contain '{c}'")).collect()
}

/// A field manager: at most 128 bytes of printable characters. `path` is where it was given.
pub fn field_manager(manager: &str, path: &str) -> Vec<field::Error> {
    let mut errors = Vec::new();
    if manager.len() > 128 {
        errors.push(field::Error::too_long(path, 128));
    }
    for (i, c) in manager.char_indices().filter(|(_, c)| !printable(*c)) {
        let why = format!("invalid character {} (at position {i})", code_point(c));
        errors.push(field::Error::invalid(path, manager, why));
    }
    errors
}

/// Go's `unicode.IsPrint`, close enough: no controls, no spaces but the ordinary one.
fn printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}'))
}

/// Go's `%#U`: the number, and the character where it can be printed.
fn code_point(c: char) -> String {
    if printable(c) { format!("U+{:04X} '{c}'", c as u32) } else { format!("U+{:04X}", c as u32) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(f: fn(&str) -> Vec<String>, good: &[&str], bad: &[&str]) {
        for s in good {
            assert_eq!(f(s), Vec::<String>::new(), "{s:?}");
        }
        for s in bad {
            assert_ne!(f(s), Vec::<String>::new(), "{s:?}");
        }
    }

    #[test]
    fn grammars() {
        let long = "a".repeat(64);
        check(|s| dns1123_label(s, false), &["a", "0", "a-b"], &["", "-a", "a-", "A", "a.b", "é", &long]);
        check(|s| dns1123_label(s, true), &["a-", "ab-"], &["-", "-a", "a.b-"]);
        check(
            |s| dns1123_subdomain(s, false),
            &["a", "a.b", "0.0", &long],
            &["", "a..b", ".a", "a.", "a.-b", "A"],
        );
        check(|s| dns1035_label(s, false), &["a", "a0"], &["0a", "a.b", "", "a-"]);
        check(qualified_name, &["a", "A_b.c", "x.y/z"], &["", "a/b/c", "/a", "a/", "-a", "X/y", &long]);
        check(label_value, &["", "a", "A_b.c"], &["_a", "a b", "a/b", &long]);
        check(|s| path_segment_name(s, false), &["a", "system:x", "A b"], &[".", "..", "a/b", "a%b"]);
        check(|s| path_segment_name(s, true), &[".", "a-"], &["a/"]);
    }

    #[test]
    fn texts_are_the_references() {
        let cases = [
            (dns1123_label("a.b", false), vec!["must not contain dots"]),
            (
                dns1123_label("A", false),
                vec![
                    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name', or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                ],
            ),
            (
                qualified_name("/"),
                vec![
                    "prefix part must be non-empty",
                    "name part must be non-empty",
                    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName', or 'my.name', or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                ],
            ),
            (path_segment_name("..", false), vec!["may not be '..'"]),
            (path_segment_name("a/%", false), vec!["may not contain '/'", "may not contain '%'"]),
        ];
        for (got, want) in cases {
            assert_eq!(got, want);
        }
        assert_eq!(
            field_manager("tab\tbed", "fieldManager")[0].to_string(),
            "fieldManager: Invalid value: \"tab\\tbed\": invalid character U+0009 (at position 3)"
        );
    }

    proptest! {
        #[test]
        fn shapes_are_those_of_the_regular_expressions(text in "[aB0._-]{0,6}") {
            let is = |re: &str| regex::Regex::new(&format!("^{re}$")).unwrap().is_match(&text);
            prop_assert_eq!(is_label(&text), is(LABEL));
            prop_assert_eq!(is_subdomain(&text), is(SUBDOMAIN));
            prop_assert_eq!(is_qualified(&text), is(QUALIFIED));
            prop_assert_eq!(label_value(&text).is_empty(), is(LABEL_VALUE));
            prop_assert_eq!(dns1035_label(&text, false).is_empty(), is(LABEL_1035));
        }
    }
}
