//! YAML as the reference writes it: block style, sorted keys, texts quoted only where they must be.
//!
//! Reading is `schema::decode`'s. Invariant: every YAML 1.1 reader gets the same texts back (`"yes"`, `"1"` …).

use homeostat_model::field::quote_into;
use serde_json::Value;

/// Writes a value.
pub(crate) fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(m) if !m.is_empty() => map(&mut out, m, 0, false),
        Value::Array(a) if !a.is_empty() => list(&mut out, a, 0),
        other => {
            scalar(&mut out, other, 0);
            out.push('\n');
        }
    }
    out
}

fn map(out: &mut String, m: &serde_json::Map<String, Value>, indent: usize, mut inline: bool) {
    for (k, v) in m {
        if !inline {
            pad(out, indent);
        }
        inline = false;
        text(out, k, indent, true);
        out.push(':');
        match v {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                map(out, inner, indent + 2, false);
            }
            Value::Array(inner) if !inner.is_empty() => {
                out.push('\n');
                list(out, inner, indent);
            }
            other => {
                out.push(' ');
                scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn list(out: &mut String, items: &[Value], indent: usize) {
    for v in items {
        pad(out, indent);
        out.push_str("- ");
        match v {
            Value::Object(inner) if !inner.is_empty() => map(out, inner, indent + 2, true),
            Value::Array(inner) if !inner.is_empty() => {
                let mut nested = String::new();
                list(&mut nested, inner, indent + 2);
                out.push_str(nested.trim_start());
            }
            other => {
                scalar(out, other, indent + 2);
                out.push('\n');
            }
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(out: &mut String, v: &Value, indent: usize) {
    match v {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&n.to_string()),
        Value::String(s) => text(out, s, indent, false),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn text(out: &mut String, s: &str, indent: usize, key: bool) {
    if s.contains('\n') && !key && literal_ok(s) {
        let keep = if s.ends_with("\n\n") || s == "\n" {
            "+"
        } else if s.ends_with('\n') {
            ""
        } else {
            "-"
        };
        out.push('|');
        if s.starts_with([' ', '\n']) {
            out.push('2');
        }
        out.push_str(keep);
        for line in s.strip_suffix('\n').unwrap_or(s).split('\n') {
            out.push('\n');
            if !line.is_empty() {
                pad(out, indent);
                out.push_str(line);
            }
        }
        return;
    }
    if !printable(s) || s.contains('\n') || resolves(s) {
        double_quoted(out, s);
    } else if plain(s) {
        out.push_str(s);
    } else {
        out.push('\'');
        out.push_str(&s.replace('\'', "''"));
        out.push('\'');
    }
}

fn printable(s: &str) -> bool {
    s.chars().all(|c| c == '\n' || !(c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')))
}

fn literal_ok(s: &str) -> bool {
    printable(s) && !s.split('\n').any(|l| l.ends_with(' ')) && !s.contains('\t')
}

/// Whether YAML 1.1 would read the plain text as something other than a text.
fn resolves(s: &str) -> bool {
    if s.is_empty() {
        return true;
    }
    let lower = s.to_ascii_lowercase();
    let words = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ".nan", ".inf", "-.inf", "+.inf",
        "<<", "=",
    ];
    if words.contains(&lower.as_str()) {
        return true;
    }
    let digits = lower.trim_start_matches(['-', '+']);
    let number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    number && (numeric(digits) || date(digits))
}

fn numeric(s: &str) -> bool {
    let plain = s.replace('_', "");
    plain.parse::<f64>().is_ok()
        || ["0x", "0o", "0b"].iter().any(|p| {
            plain.strip_prefix(p).is_some_and(|r| !r.is_empty() && r.bytes().all(|b| b.is_ascii_hexdigit()))
        })
        // Sexagesimal numbers: 12:30.
        || (plain.contains(':') && plain.split(':').all(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit() || b == b'.')))
}

fn date(s: &str) -> bool {
    let b = s.as_bytes();
    b.len() >= 8 && b[..4].iter().all(u8::is_ascii_digit) && b[4] == b'-' && b[5].is_ascii_digit()
}

fn plain(s: &str) -> bool {
    let first = s.chars().next().unwrap_or(' ');
    let second_space = s.chars().nth(1).is_none_or(|c| c == ' ');
    let bad_start = match first {
        '-' | '?' | ':' => second_space,
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
            true
        }
        _ => false,
    };
    !(bad_start
        || s.starts_with(' ')
        || s.ends_with(' ')
        || s.ends_with(':')
        || s.contains(": ")
        || s.contains(" #")
        || s.starts_with("---")
        || s.starts_with("..."))
}

fn double_quoted(out: &mut String, s: &str) {
    quote_into(out, s, |c| {
        let n = c as u32;
        let odd = c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}');
        odd.then(|| if n < 0x100 { format!("\\x{n:02X}") } else { format!("\\u{n:04X}") })
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        homeostat_schema::decode::parse_yaml(text.as_bytes(), 64).unwrap().0
    }

    #[test]
    fn yaml_is_written_as_the_reference_writes_it() {
        let v = json!({
            "apiVersion": "v1",
            "metadata": {"annotations": {"n": "1", "note": "yes"}, "labels": {}, "name": "a"},
            "list": ["a", {"b": 1, "c": [1, [2]]}, []],
            "text": "two\nlines\n", "cut": "two\nlines", "time": "2026-01-02T03:04:05Z", "colon": "a: b", "f": "a:b",
            "fields": {".": {}, "k:{\"type\":\"Ready\"}": {}},
        });
        let expect = "apiVersion: v1\ncolon: 'a: b'\ncut: |-\n  two\n  lines\nf: a:b\nfields:\n  .: {}\n  \
            k:{\"type\":\"Ready\"}: {}\nlist:\n- a\n- b: 1\n  c:\n  - 1\n  - - 2\n- []\nmetadata:\n  annotations:\n    \
            \"n\": \"1\"\n    note: \"yes\"\n  labels: {}\n  name: a\ntext: |\n  two\n  lines\n\
            time: \"2026-01-02T03:04:05Z\"\n";
        assert_eq!(write(&v), expect);
        assert_eq!(read(expect), v);
    }

    #[test]
    fn texts_survive_a_round_trip() {
        for s in [
            "",
            " ",
            "a ",
            "#",
            "- a",
            "-",
            "?",
            "1",
            "1.5e3",
            "0x1F",
            "12:30",
            "null",
            "~",
            "y",
            "'",
            "\"",
            "\u{1}",
            "a\tb",
            "a #b",
            "%a",
            "@",
            "\n",
            "\n\n",
            "a\n\n",
            " a\nb",
            "é",
            "*x",
            "&x",
            "!x",
            "{a}",
            "[a]",
            "a, b",
            "a]",
            "2026-01-02",
        ] {
            let v = json!({"a": s, "l": [s]});
            assert_eq!(read(&write(&v)), v, "{}", write(&json!({"a": s})));
        }
    }
}
