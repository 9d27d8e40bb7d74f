//! CRDs of any shape: whatever JSON stands in one, it is judged and turned into a resource without a panic.

use std::sync::Arc;

use homeostat_resources::openapi::Documents;
use homeostat_resources::{crd, discovery, scale};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names that mean something in a CRD, so that random objects get somewhere.
const KEYS: [&str; 44] = [
    "type",
    "properties",
    "items",
    "additionalProperties",
    "required",
    "default",
    "enum",
    "format",
    "pattern",
    "nullable",
    "anyOf",
    "allOf",
    "oneOf",
    "not",
    "metadata",
    "spec",
    "status",
    "a",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    "rule",
    "message",
    "fieldPath",
    "name",
    "names",
    "versions",
    "schema",
    "openAPIV3Schema",
    "subresources",
    "scale",
    "additionalPrinterColumns",
    "selectableFields",
    "jsonPath",
    "conversion",
    "webhook",
    "clientConfig",
    "served",
    "storage",
    "group",
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(|f| json!(f)),
        prop::sample::select(vec![
            "object",
            "array",
            "string",
            "integer",
            "",
            "map",
            "set",
            "atomic",
            "v1",
            ".spec.a",
            ".a['b']",
            "[",
            "^(a",
            "\u{1}",
            "Namespaced",
        ])
        .prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ]
}

fn json() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(KEYS.to_vec()), inner, 0..6).prop_map(|m| {
                Value::Object(m.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>())
            }),
        ]
    })
}

/// A CRD that is well formed but for one or two parts.
fn almost() -> impl Strategy<Value = Value> {
    (json(), json(), json()).prop_map(|(schema, version, spec)| {
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}}]},
        });
        for (part, at) in [(version, "/spec/versions/0"), (spec, "/spec")] {
            if let (Some(Value::Object(into)), Value::Object(part)) = (crd.pointer_mut(at), part) {
                into.extend(part.into_iter().filter(|(k, _)| k.len() % 3 != 1));
            }
        }
        crd
    })
}

fn exercise(mut crd: Value) {
    let sent = crd.clone();
    crd::default(&mut crd);
    crd::prepare_create(&mut crd);
    let refused = !crd::validate_create(&crd).is_empty();
    crd::warnings(&crd, Some(&sent));
    crd::validate_update(&crd, &sent);
    crd::validate_update(&sent, &crd);
    crd::validate_status(&crd, &sent);
    let status = crd::reconcile(&crd, [&sent, &crd], "2026-01-01T00:00:00Z");
    if let (Some(status), Some(fields)) = (status, crd.as_object_mut()) {
        fields.insert("status".into(), status);
    }
    crd::set_deletion(&mut crd, &crd::Deletion::Pending, "2026-01-01T00:00:00Z");
    let resource = crd::to_resource(&crd, 1);
    if let Err(why) = &resource {
        assert!(refused, "accepted, but no resource: {why}");
    }
    if let Ok(resource) = resource {
        for v in &resource.versions {
            let _ = v.schema.validate(&sent, None);
            for s in v.subresources.iter().filter_map(|s| s.scale.as_ref()) {
                let _ = scale::get(&sent, s);
                scale::validate(&sent, s, false);
            }
        }
        let all = [Arc::new(resource)];
        discovery::aggregated(&all, false);
        let documents = Documents::new(&all);
        documents.index();
        for v in &all[0].versions {
            documents.v3(&format!("apis/{}/{}", v.gv.group, v.gv.version));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_judged(value in json()) {
        exercise(value);
    }

    #[test]
    fn a_crd_with_odd_parts_is_judged(value in almost()) {
        exercise(value);
    }

    #[test]
    fn any_path_is_parsed(path in ".{0,24}", value in json()) {
        if let Ok(path) = homeostat_resources::jsonpath::Path::parse(&path) {
            path.find(&value);
        }
    }
}

#[test]
fn a_schema_that_is_too_deep_is_refused() {
    let mut schema = json!({"type": "string"});
    for _ in 0..300 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let mut crd = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    crd::default(&mut crd);
    crd::prepare_create(&mut crd);
    let errors = crd::validate_create(&crd);
    assert_eq!(errors.len(), 1);
}
