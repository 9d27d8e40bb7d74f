//! Compares a recorded answer with ours, and cuts long prose that is each server's own affair.

use serde_json::{Map, Value};

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    /// Dotted path from the step's answer.
    pub(super) path: String,
    /// As recorded.
    pub(super) want: Value,
    /// As answered.
    pub(super) got: Value,
    /// Whether it is only a human-readable text.
    pub(super) text: bool,
}

/// Of a long message its beginning counts, of a long description only that it is there.
pub(super) fn trim(value: Value, key: &str) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(k, v)| {
                    let v = trim(v, &k);
                    (k, v)
                })
                .collect(),
        ),
        Value::Array(list) => {
            let key = if key == "warnings" { "message" } else { key };
            Value::Array(list.into_iter().map(|v| trim(v, key)).collect())
        }
        Value::String(s) if key == "message" && s.chars().count() > 200 => {
            Value::String(s.chars().take(120).collect::<String>() + " …")
        }
        Value::String(s) if key.ends_with("description") && s.chars().count() > 80 => "<text>".into(),
        other => other,
    }
}

/// All differences, in the order of the recorded answer.
pub(super) fn differences(want: &Value, got: &Value) -> Vec<Difference> {
    let mut out = Vec::new();
    walk(want, got, "", false, &mut out);
    out
}

fn walk(want: &Value, got: &Value, path: &str, text: bool, out: &mut Vec<Difference>) {
    let absent = || Value::String("<absent>".into());
    match (want, got) {
        (Value::Object(w), Value::Object(g)) => {
            for key in w.keys().chain(g.keys().filter(|k| !w.contains_key(*k))) {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let text = key == "message";
                match (w.get(key), g.get(key)) {
                    (Some(a), Some(b)) => walk(a, b, &at, text, out),
                    (a, b) => out.push(Difference {
                        path: at,
                        want: a.cloned().unwrap_or_else(absent),
                        got: b.cloned().unwrap_or_else(absent),
                        text,
                    }),
                }
            }
        }
        (Value::Array(w), Value::Array(g)) if w.len() == g.len() => {
            for (i, (a, b)) in w.iter().zip(g).enumerate() {
                walk(a, b, &format!("{path}[{i}]"), text, out);
            }
        }
        _ if want != got => {
            out.push(Difference { path: path.to_owned(), want: want.clone(), got: got.clone(), text });
        }
        _ => {}
    }
}

/// The value at a dotted path; numbers index lists and `\` stands for a dot inside a key. `Null` where absent.
pub(super) fn dig(value: &Value, path: &str) -> Value {
    let mut at = value;
    for part in path.split('.').filter(|p| !p.is_empty()) {
        let part = part.replace('\\', ".");
        let next = match at {
            Value::Array(list) => part.parse::<isize>().ok().and_then(|i| {
                let i = if i < 0 { i + list.len() as isize } else { i };
                usize::try_from(i).ok().and_then(|i| list.get(i))
            }),
            Value::Object(map) => map.get(&part),
            _ => None,
        };
        match next {
            Some(v) => at = v,
            None => return Value::Null,
        }
    }
    at.clone()
}

/// Removes the value at a dotted path; `*` stands for every item of a list.
pub(super) fn drop(value: &mut Value, path: &str) {
    let parts: Vec<&str> = path.split('.').collect();
    drop_parts(value, &parts);
}

fn drop_parts(value: &mut Value, parts: &[&str]) {
    let Some((first, rest)) = parts.split_first() else { return };
    match value {
        Value::Array(list) if *first == "*" => list.iter_mut().for_each(|v| drop_parts(v, rest)),
        Value::Array(list) if !rest.is_empty() => {
            if let Some(v) = first.parse::<usize>().ok().and_then(|i| list.get_mut(i)) {
                drop_parts(v, rest);
            }
        }
        Value::Object(map) => drop_key(map, &first.replace('\\', "."), rest),
        _ => {}
    }
}

fn drop_key(map: &mut Map<String, Value>, key: &str, rest: &[&str]) {
    if rest.is_empty() {
        map.remove(key);
    } else if let Some(v) = map.get_mut(key) {
        drop_parts(v, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_messages_are_texts() {
        let want = json!({"status": 404, "body": {"message": "a", "reason": "b"}});
        let got = json!({"status": 404, "body": {"message": "x", "reason": "y", "new": 1}});
        let found: Vec<(String, bool)> =
            differences(&want, &got).into_iter().map(|d| (d.path, d.text)).collect();
        assert_eq!(
            found,
            [("body.message".into(), true), ("body.reason".into(), false), ("body.new".into(), false)]
        );
    }

    #[test]
    fn paths_reach_into_lists() {
        let mut v = json!({"items": [{"a.b": 1, "c": 2}, {"a.b": 3}]});
        assert_eq!(dig(&v, r"items.1.a\b"), json!(3));
        assert_eq!(dig(&v, "items.7.c"), Value::Null);
        drop(&mut v, r"items.*.a\b");
        assert_eq!(v, json!({"items": [{"c": 2}, {}]}));
    }

    #[test]
    fn long_messages_keep_their_beginning() {
        let long = "m".repeat(300);
        assert_eq!(trim(json!({"message": long}), "")["message"], json!(format!("{} …", "m".repeat(120))));
    }
}
