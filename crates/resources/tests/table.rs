//! Tables of custom resources, as the reference printed them.

use homeostat_resources::table::{self, Include, Printer};
use homeostat_resources::{Resource, crd};
use serde_json::{Value, json};

fn certificates(columns: Value) -> Resource {
    let definition = json!({
        "metadata": {"name": "certificates.tables.example.com"},
        "spec": {"group": "tables.example.com", "scope": "Namespaced",
            "names": {"plural": "certificates", "singular": "certificate", "kind": "Certificate"},
            "versions": [{"name": "v1", "served": true, "storage": true, "additionalPrinterColumns": columns,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    crd::to_resource(&definition, 1).unwrap()
}

fn columns() -> Value {
    json!([
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
            "description": "Whether it is ready."},
        {"name": "Replicas", "type": "integer", "format": "int32", "jsonPath": ".spec.replicas"},
        {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio", "priority": 1},
        {"name": "Paused", "type": "boolean", "jsonPath": ".spec.paused"},
        {"name": "Expires", "type": "date", "jsonPath": ".spec.expires"},
        {"name": "Host", "type": "string", "jsonPath": ".spec.hosts[0]"},
        {"name": "Hosts", "type": "string", "jsonPath": ".spec.hosts"},
        {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.app"},
    ])
}

/// Prints an object with these metadata, spec and status, and compares its cells.
fn check(object: Value, want: Value) {
    let resource = certificates(columns());
    let printer = Printer::new(&resource, &resource.versions[0], Include::None, "v1");
    let row = printer.row(&object, "2026-01-01T00:10:00Z".parse().unwrap());
    assert_eq!(row, json!({"cells": want, "object": null}));
}

#[test]
fn cells_have_the_type_of_their_column() {
    check(
        json!({"metadata": {"name": "full", "labels": {"app": "x"}},
            "spec": {"replicas": 3, "ratio": 0.25, "paused": true, "expires": "2999-01-01T00:00:00Z",
                "hosts": ["a.example.com", "b.example.com"]},
            "status": {"conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]}}),
        json!([
            "full",
            "True",
            3,
            0.25,
            true,
            "<invalid>",
            "a.example.com",
            "[\"a.example.com\",\"b.example.com\"]",
            "x"
        ]),
    );
    check(
        json!({"metadata": {"name": "none"}}),
        json!(["none", null, null, null, null, null, null, null, null]),
    );
    check(
        json!({"metadata": {"name": "zero"}, "spec": {"replicas": 0, "ratio": 0, "paused": false, "hosts": []}}),
        json!(["zero", null, 0, 0, false, null, null, "[]", null]),
    );
    check(
        json!({"metadata": {"name": "odd", "labels": {"app": null}},
            "spec": {"replicas": "3", "ratio": "x", "paused": 1, "expires": "soon", "hosts": [null]}}),
        json!(["odd", null, null, null, null, "<invalid>", "<no value>", "[null]", "<no value>"]),
    );
    check(
        json!({"metadata": {"name": "past"}, "spec": {"expires": "2026-01-01T00:00:00Z", "ratio": 2.0}}),
        json!(["past", null, null, 2, null, "10m", null, null, null]),
    );
}

#[test]
fn columns_are_described() {
    let resource = certificates(columns());
    let printer = Printer::new(&resource, &resource.versions[0], Include::Metadata, "v1");
    let found = printer.columns();
    assert_eq!(
        found[2],
        json!({"name": "Replicas", "type": "integer", "format": "int32", "priority": 0,
            "description": "Custom resource definition column (in JSONPath format): .spec.replicas"})
    );
    assert_eq!(found[1]["description"], "Whether it is ready.");
    assert_eq!(found[3]["priority"], 1);
    let plain = certificates(json!([]));
    let found = Printer::new(&plain, &plain.versions[0], Include::None, "v1").columns();
    let names: Vec<_> =
        found.as_array().unwrap().iter().map(|c| (c["name"].clone(), c["type"].clone())).collect();
    assert_eq!(names, [(json!("Name"), json!("string")), (json!("Age"), json!("date"))]);
}

#[test]
fn a_table_carries_as_much_of_its_objects_as_asked() {
    let resource = certificates(json!([]));
    let object = json!({"apiVersion": "tables.example.com/v1", "kind": "Certificate",
        "metadata": {"name": "a", "resourceVersion": "7"}, "spec": {}});
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    for (include, want) in [
        (Include::None, Value::Null),
        (
            Include::Metadata,
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1beta1",
                "metadata": {"name": "a", "resourceVersion": "7"}}),
        ),
        (Include::Object, object.clone()),
    ] {
        let printer = Printer::new(&resource, &resource.versions[0], include, "v1beta1");
        let table = printer.table([&object], table::object_meta(&object), false, now);
        assert_eq!(table["rows"][0]["object"], want);
        assert_eq!(table["metadata"], json!({"resourceVersion": "7"}));
        assert_eq!(table["columnDefinitions"], Value::Null);
        assert_eq!(table["apiVersion"], "meta.k8s.io/v1beta1");
    }
    let list = table::partial_list([&object], json!({"resourceVersion": "9", "continue": ""}), "v1");
    assert_eq!(list["metadata"], json!({"resourceVersion": "9"}));
    assert_eq!(list["kind"], "PartialObjectMetadataList");
}
