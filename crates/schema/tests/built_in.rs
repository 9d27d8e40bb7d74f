//! Decoding of built-in types: what Go's decoder refuses, drops and rewrites.

use std::sync::Arc;

use homeostat_schema::{Definitions, Schema};
use serde_json::{Value, json};

/// A few definitions in the form of the built-in types' data.
fn schema(name: &str) -> Schema {
    let definitions = json!({
        "meta.v1.ObjectMeta": {"type": "object", "properties": {
            "name": {"type": "string"}, "generation": {"type": "integer", "format": "int64"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "creationTimestamp": {"$ref": "meta.v1.Time"}}},
        "meta.v1.Time": {"type": "string", "format": "date-time"},
        "meta.v1.MicroTime": {"type": "string", "format": "date-time"},
        "api.Quantity": {"x-kubernetes-int-or-string": true, "format": "quantity"},
        "util.IntOrString": {"x-kubernetes-int-or-string": true},
        "runtime.RawExtension": {"type": "object"},
        "ext.v1.JSON": {},
        "ext.v1.JSONSchemaPropsOrBool": {},
        "ext.v1.JSONSchemaProps": {"type": "object", "properties": {
            "type": {"type": "string"}, "minLength": {"type": "integer", "format": "int64"},
            "required": {"type": "array", "items": {"type": "string"}},
            "enum": {"type": "array", "items": {"$ref": "ext.v1.JSON"}},
            "additionalProperties": {"$ref": "ext.v1.JSONSchemaPropsOrBool"},
            "properties": {"type": "object", "additionalProperties": {"$ref": "ext.v1.JSONSchemaProps"}}}},
        "core.v1.Container": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "args": {"type": "array", "items": {"type": "string"}},
            "port": {"$ref": "util.IntOrString"},
            "limits": {"type": "object", "additionalProperties": {"$ref": "api.Quantity"}}}},
        "core.v1.PodSpec": {"type": "object", "required": ["containers"], "properties": {
            "containers": {"type": "array", "items": {"$ref": "core.v1.Container"}},
            "replicas": {"type": "integer", "format": "int32"}, "host": {"type": "boolean"},
            "protocol": {"type": "string", "default": "TCP"}, "emptyDir": {"$ref": "core.v1.Empty"},
            "renewTime": {"$ref": "meta.v1.MicroTime"}, "raw": {"$ref": "runtime.RawExtension"},
            "schema": {"$ref": "ext.v1.JSONSchemaProps"}}},
        "core.v1.Empty": {"type": "object"},
        "core.v1.Pod": {"type": "object", "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"$ref": "meta.v1.ObjectMeta"}, "spec": {"$ref": "core.v1.PodSpec"},
            "data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
            "texts": {"type": "object", "additionalProperties": {"type": "string"}}}},
    });
    let definitions = Definitions::parse(definitions.to_string().as_bytes()).unwrap();
    definitions.check().unwrap();
    Schema::builtin(Arc::clone(&definitions), name).unwrap()
}

#[test]
fn wrong_types_are_refused_with_gos_texts() {
    let pod = schema("core.v1.Pod");
    let cases = [
        (
            json!({"spec": {"replicas": "x"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 1.5}}),
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 3_000_000_000_i64}}),
            "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"host": "yes"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.host of type bool",
        ),
        (
            json!({"spec": []}),
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            json!({"spec": {"containers": {}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            json!({"spec": {"containers": [{"name": 1}]}}),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
        ),
        (
            json!({"texts": {"replicas": 3}}),
            "json: cannot unmarshal number into Go struct field Pod.texts of type string",
        ),
        (
            json!({"texts": "x"}),
            "json: cannot unmarshal string into Go struct field Pod.texts of type map[string]string",
        ),
        (json!({"data": {"a": "pas*"}}), "illegal base64 data at input byte 3"),
        (
            json!({"data": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field Pod.data of type []uint8",
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "limits": {"cpu": "two"}}]}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            json!({"spec": {"renewTime": "2024-05-01T10:00:10Z"}}),
            "parsing time \"2024-05-01T10:00:10Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"Z\" as \".000000\"",
        ),
        (
            json!({"metadata": {"creationTimestamp": 5}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (
            json!({"spec": {"containers": [{"port": true}]}}),
            "json: cannot unmarshal bool into Go struct field Container.spec.containers.port of type int32",
        ),
        (json!([]), "json: cannot unmarshal array into Go value of type v1.Pod"),
        // An error that ends decoding goes before one that doesn't.
        (json!({"data": {"a": "*"}, "apiVersion": 1}), "illegal base64 data at input byte 0"),
        (
            json!({"spec": {"schema": {"properties": {"a": {"minLength": "x"}}}}}),
            "json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.schema.properties.minLength of type int64",
        ),
    ];
    for (mut object, want) in cases {
        let shown = object.to_string();
        assert_eq!(pod.decode(&mut object).unwrap_err().to_string(), want, "{shown}");
    }
}

#[test]
fn what_go_drops_or_rewrites_is_dropped_or_rewritten() {
    let pod = schema("core.v1.Pod");
    let cases: [(Value, Value, &[&str]); 8] = [
        (
            json!({"spec": {"containers": [{"name": "a", "x": 1}], "y": {"z": 1}}, "w": 1}),
            json!({"spec": {"containers": [{"name": "a"}]}}),
            &["spec.containers[0].x", "spec.y", "w"],
        ),
        (
            json!({"metadata": {"labels": {}, "name": "", "generation": 0, "creationTimestamp": null}, "spec": null}),
            json!({"metadata": {}}),
            &[],
        ),
        (
            json!({"spec": {"containers": [], "emptyDir": {}, "protocol": ""}}),
            json!({"spec": {"containers": [], "emptyDir": {}, "protocol": ""}}),
            &[],
        ),
        (
            json!({"spec": {"containers": [{"name": "a", "args": [], "limits": {"cpu": 1, "memory": "1024Mi", "x": "1000m"}}]}}),
            json!({"spec": {"containers": [{"name": "a", "limits": {"cpu": "1", "memory": "1Gi", "x": "1"}}]}}),
            &[],
        ),
        (json!({"texts": {"a": null}}), json!({"texts": {"a": ""}}), &[]),
        (
            json!({"metadata": {"creationTimestamp": "2024-01-02T03:04:05.678+01:00"}}),
            json!({"metadata": {"creationTimestamp": "2024-01-02T02:04:05Z"}}),
            &[],
        ),
        (
            json!({"spec": {"containers": [], "raw": {"any": [null, {"x": null}]}}}),
            json!({"spec": {"containers": [], "raw": {"any": [null, {"x": null}]}}}),
            &[],
        ),
        (
            json!({"spec": {"containers": [], "schema": {"enum": [null, 1], "required": [],
                "additionalProperties": {"type": "string", "required": [], "unknown": 1}, "other": 1}}}),
            json!({"spec": {"containers": [], "schema": {"enum": [null, 1], "additionalProperties": {"type": "string"}}}}),
            &["spec.schema.other"],
        ),
    ];
    for (mut object, want, unknown) in cases {
        assert_eq!(pod.decode(&mut object).unwrap(), unknown);
        assert_eq!(object, want);
        assert_eq!(pod.decode(&mut object), Ok(vec![]), "a second time nothing changes");
        assert_eq!(object, want);
    }
}

#[test]
fn defaults_reach_into_definitions() {
    let pod = schema("core.v1.Pod");
    let mut object = json!({"spec": {"containers": []}});
    pod.default(&mut object);
    assert_eq!(object, json!({"spec": {"containers": [], "protocol": "TCP"}}));
}

#[test]
fn recursive_definitions_are_nodes_like_others() {
    let schema = schema("ext.v1.JSONSchemaProps");
    let mut node = schema.root();
    for _ in 0..1000 {
        node = node.property("properties").unwrap().additional().unwrap();
    }
    assert!(node.property("minLength").is_some());
}
