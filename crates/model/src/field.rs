//! Errors of single fields, with the kinds, texts and causes of apimachinery's `validation/field` package.
//!
//! An error names a path (`spec.containers[0].name`), what is wrong, and the value where that helps.

use std::fmt;

use serde_json::Value;

/// What is wrong with a field. The names and texts are the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The value refers to something that is absent.
    NotFound,
    /// A value is missing.
    Required,
    /// A value stands twice where it may stand once.
    Duplicate,
    /// The value breaks a rule.
    Invalid,
    /// The value is none of those that are allowed.
    NotSupported,
    /// The field may not be set here.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The server failed while it looked at the field.
    Internal,
    /// The value has another JSON type.
    TypeInvalid,
}

impl Kind {
    /// The machine-readable reason of a cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong | Self::Internal)
    }
}

/// One field's error.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What is wrong.
    pub kind: Kind,
    /// Where: `spec.containers[0].name`; empty or `<nil>` for the root, as the reference has it there.
    pub path: String,
    /// The offending value; `Null` where none is shown.
    pub value: Value,
    /// The rule in words; may be empty.
    pub detail: String,
}

impl Error {
    /// An error of any kind.
    pub fn new(
        kind: Kind,
        path: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, path: path.into(), value: value.into(), detail: detail.into() }
    }

    /// `Required value`, with a hint that may be empty.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Required, path, Value::Null, detail)
    }

    /// `Invalid value: …`.
    pub fn invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, path, value, detail)
    }

    /// `Invalid value: …` of another JSON type.
    pub fn type_invalid(path: impl Into<String>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(Kind::TypeInvalid, path, value, detail)
    }

    /// `Forbidden: …`.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(Kind::Forbidden, path, Value::Null, detail)
    }

    /// `Duplicate value: …`.
    pub fn duplicate(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Kind::Duplicate, path, value, "")
    }

    /// `Not found: …`.
    pub fn not_found(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(Kind::NotFound, path, value, "")
    }

    /// `Unsupported value: "x": supported values: "a", "b"`; the values are printed in the order given.
    pub fn not_supported(path: impl Into<String>, value: impl Into<Value>, allowed: &[&str]) -> Self {
        let list: Vec<String> = allowed.iter().map(|a| quote(a)).collect();
        let detail =
            if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        Self::new(Kind::NotSupported, path, value, detail)
    }

    /// `Too long: may not be more than N bytes`.
    pub fn too_long(path: impl Into<String>, max: usize) -> Self {
        Self::new(Kind::TooLong, path, Value::Null, format!("may not be more than {max} bytes"))
    }

    /// `Too many: N: must have at most M items`.
    pub fn too_many(path: impl Into<String>, actual: usize, max: usize) -> Self {
        Self::new(Kind::TooMany, path, actual, format!("must have at most {max} items"))
    }

    /// The text without the path, as a cause carries it.
    pub fn body(&self) -> String {
        let mut out = self.kind.text().to_owned();
        if self.kind.shows_value() && self.value.get(OMITTED).is_none() {
            out.push_str(": ");
            out.push_str(&show(&self.value));
        }
        if !self.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.detail);
        }
        out
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// The one key of a value made by [`verbatim`]; no JSON object that a client sends can be mistaken for it, since
/// the API's field names hold no NUL.
const VERBATIM: &str = "\0verbatim";

/// The one key of [`omitted`].
const OMITTED: &str = "\0omitted";

/// A value that isn't printed, although the kind of error prints values: rules in CEL don't repeat whole objects.
pub fn omitted() -> Value {
    serde_json::json!({ OMITTED: null })
}

/// A value that prints as `text`: for structures that Go prints with their internal names and order of fields.
pub fn verbatim(text: impl Into<String>) -> Value {
    serde_json::json!({ VERBATIM: text.into() })
}

/// Values as Go prints them in field errors: strings quoted, the rest as JSON.
fn show(v: &Value) -> String {
    match v {
        Value::Null => "null".to_owned(),
        Value::String(s) => quote(s),
        Value::Object(o) if o.len() == 1 && o.contains_key(VERBATIM) => {
            o[VERBATIM].as_str().unwrap_or_default().to_owned()
        }
        Value::Array(_) | Value::Object(_) => go_json(v),
        other => other.to_string(),
    }
}

/// JSON as Go's encoder writes it: `<`, `>`, `&` and the line separators are escaped.
pub fn go_json(v: &Value) -> String {
    let text = v.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Go's `%q`: the escapes that Go and JSON share, others as Go writes them.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    quote_into(&mut out, s, |c| match c {
        '\u{7}' => Some("\\a".to_owned()),
        '\u{8}' => Some("\\b".to_owned()),
        '\u{c}' => Some("\\f".to_owned()),
        '\u{b}' => Some("\\v".to_owned()),
        '\0'..='\u{1f}' | '\u{7f}' => Some(format!("\\x{:02x}", c as u32)),
        _ => None,
    });
    out
}

/// Writes a text in double quotes, with the escapes that Go, JSON and YAML share. `other` says how a further character
/// is written, where it does not stand for itself.
pub fn quote_into(out: &mut String, s: &str, other: impl Fn(char) -> Option<String>) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => match other(c) {
                Some(escape) => out.push_str(&escape),
                None => out.push(c),
            },
        }
    }
    out.push('"');
}

/// Appends `.name` to a path, or `name` at the root.
pub fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Appends `[i]`.
pub fn index(path: &str, i: usize) -> String {
    format!("{path}[{i}]")
}

/// Appends `[key]`, as errors of map entries have it.
pub fn key(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_references() {
        let cases = [
            (Error::required("spec.name", ""), "spec.name: Required value"),
            (Error::invalid("a", 101, "too big"), "a: Invalid value: 101: too big"),
            (Error::invalid("a", "x\"y", ""), "a: Invalid value: \"x\\\"y\""),
            (
                Error::not_supported("a", "z", &["b", "c"]),
                "a: Unsupported value: \"z\": supported values: \"b\", \"c\"",
            ),
            (Error::too_long("a", 63), "a: Too long: may not be more than 63 bytes"),
            (Error::too_many("a", 5, 3), "a: Too many: 5: must have at most 3 items"),
            (Error::forbidden("a", "no"), "a: Forbidden: no"),
            (Error::invalid("a", omitted(), "no"), "a: Invalid value: no"),
            (Error::duplicate("a", omitted()), "a: Duplicate value"),
            (Error::invalid("a", serde_json::json!(["<"]), ""), "a: Invalid value: [\"\\u003c\"]"),
            (Error::invalid("a", verbatim("{\"B\":1,\"A\":2}"), ""), "a: Invalid value: {\"B\":1,\"A\":2}"),
        ];
        for (error, want) in cases {
            assert_eq!(error.to_string(), want);
        }
    }

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        for (text, want) in
            [("a", r#""a""#), ("\"\\\n\r\t", r#""\"\\\n\r\t""#), ("\u{7}\u{1}é\u{7f}", r#""\a\x01é\x7f""#)]
        {
            assert_eq!(quote(text), want);
        }
    }
}
