//! From client-side apply to server-side apply: manager `kubectl` may take fields that its own last-applied
//! annotation proves to be its own, and the server keeps that annotation up to date.

use serde_json::Value;

use super::ManagerCx;
use crate::fields::FieldSet;
use crate::typed::{self, go};

/// The only manager for which the annotation counts.
pub(super) const KUBECTL: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Bytes of all annotations of an object, keys included.
const MAX_ANNOTATIONS: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|s| !s.is_empty())
}

/// The fields that were last applied client-side and still have the value they were applied with.
pub(super) fn proven(live: &Value, cx: &ManagerCx<'_>) -> Option<FieldSet> {
    let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
    let is = |field: &str, want: &str| applied.get(field).and_then(Value::as_str) == Some(want);
    if !is("apiVersion", cx.api_version) || !applied.get("kind").is_some_and(Value::is_string) {
        return None;
    }
    typed::check(live, cx.schema, false).ok()?;
    typed::check(&applied, cx.schema, false).ok()?;
    let changes = typed::compare(&applied, live, cx.schema, &FieldSet::new());
    let set = typed::field_set(&applied, cx.schema);
    Some(set.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Writes what was applied now into the annotation, if the object has it.
pub(super) fn refresh(object: &mut Value, applied: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = annotations(&mut applied) {
        annotations.remove(ANNOTATION);
    }
    let mut text = String::new();
    go::json(&applied, &mut text);
    text.push('\n');
    let Some(annotations) = annotations(object) else { return };
    annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    let size: usize = annotations.iter().map(|(k, v)| k.len() + v.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn annotations(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()
}
