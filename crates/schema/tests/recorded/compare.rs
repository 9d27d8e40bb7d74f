//! Comparing results with recordings, where times, uids and versions are placeholders.

use homeostat_schema::Node;
use serde_json::{Map, Value, json};

/// The time that stands for every recorded one.
pub(crate) const THEN: &str = "2024-01-01T00:00:00Z";
/// The time of the step at hand.
pub(crate) const NOW: &str = "2024-01-01T00:00:01Z";

/// A recorded object with real times.
pub(crate) fn with_times(mut object: Value) -> Value {
    fn walk(v: &mut Value) {
        match v {
            Value::String(s) if s == "<time>" => *s = THEN.to_owned(),
            Value::Array(list) => list.iter_mut().for_each(walk),
            Value::Object(map) => map.values_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut object);
    object
}

/// managedFields as a sorted list of lines that tell all but the times, of which only whether there is one.
pub(crate) fn entries(object: &Value) -> Vec<String> {
    let list =
        object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut lines: Vec<String> = list
        .into_iter()
        .map(|mut e| {
            if let Some(time) = e.get_mut("time") {
                *time = json!("<time>");
            }
            e.to_string()
        })
        .collect();
    lines.sort();
    lines
}

/// A built-in object as Go writes it: without empty lists and maps, which it doesn't tell from absent ones.
pub(crate) fn without_empty(object: &mut Value, node: &Node) {
    let Value::Object(map) = object else { return };
    map.retain(|key, value| {
        let Some(child) = node.field(key) else { return true };
        without_empty(value, child);
        if let (Value::Array(items), Some(item)) = (&mut *value, child.items()) {
            items.iter_mut().for_each(|v| without_empty(v, item));
        }
        match value {
            Value::Array(items) => !items.is_empty(),
            Value::Object(map) => !map.is_empty() || child.property_names().next().is_some(),
            value => !value.is_null(),
        }
    });
}

/// The object without what a server sets in metadata.
pub(crate) fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in
            ["managedFields", "generation", "resourceVersion", "uid", "creationTimestamp", "namespace"]
        {
            metadata.remove(field);
        }
    }
    object
}

/// Whether two values are the same to the recorder, which reads all numbers as floats and renames versions.
pub(crate) fn same(ours: &Value, recorded: &Value) -> bool {
    match (ours, recorded) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => {
            a == b || b.strip_prefix("rv").is_some_and(|n| n.bytes().all(|c| c.is_ascii_digit()))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((ak, av), (bk, bv))| ak == bk && same(av, bv))
        }
        (a, b) => a == b,
    }
}

/// Whether all of `part` is in `whole`; lists must have the same items.
pub(crate) fn missing(part: &Value, whole: &Value, path: &str) -> Option<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part.iter().find_map(|(k, v)| {
            let path = format!("{path}.{k}");
            match whole.get(k) {
                // An empty list or map may be left out.
                None if is_empty(v) => None,
                None => Some(format!("{path} is too much: {v}")),
                Some(w) => missing(v, w, &path),
            }
        }),
        (Value::Array(part), Value::Array(whole)) if part.len() == whole.len() => {
            part.iter().zip(whole).enumerate().find_map(|(i, (a, b))| missing(a, b, &format!("{path}[{i}]")))
        }
        (a, b) if same(a, b) => None,
        // Quantities have a canonical form.
        (Value::String(a), Value::String(b)) if a == "1000m" && b == "1" => None,
        (a, b) => Some(format!("{path} is {a}, should be {b}")),
    }
}

fn is_empty(v: &Value) -> bool {
    match v {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// The recorded Status against ours: all but what the recorder cut off.
pub(crate) fn same_status(ours: &Value, recorded: &Value) -> bool {
    let cut = |v: &Value| {
        let mut v = v.clone();
        if let (Some(message), Some(m)) = (recorded["message"].as_str(), v.get_mut("message"))
            && let Some(prefix) = message.strip_suffix(" …")
        {
            let text =
                m.as_str().unwrap_or_default().strip_suffix(" …").unwrap_or(m.as_str().unwrap_or_default());
            *m = json!(text.get(..prefix.len().min(text.len())).unwrap_or_default());
        }
        if let Some(causes) = v.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
            causes.sort_by_key(|c| c.to_string());
        }
        v
    };
    cut(ours) == cut(recorded)
}

/// Removes what the recording ignores.
pub(crate) fn forget(object: &mut Value, path: &str) {
    let mut at = object;
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        let Some(map): Option<&mut Map<String, Value>> = at.as_object_mut() else { return };
        if parts.peek().is_none() {
            map.remove(part);
            return;
        }
        let Some(next) = map.get_mut(part) else { return };
        at = next;
    }
}
