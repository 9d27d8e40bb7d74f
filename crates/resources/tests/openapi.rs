//! OpenAPI documents against what the reference publishes of a custom resource, and what kubectl needs of them.

use std::sync::Arc;

use homeostat_resources::openapi::Documents;
use homeostat_resources::{Resource, builtin, crd};
use serde_json::{Value, json};

fn redis() -> Arc<Resource> {
    let spec = json!({"type": "object", "description": "Desired state.", "required": ["replicas"], "properties": {
        "replicas": {"type": "integer", "format": "int32", "minimum": 1, "default": 3},
        "mode": {"type": "string", "enum": ["Cluster", "Standalone"]},
        "port": {"x-kubernetes-int-or-string": true},
        "config": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
    }});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut definition = json!({
        "metadata": {"name": "redisclusters.zz-caches.example.com"},
        "spec": {"group": "zz-caches.example.com", "scope": "Namespaced",
            "names": {"plural": "redisclusters", "kind": "RedisCluster"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}}]},
    });
    crd::default(&mut definition);
    Arc::new(crd::to_resource(&definition, 1).unwrap())
}

fn resources() -> Vec<Arc<Resource>> {
    let mut all = builtin::resources();
    all.push(redis());
    all
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_custom_resource_is_published_as_the_reference_does() {
    let documents = Documents::new(&resources());
    let doc = parse(&documents.v3("apis/zz-caches.example.com/v1").unwrap().bytes);
    let mut object = doc["components"]["schemas"]["com.example.zz-caches.v1.RedisCluster"].clone();
    for field in ["apiVersion", "kind", "metadata"] {
        assert!(object["properties"][field]["description"].is_string());
        object["properties"][field].as_object_mut().unwrap().remove("description");
    }
    assert_eq!(
        object,
        json!({"type": "object", "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]},
            "spec": {"description": "Desired state.", "type": "object", "required": ["replicas"], "properties": {
                "config": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
                "mode": {"type": "string", "enum": ["Cluster", "Standalone"]},
                "port": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
                "replicas": {"type": "integer", "format": "int32", "default": 3, "minimum": 1}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            "x-kubernetes-group-version-kind": [
                {"group": "zz-caches.example.com", "kind": "RedisCluster", "version": "v1"}]})
    );
    let list = &doc["components"]["schemas"]["com.example.zz-caches.v1.RedisClusterList"];
    assert_eq!(list["description"], "RedisClusterList is a list of RedisCluster");
    assert_eq!(
        list["properties"]["items"]["items"]["$ref"],
        "#/components/schemas/com.example.zz-caches.v1.RedisCluster"
    );
}

/// Every reference of a document leads to a definition in it.
fn check_references(doc: &Value, at: &Value) {
    match at {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(target) if key == "$ref" => {
                        let pointer = target.strip_prefix('#').unwrap();
                        assert!(doc.pointer(pointer).is_some(), "{target}");
                    }
                    value => check_references(doc, value),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| check_references(doc, v)),
        _ => {}
    }
}

#[test]
fn every_document_is_complete_and_patches_take_field_validation() {
    let documents = Documents::new(&resources());
    let index = parse(&documents.index().bytes);
    for (path, entry) in index["paths"].as_object().unwrap() {
        let url = format!("/openapi/v3/{path}?hash={}", documents.hash(path).unwrap());
        assert_eq!(entry["serverRelativeURL"], url);
        let doc = parse(&documents.v3(path).unwrap().bytes);
        check_references(&doc, &doc);
        for (url, item) in doc["paths"].as_object().unwrap() {
            let Some(patch) = item.get("patch") else { continue };
            if patch["x-kubernetes-action"] != "patch" {
                continue;
            }
            let names: Vec<&str> =
                patch["parameters"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
            assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"), "{url}");
            assert!(patch["x-kubernetes-group-version-kind"]["kind"].is_string());
        }
    }
    let v2 = parse(&documents.v2().bytes);
    check_references(&v2, &v2);
    assert!(documents.v2_proto().bytes.len() > 100_000);
}

#[test]
fn a_change_rebuilds_its_own_group_only() {
    let mut all = resources();
    let before = Documents::new(&all);
    let apps = before.v3("apis/apps/v1").unwrap();
    let redis_hash = before.hash("apis/zz-caches.example.com/v1").unwrap().to_owned();
    all.pop();
    all.push(redis());
    let same = before.changed(&all);
    assert_eq!(same.hash("apis/zz-caches.example.com/v1"), Some(redis_hash.as_str()));
    assert!(Arc::ptr_eq(&apps, &same.v3("apis/apps/v1").unwrap()));
    all.pop();
    let without = same.changed(&all);
    assert!(without.v3("apis/zz-caches.example.com/v1").is_none());
    assert_ne!(without.v2().hash, same.v2().hash);
}
