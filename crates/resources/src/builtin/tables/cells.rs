//! Cells that many rows share: names, ages, labels, containers, short lists.

use homeostat_model::Timestamp;
use homeostat_model::selector;
use serde_json::Value;

use crate::builtin::value::{at, entries, int, items, text};
use crate::table::age as since;

/// A text, or something else where it is empty.
pub(super) fn or(value: &str, otherwise: &str) -> Value {
    if value.is_empty() { otherwise.into() } else { value.into() }
}

/// The object's name.
pub(super) fn name(object: &Value) -> Value {
    text(object, "metadata.name").into()
}

/// How long ago the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    ago(text(object, "metadata.creationTimestamp"), now).into()
}

/// How long ago a time was; `<unknown>` for none.
pub(super) fn ago(time: &str, now: Timestamp) -> String {
    since(time, now)
}

/// Name and age.
pub(super) fn name_and_age(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![name(object), age(object, now)]
}

/// Name and time of creation.
pub(super) fn name_and_time(object: &Value, _now: Timestamp) -> Vec<Value> {
    vec![name(object), at(object, "metadata.creationTimestamp").clone()]
}

/// A number, 0 where it is absent.
pub(super) fn number(object: &Value, path: &str) -> Value {
    int(object, path).unwrap_or_default().into()
}

/// A map of labels as `a=b,c=d`.
pub(super) fn labels(map: &Value) -> Value {
    let list: Vec<String> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    or(&list.join(","), "<none>")
}

/// A label selector as kubectl writes it.
pub(super) fn selector(selector: &Value) -> Value {
    if selector.is_null() {
        return "<none>".into();
    }
    or(&selector::Labels::from_valid(selector).to_string(), "<none>")
}

/// Names and images of a pod spec's containers.
pub(super) fn containers(spec: &Value) -> [Value; 2] {
    let list = |field: &str| -> Value {
        items(spec, "containers").iter().map(|c| text(c, field)).collect::<Vec<_>>().join(",").into()
    };
    [list("name"), list("image")]
}

/// The first three of a list, and how many more there are.
pub(super) fn first_three(list: &[String], none: &str) -> Value {
    match list {
        [] => none.into(),
        _ if list.len() <= 3 => list.join(",").into(),
        _ => format!("{} + {} more...", list[..3].join(","), list.len() - 3).into(),
    }
}

/// Quantities and numbers as they are written.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `True`, `False`, or `<unset>`.
pub(super) fn flag(value: &Value) -> Value {
    match value.as_bool() {
        Some(true) => "True".into(),
        Some(false) => "False".into(),
        None => "<unset>".into(),
    }
}

/// The condition of a type.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, "status.conditions").iter().find(|c| text(c, "type") == kind)
}

/// Keys of a map.
pub(super) fn count(object: &Value, path: &str) -> usize {
    entries(object, path).count()
}
