//! ConfigMaps and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, key};
use serde_json::Value;

use crate::builtin::rules::config_key;
use crate::builtin::value::{Errors, IMMUTABLE, at, entries, flag, has, object, remove, text, wrong};
use crate::strategy::{Cx, Strategy};

/// Bytes that the values of a ConfigMap or Secret may have together.
const MAX_BYTES: usize = 1 << 20;
/// What is said of changes to an immutable one.
const FROZEN: &str = "field is immutable when `immutable` is set";

/// Length of base64 text once decoded.
fn decoded(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

fn frozen(errors: &mut Errors, new: &Value, old: &Value, fields: &[&str]) {
    if !flag(old, "immutable") {
        return;
    }
    if !flag(new, "immutable") {
        errors.push(Error::forbidden("immutable", FROZEN));
    }
    for field in fields {
        if at(new, field) != at(old, field) {
            errors.push(Error::forbidden(*field, FROZEN));
        }
    }
}

/// ConfigMaps.
pub(super) struct ConfigMaps;

impl Strategy for ConfigMaps {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let mut size = 0;
        for (name, value) in entries(new, "data") {
            let path = key("data", name);
            wrong(&mut errors, &path, name, config_key(name));
            if new["binaryData"].get(name).is_some() {
                errors.push(Error::invalid(path, name, "duplicate of key present in binaryData"));
            }
            size += value.as_str().map_or(0, str::len);
        }
        for (name, value) in entries(new, "binaryData") {
            wrong(&mut errors, &key("binaryData", name), name, config_key(name));
            size += value.as_str().map_or(0, decoded);
        }
        if size > MAX_BYTES {
            errors.push(Error::too_long("[]", MAX_BYTES));
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        frozen(&mut errors, new, old, &["data", "binaryData"]);
        errors.extend(self.validate(cx, new));
        errors
    }
}

/// Secrets.
pub(super) struct Secrets;

impl Strategy for Secrets {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        merge_string_data(object);
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let mut size = 0;
        for (name, value) in entries(new, "data") {
            wrong(&mut errors, &key("data", name), name, config_key(name));
            size += value.as_str().map_or(0, decoded);
        }
        if size > MAX_BYTES {
            errors.push(Error::too_long("data", MAX_BYTES));
        }
        by_type(&mut errors, new);
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if at(new, "type") != at(old, "type") {
            errors.push(Error::invalid("type", at(new, "type").clone(), IMMUTABLE));
            return errors;
        }
        frozen(&mut errors, new, old, &["data"]);
        errors.extend(self.validate(cx, new));
        errors
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        tls_warning(new).into_iter().collect()
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("type", text(object, "type").to_owned())]
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["type"]
    }
}

/// `stringData` is for writing only: its values go into `data`.
fn merge_string_data(secret: &mut Value) {
    if !has(secret, "stringData") {
        return;
    }
    let Some(Value::Object(texts)) = remove(secret, "stringData") else { return };
    if texts.is_empty() {
        return;
    }
    let data = object(secret, "data");
    for (name, value) in texts {
        if let Value::String(text) = value {
            data.insert(name, STANDARD.encode(text).into());
        }
    }
}

fn by_type(errors: &mut Errors, secret: &Value) {
    let data = &secret["data"];
    let mut need = |name: &str| {
        if data.get(name).is_none() {
            errors.push(Error::required(key("data", name), ""));
        }
    };
    match text(secret, "type") {
        "kubernetes.io/tls" => ["tls.crt", "tls.key"].into_iter().for_each(need),
        "kubernetes.io/dockercfg" => json_value(errors, data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json_value(errors, data, ".dockerconfigjson"),
        "kubernetes.io/ssh-auth" => need("ssh-privatekey"),
        "kubernetes.io/basic-auth" if data.get("username").is_none() && data.get("password").is_none() => {
            ["username", "password"].into_iter().for_each(need);
        }
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            let account = secret["metadata"]["annotations"].get(name).and_then(Value::as_str);
            if account.is_none_or(str::is_empty) {
                errors.push(Error::required(key("metadata.annotations", name), ""));
            }
        }
        _ => {}
    }
}

/// A TLS secret without certificates or keys is stored, but not silently.
fn tls_warning(secret: &Value) -> Option<String> {
    if text(secret, "type") != "kubernetes.io/tls" {
        return None;
    }
    let pem = |name: &str| {
        let value = secret["data"].get(name).and_then(Value::as_str).unwrap_or_default();
        let text = STANDARD.decode(value).unwrap_or_default();
        String::from_utf8_lossy(&text).contains("-----BEGIN ")
    };
    let what = match (pem("tls.crt"), pem("tls.key")) {
        (false, _) => "certificate",
        (true, false) => "key",
        (true, true) => return None,
    };
    Some(format!("tls: failed to find any PEM data in {what} input"))
}

fn json_value(errors: &mut Errors, data: &Value, name: &str) {
    let path = key("data", name);
    let Some(value) = data.get(name).and_then(Value::as_str) else {
        return errors.push(Error::required(path, ""));
    };
    let bytes = STANDARD.decode(value).unwrap_or_default();
    if let Err(why) = serde_json::from_slice::<Value>(&bytes) {
        let why = if bytes.is_empty() { "unexpected end of JSON input".to_owned() } else { why.to_string() };
        errors.push(Error::invalid(path, "<secret contents redacted>", why));
    }
}
