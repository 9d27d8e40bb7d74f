//! What a CRD is given where its author left something out, and what a write may not change.

use serde_json::{Value, json};

/// Fills in the singular, the list kind, the conversion strategy, the port of a conversion webhook and, where it is
/// empty, the list of stored versions.
pub fn default(crd: &mut Value) {
    let storage = storage_version(crd).map(str::to_owned);
    if !crd.is_object() {
        return;
    }
    if !crd["spec"].is_object() {
        crd["spec"] = json!({});
    }
    let spec = &mut crd["spec"];
    if !spec["names"].is_object() {
        spec["names"] = json!({});
    }
    let names = &mut spec["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    let missing = |v: &Value| v.as_str().is_none_or(str::is_empty) && (v.is_null() || v.is_string());
    if !kind.is_empty() {
        if missing(&names["singular"]) {
            names["singular"] = kind.to_lowercase().into();
        }
        if missing(&names["listKind"]) {
            names["listKind"] = format!("{kind}List").into();
        }
    }
    if let Some(names) = names.as_object_mut() {
        names.retain(|_, v| !v.is_null());
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let service = spec.pointer_mut("/conversion/webhook/clientConfig/service").and_then(Value::as_object_mut);
    if let Some(service) = service
        && service.get("port").is_none_or(Value::is_null)
    {
        service.insert("port".into(), 443.into());
    }
    if let Some(spec) = spec.as_object_mut()
        && spec.get("preserveUnknownFields") == Some(&Value::Bool(false))
    {
        spec.remove("preserveUnknownFields");
    }
    if let (Some(storage), Some(status)) = (storage, crd.get_mut("status").and_then(Value::as_object_mut))
        && status.get("storedVersions").and_then(Value::as_array).is_none_or(Vec::is_empty)
    {
        status.insert("storedVersions".into(), json!([storage]));
    }
}

/// The status of a new CRD: nothing but the version that will be stored.
pub fn prepare_create(crd: &mut Value) {
    let stored = storage_version(crd).map_or(Value::Null, |v| json!([v]));
    let names = json!({"plural": "", "kind": ""});
    set(crd, "status", json!({"conditions": null, "acceptedNames": names, "storedVersions": stored}));
}

/// An update keeps the status, but for a storage version that is new.
pub fn prepare_update(crd: &mut Value, old: &Value) {
    let mut status = old["status"].clone();
    if let Some(version) = storage_version(crd) {
        let mut stored = status["storedVersions"].as_array().cloned().unwrap_or_default();
        if !stored.iter().any(|v| v == version) {
            stored.push(version.into());
            set(&mut status, "storedVersions", stored.into());
        }
    }
    set(crd, "status", status);
}

/// A status update keeps the spec. Labels, annotations and finalizers may change with it, as in the reference.
pub fn prepare_status(crd: &mut Value, old: &Value) {
    set(crd, "spec", old["spec"].clone());
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(key.to_owned(), value);
    }
}

/// The name of the version that is stored.
fn storage_version(crd: &Value) -> Option<&str> {
    crd["spec"]["versions"].as_array()?.iter().find(|v| v["storage"] == true)?["name"].as_str()
}
