//! What is wrong with an access review.

use homeostat_model::field::{self, Error};
use serde_json::Value;

/// Fields of object metadata in the order in which Go prints them.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const MANAGED: [&str; 7] =
    ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

fn present(v: &Value) -> bool {
    !v.is_null()
}

/// An object with its keys in a given order.
fn ordered(of: &Value, keys: &[&str], show: impl Fn(&str, &Value) -> String) -> String {
    let fields = keys.iter().filter_map(|k| Some(format!("\"{k}\":{}", show(k, of.get(k)?))));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn show_metadata(metadata: &Value) -> Value {
    let entry = |v: &Value| ordered(v, &MANAGED, |_, v| field::go_json(v));
    field::verbatim(ordered(metadata, &METADATA, |key, v| match v.as_array() {
        Some(entries) if key == "managedFields" => {
            format!("[{}]", entries.iter().map(entry).collect::<Vec<_>>().join(","))
        }
        _ => field::go_json(v),
    }))
}

/// The reference prints its internal structure, whose fields have capital names.
fn show_path(attributes: &Value) -> Value {
    let text = |k: &str| field::go_json(&attributes[k].as_str().unwrap_or_default().into());
    field::verbatim(format!("{{\"Path\":{},\"Verb\":{}}}", text("path"), text("verb")))
}

/// Rules of `spec`. `subject`: whether it names one.
pub(super) fn spec(spec: &Value, subject: bool) -> Vec<Error> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let mut errors = Vec::new();
    match (present(resource), present(path)) {
        (true, true) => errors.push(Error::invalid(
            "spec.nonResourceAttributes",
            show_path(path),
            "cannot be specified in combination with resourceAttributes",
        )),
        (false, false) => errors.push(Error::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
    for name in ["fieldSelector", "labelSelector"] {
        errors.extend(selector(&resource[name], &format!("spec.resourceAttributes.{name}")));
    }
    let groups = spec["groups"].as_array().is_some_and(|g| !g.is_empty());
    if subject && spec["user"].as_str().unwrap_or_default().is_empty() && !groups {
        errors.push(Error::invalid("spec.user", "", "at least one of user or group must be specified"));
    }
    errors
}

fn selector(selector: &Value, path: &str) -> Vec<Error> {
    if !present(selector) {
        return Vec::new();
    }
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let requirements = selector["requirements"].as_array().is_some_and(|r| !r.is_empty());
    match (raw.is_empty(), requirements) {
        (false, true) => {
            let why = "may not specified at the same time as requirements";
            vec![Error::invalid(field::child(path, "rawSelector"), raw, why)]
        }
        (true, false) => {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            vec![Error::required(field::child(path, "requirements"), why)]
        }
        _ => Vec::new(),
    }
}

/// Reviews have no metadata; `namespace` may stand in that of local ones.
pub(super) fn metadata(metadata: &Value, namespace: bool) -> Option<Error> {
    let set = metadata.as_object().into_iter().flatten();
    let extra = |k: &str| !(k == "managedFields" || (k == "namespace" && namespace));
    let empty = |v: &Value| match v {
        Value::Null => true,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        _ => false,
    };
    let filled = set.filter(|(_, v)| !empty(v));
    let why = if namespace { "must be empty except for namespace" } else { "must be empty" };
    filled.map(|(k, _)| k).any(|k| extra(k)).then(|| Error::invalid("metadata", show_metadata(metadata), why))
}

/// Rules of local reviews: the namespace is the metadata's.
pub(super) fn local(review: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (resource, path) = (&review["spec"]["resourceAttributes"], &review["spec"]["nonResourceAttributes"]);
    let asked = resource["namespace"].as_str().unwrap_or_default();
    if present(resource) && asked != review["metadata"]["namespace"].as_str().unwrap_or_default() {
        errors.push(Error::invalid(
            "spec.resourceAttributes.namespace",
            asked,
            "must match metadata.namespace",
        ));
    }
    if present(path) {
        let why = "disallowed on this kind of request";
        errors.push(Error::invalid("spec.nonResourceAttributes", show_path(path), why));
    }
    errors
}
