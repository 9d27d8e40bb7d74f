//! Rules of `metadata` on create and update, of label selectors, and of the parts that other objects embed.
//!
//! Values are expected to be decoded (labels are strings, and so on): what has another JSON type is passed over.

use std::collections::BTreeSet;

use serde_json::Value;

use super::names::{dns1123_label, field_manager, label_value, qualified_name};
use crate::field::{self, Error};

/// What a resource says of its objects' metadata.
#[derive(Clone, Copy)]
pub struct Meta<'a> {
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Built-in types want finalizers to be qualified, or to be one of the three standard ones.
    pub builtin: bool,
    /// Rules of `name`, and with `true` of `generateName`.
    pub name: &'a dyn Fn(&str, bool) -> Vec<String>,
}

fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}

fn strings<'a>(of: &'a Value, key: &str) -> Vec<&'a str> {
    of[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn entries(of: &Value) -> impl Iterator<Item = (&str, &str)> {
    of.as_object().into_iter().flatten().map(|(k, v)| (k.as_str(), v.as_str().unwrap_or_default()))
}

fn invalid_each(path: &str, value: &str, why: Vec<String>) -> impl Iterator<Item = Error> {
    why.into_iter().map(move |why| Error::invalid(path, value, why))
}

/// Validates `metadata` of a new object, after a name has been generated. `path` is usually `metadata`.
pub fn object_meta(meta: &Value, path: &str, rules: &Meta<'_>) -> Vec<Error> {
    let at = |name: &str| field::child(path, name);
    let mut errors = Vec::new();
    let generate = text(meta, "generateName");
    if !generate.is_empty() {
        errors.extend(invalid_each(&at("generateName"), generate, (rules.name)(generate, true)));
    }
    let name = text(meta, "name");
    if name.is_empty() {
        errors.push(Error::required(at("name"), "name or generateName is required"));
    } else {
        errors.extend(invalid_each(&at("name"), name, (rules.name)(name, false)));
    }
    let namespace = text(meta, "namespace");
    match (rules.namespaced, namespace.is_empty()) {
        (true, true) => errors.push(Error::required(at("namespace"), "")),
        (true, false) => {
            errors.extend(invalid_each(&at("namespace"), namespace, dns1123_label(namespace, false)))
        }
        (false, false) => errors.push(Error::forbidden(at("namespace"), "not allowed on this type")),
        (false, true) => {}
    }
    if let Some(n) = meta["generation"].as_i64().filter(|n| *n < 0) {
        errors.push(Error::invalid(at("generation"), n, "must be greater than or equal to 0"));
    }
    errors.extend(labels(&meta["labels"], &at("labels")));
    errors.extend(annotations(&meta["annotations"], &at("annotations")));
    errors.extend(owner_references(&meta["ownerReferences"], &at("ownerReferences")));
    errors.extend(finalizers(meta, &at("finalizers"), rules.builtin));
    errors.extend(managed_fields(&meta["managedFields"], &at("managedFields")));
    errors
}

/// Validates the change of `metadata`. That a resourceVersion is given at all is for the caller to demand. (The
/// reference runs these rules twice for custom resources and so repeats their causes; so may the caller.)
pub fn object_meta_update(new: &Value, old: &Value, path: &str, builtin: bool) -> Vec<Error> {
    let at = |name: &str| field::child(path, name);
    let mut errors = Vec::new();
    if !old["deletionTimestamp"].is_null() {
        let before: BTreeSet<&str> = strings(old, "finalizers").into_iter().collect();
        let added: BTreeSet<&str> =
            strings(new, "finalizers").into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let list: Vec<String> = added.into_iter().map(field::quote).collect();
            let why = "no new finalizers can be added if the object is being deleted, found new finalizers []string{";
            errors.push(Error::forbidden(at("finalizers"), format!("{why}{}}}", list.join(", "))));
        }
    }
    let generation = |of: &Value| of["generation"].as_i64().unwrap_or(0);
    if generation(new) < generation(old) {
        errors.push(Error::invalid(at("generation"), generation(new), "must not be decremented"));
    }
    for key in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        if new[key] != old[key] {
            errors.push(Error::invalid(at(key), new[key].clone(), "field is immutable"));
        }
    }
    errors.extend(labels(&new["labels"], &at("labels")));
    errors.extend(annotations(&new["annotations"], &at("annotations")));
    errors.extend(owner_references(&new["ownerReferences"], &at("ownerReferences")));
    errors.extend(managed_fields(&new["managedFields"], &at("managedFields")));
    if builtin {
        errors.extend(standard_finalizers(new, &at("finalizers")));
    }
    errors
}

/// Rules of a map of labels.
pub fn labels(labels: &Value, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    for (k, v) in entries(labels) {
        errors.extend(invalid_each(path, k, qualified_name(k)));
        errors.extend(invalid_each(path, v, label_value(v)));
    }
    errors
}

/// Rules of a map of annotations: qualified names in any case, 256 KiB in all.
pub fn annotations(annotations: &Value, path: &str) -> Vec<Error> {
    const LIMIT: usize = 256 << 10;
    let mut errors = Vec::new();
    let mut size = 0;
    for (k, v) in entries(annotations) {
        errors.extend(invalid_each(path, k, qualified_name(&k.to_lowercase())));
        size += k.len() + v.len();
    }
    if size > LIMIT {
        errors.push(Error::too_long(path, LIMIT));
    }
    errors
}

/// Rules of a `metav1.LabelSelector` at `path`; null is fine.
pub fn label_selector(selector: &Value, path: &str) -> Vec<Error> {
    let mut errors = labels(&selector["matchLabels"], &field::child(path, "matchLabels"));
    for (i, e) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        let path = field::index(&field::child(path, "matchExpressions"), i);
        let at = |name: &str| field::child(&path, name);
        let values = strings(e, "values");
        match text(e, "operator") {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    errors.push(Error::required(at("values"), why));
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    errors.push(Error::forbidden(at("values"), why));
                }
            }
            other => errors.push(Error::invalid(at("operator"), other, "not a valid selector operator")),
        }
        let key = text(e, "key");
        errors.extend(invalid_each(&at("key"), key, qualified_name(key)));
        for (i, v) in values.into_iter().enumerate() {
            errors.extend(invalid_each(&field::index(&at("values"), i), v, label_value(v)));
        }
    }
    errors
}

/// An owner reference as Go prints it: fields in the order of their declaration.
fn owner_json(owner: &Value) -> String {
    let keys =
        ["apiVersion", "kind", "name", "uid"].map(|k| format!("\"{k}\":{}", Value::from(text(owner, k))));
    let flags = ["controller", "blockOwnerDeletion"].into_iter();
    let flags = flags.filter_map(|k| owner[k].as_bool().map(|b| format!("\"{k}\":{b}")));
    format!("{{{}}}", keys.into_iter().chain(flags).collect::<Vec<_>>().join(","))
}

/// Rules of `metadata.ownerReferences`.
pub fn owner_references(owners: &Value, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    let owners = owners.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut controller: Option<String> = None;
    for owner in owners {
        let at = |name: &str| field::child(path, name);
        let api_version = text(owner, "apiVersion");
        let version = match api_version.split_once('/') {
            None => api_version,
            Some((_, v)) if v.contains('/') => "",
            Some((_, v)) => v,
        };
        if version.is_empty() {
            errors.push(Error::invalid(at("apiVersion"), api_version, "version must not be empty"));
        }
        for key in ["kind", "name", "uid"] {
            if text(owner, key).is_empty() {
                errors.push(Error::invalid(at(key), "", "must not be empty"));
            }
        }
        let kind = text(owner, "kind");
        if api_version == "v1" && kind == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(Error::invalid(path, field::verbatim(owner_json(owner)), why));
        }
        if owner["controller"] == Value::Bool(true) {
            let this = format!("{kind}/{}", text(owner, "name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let all: Vec<String> = owners.iter().map(owner_json).collect();
                    errors.push(Error::invalid(path, field::verbatim(format!("[{}]", all.join(","))), why));
                }
            }
        }
    }
    errors
}

fn finalizers(meta: &Value, path: &str, builtin: bool) -> Vec<Error> {
    let mut errors = Vec::new();
    let all = strings(meta, "finalizers");
    for f in &all {
        errors.extend(invalid_each(path, f, qualified_name(f)));
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(Error::invalid(path, meta["finalizers"].clone(), why));
    }
    if builtin {
        errors.extend(standard_finalizers(meta, path));
    }
    errors
}

fn standard_finalizers(meta: &Value, path: &str) -> Vec<Error> {
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let plain = |f: &str| !f.contains('/') && !matches!(f, "kubernetes" | "orphan" | "foregroundDeletion");
    let all = strings(meta, "finalizers").into_iter().enumerate();
    all.filter(|(_, f)| plain(f)).map(|(i, f)| Error::invalid(field::index(path, i), f, why)).collect()
}

/// Rules of `metadata.managedFields`.
pub fn managed_fields(entries: &Value, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    for (i, e) in entries.as_array().into_iter().flatten().enumerate() {
        let path = field::index(path, i);
        let at = |name: &str| field::child(&path, name);
        let operation = text(e, "operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(Error::invalid(at("operation"), operation, "must be `Apply` or `Update`"));
        }
        let kind = text(e, "fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            errors.push(Error::invalid(at("fieldsType"), kind, "must be `FieldsV1`"));
        }
        errors.extend(field_manager(text(e, "manager"), &at("manager")));
        if text(e, "subresource").len() > 256 {
            errors.push(Error::too_long(at("subresource"), 256));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::dns1123_subdomain;
    use serde_json::json;

    fn check(meta: Value, builtin: bool, want: &[&str]) {
        let rules = Meta { namespaced: true, builtin, name: &dns1123_subdomain };
        let got: Vec<String> =
            object_meta(&meta, "metadata", &rules).iter().map(ToString::to_string).collect();
        // Long rules are cut, as the recordings cut them.
        let got: Vec<&str> = got.iter().zip(want).map(|(g, w)| g.get(..w.len()).unwrap_or(g)).collect();
        assert_eq!(got, want, "{meta}");
    }

    #[test]
    fn create() {
        let of = |extra: Value| {
            let mut meta = json!({"name": "a", "namespace": "d"});
            meta.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            meta
        };
        check(of(json!({})), true, &[]);
        check(
            json!({"namespace": "d"}),
            true,
            &["metadata.name: Required value: name or generateName is required"],
        );
        check(json!({"name": "a"}), true, &["metadata.namespace: Required value"]);
        check(
            of(json!({"name": "-a"})),
            true,
            &["metadata.name: Invalid value: \"-a\": a lowercase RFC 1123 subdomain"],
        );
        check(
            of(json!({"generateName": "_"})),
            true,
            &["metadata.generateName: Invalid value: \"_\": a lowercase"],
        );
        check(
            of(
                json!({"labels": {"tier": "_x"}, "annotations": {"bad key": "x", "UPPER.example.com/ok": "x"}}),
            ),
            false,
            &[
                "metadata.labels: Invalid value: \"_x\": a valid label must be",
                "metadata.annotations: Invalid value: \"bad key\": name part must consist",
            ],
        );
        check(
            of(json!({"annotations": {"a": "x".repeat(262_144)}})),
            true,
            &["metadata.annotations: Too long: may not be more than 262144 bytes"],
        );
        check(
            of(json!({"ownerReferences": [{}]})),
            false,
            &[
                "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
        );
        check(
            of(
                json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u", "blockOwnerDeletion": true}]}),
            ),
            true,
            &[
                "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"x\",\"uid\":\"u\",\"blockOwnerDeletion\":true}: /v1, Kind=Event is disallowed from being an owner",
            ],
        );
        let owner = |name: &str| json!({"apiVersion": "a/v1", "kind": "K", "name": name, "uid": "u", "controller": true});
        check(
            of(json!({"ownerReferences": [owner("m"), owner("n")]})),
            true,
            &[
                "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"a/v1\",\"kind\":\"K\",\"name\":\"m\",\"uid\":\"u\",\"controller\":true},{\"apiVersion\":\"a/v1\",\"kind\":\"K\",\"name\":\"n\",\"uid\":\"u\",\"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for K/m and K/n",
            ],
        );
        check(
            of(json!({"finalizers": ["no spaces allowed/x", "plain"]})),
            true,
            &[
                "metadata.finalizers: Invalid value: \"no spaces allowed/x\": prefix part a lowercase RFC 1123 subdomain",
                "metadata.finalizers[1]: Invalid value: \"plain\": name is neither a standard finalizer name nor is it fully qualified",
            ],
        );
        check(of(json!({"finalizers": ["plain"]})), false, &[]);
        check(
            of(json!({"finalizers": ["orphan", "foregroundDeletion"]})),
            false,
            &[
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
            ],
        );
        check(
            of(
                json!({"managedFields": [{"operation": "Take", "fieldsType": "V2", "manager": "x".repeat(129)}]}),
            ),
            true,
            &[
                "metadata.managedFields[0].operation: Invalid value: \"Take\": must be `Apply` or `Update`",
                "metadata.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
                "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
            ],
        );
    }

    #[test]
    fn update() {
        let check = |new: Value, old: Value, want: &[&str]| {
            let got: Vec<String> =
                object_meta_update(&new, &old, "metadata", true).iter().map(ToString::to_string).collect();
            assert_eq!(got, want);
        };
        let old = json!({"name": "a", "uid": "u", "generation": 2});
        check(old.clone(), old.clone(), &[]);
        check(
            json!({"name": "b", "uid": "u", "generation": 1, "deletionGracePeriodSeconds": 3}),
            old,
            &[
                "metadata.generation: Invalid value: 1: must not be decremented",
                "metadata.name: Invalid value: \"b\": field is immutable",
                "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
            ],
        );
        check(
            json!({"deletionTimestamp": "t", "finalizers": ["a/b", "c/d", "e/f"]}),
            json!({"deletionTimestamp": "t", "finalizers": ["c/d"]}),
            &[
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"a/b\", \"e/f\"}",
            ],
        );
    }
}
