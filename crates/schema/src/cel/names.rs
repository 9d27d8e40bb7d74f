//! Words of the language, and the names that fields get in expressions.
//!
//! What is a word in CEL is no name of a field: such fields are written `__name__`, and characters that no identifier
//! has are spelled out. One list, for lexer, declarations and values.

use std::borrow::Cow;

/// Words that are values or operators.
const LITERALS: [&str; 4] = ["true", "false", "null", "in"];

/// Words that no variable may be called.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether no variable may be called so, though it reads like a name.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Whether a name is one that variables may have.
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !is_reserved(name)
        && !LITERALS.contains(&name)
}

/// A field's name as expressions write it.
pub(super) fn escape(name: &str) -> Cow<'_, str> {
    if is_reserved(name) || LITERALS.contains(&name) {
        return format!("__{name}__").into();
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return name.into();
    }
    let name = name.replace("__", "__underscores__");
    name.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__").into()
}

/// Whether expressions can name a field at all.
pub(super) fn has_escape(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '-' | '/');
    name.starts_with(begins)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_one_name_in_expressions() {
        for (name, want, nameable) in [
            ("replicas", "replicas", true),
            ("x-y", "x__dash__y", true),
            ("a.b/c", "a__dot__b__slash__c", true),
            ("a__b", "a__underscores__b", true),
            ("namespace", "__namespace__", true),
            ("in", "__in__", true),
            ("1st", "1st", false),
            ("$ref", "$ref", false),
        ] {
            assert_eq!((&*escape(name), has_escape(name)), (want, nameable), "{name}");
        }
        assert!(
            is_identifier("_a1") && !is_identifier("a-b") && !is_identifier("in") && !is_identifier("var")
        );
    }
}
