//! Names of managers: where they come from and which are refused.

use homeostat_model::field::{self, Error};
use serde_json::Value;

/// Bytes of a manager's name.
const MAX_NAME: usize = 128;
/// Bytes of a subresource's name in an entry.
const MAX_SUBRESOURCE: usize = 256;

/// The manager of a write: the request's `fieldManager`, or else the User-Agent up to the first slash, without
/// what can't be printed and cut to the longest name.
pub fn name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let mut out = String::new();
    for c in user_agent.split('/').next().unwrap_or_default().chars().filter(|c| is_print(*c)) {
        if out.len() + c.len_utf8() > MAX_NAME {
            break;
        }
        out.push(c);
    }
    out
}

/// What is wrong with a `fieldManager`; an empty one is unset and fine here.
pub fn check_name(name: &str, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    if name.len() > MAX_NAME {
        errors.push(Error::too_long(path, MAX_NAME));
    }
    for (at, c) in name.char_indices().filter(|(_, c)| !is_print(*c)) {
        let text = format!("invalid character U+{:04X} (at position {at})", c as u32);
        errors.push(Error::invalid(path, name, text));
    }
    errors
}

/// What validation of metadata says of managedFields.
pub fn check_entries(managed_fields: &Value, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    for (i, entry) in managed_fields.as_array().into_iter().flatten().enumerate() {
        let path = field::index(path, i);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let child = |name: &str| field::child(&path, name);
        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(Error::invalid(child("operation"), operation, "must be `Apply` or `Update`"));
        }
        let fields_type = text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(Error::invalid(child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(check_name(text("manager"), &child("manager")));
        if text("subresource").len() > MAX_SUBRESOURCE {
            errors.push(Error::too_long(child("subresource"), MAX_SUBRESOURCE));
        }
    }
    errors
}

/// Go's unicode.IsPrint, near enough: what `%q` leaves as it is.
fn is_print(c: char) -> bool {
    c == ' ' || (!c.is_whitespace() && !c.is_control() && !is_format(c))
}

/// Invisible characters that are neither spaces nor controls, private use and unassigned ends.
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_parameter_or_the_user_agent() {
        let long = "m".repeat(200);
        let cases = [
            ("fixer", "curl/8.0", "fixer"),
            ("", "redis-operator/v1.4.2 (linux/amd64) kubernetes/abc", "redis-operator"),
            ("", "Mozilla/5.0 (X11; Linux) Gecko", "Mozilla"),
            ("", "/odd", ""),
            ("", "", ""),
            ("", "a\tb", "ab"),
            ("", &long, &long[..128]),
        ];
        for (parameter, agent, want) in cases {
            assert_eq!(name(parameter, agent), want);
        }
    }

    #[test]
    fn names_are_checked_as_in_the_reference() {
        let texts = |name: &str| -> Vec<String> {
            check_name(name, "fieldManager").iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts("x"), [""; 0]);
        assert_eq!(texts(&"m".repeat(129)), ["fieldManager: Too long: may not be more than 128 bytes"]);
        assert_eq!(
            texts("tab\tbed"),
            [r#"fieldManager: Invalid value: "tab\tbed": invalid character U+0009 (at position 3)"#]
        );
    }
}
