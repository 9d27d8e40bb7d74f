//! Changing CRDs: what an update may not touch, and what becomes of stored versions.

use homeostat_resources::crd;
use serde_json::{Value, json};

fn definition() -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}})
    };
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "databases.rollout.example.com"},
        "spec": {"group": "rollout.example.com", "scope": "Namespaced",
            "names": {"plural": "databases", "singular": "database", "kind": "Database"},
            "versions": [version("v1", false), version("v2", true)]},
    });
    crd::default(&mut crd);
    crd::prepare_create(&mut crd);
    crd["status"]["storedVersions"] = json!(["v1", "v2"]);
    crd
}

/// Applies a merge patch to an established CRD and compares the errors' texts.
fn check(established: bool, patch: Value, want: &[&str]) {
    let mut old = definition();
    if established && let Some(status) = crd::reconcile(&old, [&old], "2026-01-01T00:00:00Z") {
        old["status"] = status;
    }
    let mut new = old.clone();
    merge(&mut new, &patch);
    crd::default(&mut new);
    crd::prepare_update(&mut new, &old);
    let found: Vec<String> = crd::validate_update(&new, &old).iter().map(ToString::to_string).collect();
    assert_eq!(found, want, "{patch}");
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (k, v) in patch {
                merge(into.entry(k).or_insert(Value::Null), v);
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}

#[test]
fn names_that_objects_are_stored_under_stay() {
    check(
        true,
        json!({"spec": {"scope": "Cluster"}}),
        &["spec.scope: Invalid value: \"Cluster\": field is immutable"],
    );
    check(
        true,
        json!({"spec": {"names": {"kind": "Db", "plural": "dbs"}}}),
        &[
            "spec.names.kind: Invalid value: \"Db\": field is immutable",
            "spec.names.plural: Invalid value: \"dbs\": field is immutable",
        ],
    );
    check(
        true,
        json!({"spec": {"group": "other.example.com"}}),
        &["spec.group: Invalid value: \"other.example.com\": field is immutable"],
    );
    check(false, json!({"spec": {"names": {"kind": "Db", "listKind": "DbList"}}}), &[]);
    check(true, json!({"spec": {"names": {"shortNames": ["db"]}}}), &[]);
}

#[test]
fn a_version_with_stored_objects_stays() {
    let v2 = definition()["spec"]["versions"][1].clone();
    check(
        true,
        json!({"spec": {"versions": [v2]}}),
        &[
            "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was previously a storage \
           version, and must remain in spec.versions until a storage migration ensures no data remains persisted in \
           v1 and removes v1 from status.storedVersions",
        ],
    );
}

#[test]
fn a_new_storage_version_is_added_to_the_stored_ones() {
    let mut old = definition();
    old["status"]["storedVersions"] = json!(["v1"]);
    let mut new = old.clone();
    crd::prepare_update(&mut new, &old);
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    new["status"]["storedVersions"] = json!([]);
    crd::default(&mut new);
    assert_eq!(new["status"]["storedVersions"], json!(["v2"]));
}

#[test]
fn what_was_accepted_before_is_not_refused_now() {
    let mut old = definition();
    let set = json!({"type": "object", "properties": {"a": {"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "object"}}}});
    for version in 0..2 {
        old["spec"]["versions"][version]["schema"]["openAPIV3Schema"]["properties"]["spec"] = set.clone();
    }
    assert_eq!(crd::validate_create(&old).len(), 1);
    assert_eq!(crd::validate_update(&old, &old), []);
}

#[test]
fn a_deprecated_version_recommends_a_newer_one() {
    let version = |name: &str, deprecated: bool| {
        json!({"name": name, "served": true, "storage": name == "v1", "deprecated": deprecated,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let mut own_text = version("v1alpha1", true);
    own_text["deprecationWarning"] = "gone soon".into();
    let crd = json!({"spec": {"group": "legacy.example.com", "names": {"plural": "brokers", "kind": "Broker"},
        "versions": [version("v1", false), version("v1beta1", true), version("v2", true), own_text]}});
    let resource = crd::to_resource(&crd, 1).unwrap();
    let warning = |name: &str| resource.version(name).and_then(|v| v.deprecation.as_deref());
    assert_eq!(warning("v1"), None);
    assert_eq!(
        warning("v1beta1"),
        Some("legacy.example.com/v1beta1 Broker is deprecated; use legacy.example.com/v1 Broker")
    );
    assert_eq!(warning("v2"), Some("legacy.example.com/v2 Broker is deprecated"));
    assert_eq!(warning("v1alpha1"), Some("gone soon"));
}
