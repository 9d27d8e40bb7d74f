//! How Go prints JSON values: in error texts (`%v`, `%#v`, `%T`) and as `encoding/json` writes them.
//!
//! Only what texts of the reference show. Maps print sorted by key, as Go's fmt does.

use homeostat_model::field::{quote, quote_into};
use serde_json::{Number, Value};

use crate::golang;

/// `%v`.
pub(crate) fn v(value: &Value) -> String {
    let mut out = String::new();
    write_v(value, &mut out);
    out
}

fn write_v(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&number(n)),
        Value::String(s) => out.push_str(s),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write_v(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_v(item, out);
            }
            out.push(']');
        }
    }
}

/// `%#v`.
pub(crate) fn sharp_v(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(n),
        Value::String(s) => quote(s),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(sharp_v).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let fields: Vec<String> =
                map.iter().map(|(k, v)| format!("{}:{}", quote(k), sharp_v(v))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
    }
}

/// `%T` of a decoded value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A number as `%v` prints int64 and float64.
pub(crate) fn number(n: &Number) -> String {
    match n.as_f64() {
        Some(f) if n.is_f64() => golang::float(f),
        _ => n.to_string(),
    }
}

/// A value as `encoding/json` writes it: sorted keys, `<`, `>` and `&` escaped.
pub(crate) fn json(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() => out.push_str(&json_float(f)),
            _ => out.push_str(&n.to_string()),
        },
        Value::String(s) => json_string(s, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            for (i, (key, item)) in map.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                json_string(key, out);
                out.push(':');
                json(item, out);
            }
            out.push('}');
        }
    }
}

/// encoding/json's floats: an exponent below 1e-6 and from 1e21, and `e-7` rather than `e-07`.
fn json_float(f: f64) -> String {
    let size = f.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{f:e}");
        return if text.contains("e-") { text } else { text.replace('e', "e+") };
    }
    format!("{f}")
}

/// A string as `encoding/json` quotes it.
pub(crate) fn json_string(s: &str, out: &mut String) {
    quote_into(out, s, |c| match c {
        '\u{8}' => Some("\\b".to_owned()),
        '\u{c}' => Some("\\f".to_owned()),
        '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => Some(format!("\\u{:04x}", c as u32)),
        _ => None,
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_print_as_go_prints_them() {
        let cases = [
            (json!({"name": "a"}), "map[name:a]", r#"map[string]interface {}{"name":"a"}"#),
            (json!([1, "x", null]), "[1 x <nil>]", r#"[]interface {}{1, "x", interface {}(nil)}"#),
            (json!(1.5), "1.5", "1.5"),
            (json!(1e21), "1e+21", "1e+21"),
            (json!(0.00001), "1e-05", "1e-05"),
            (json!(true), "true", "true"),
        ];
        for (value, plain, sharp) in cases {
            assert_eq!(v(&value), plain);
            assert_eq!(sharp_v(&value), sharp);
        }
    }

    #[test]
    fn json_escapes_html_as_go_does() {
        let mut out = String::new();
        json(&json!({"b": "<&>", "a": [1, 2.5, "q\"\u{1}"]}), &mut out);
        assert_eq!(out, r#"{"a":[1,2.5,"q\"\u0001"],"b":"\u003c\u0026\u003e"}"#);
    }
}
