//! Discovery documents, as the reference answered for the same definitions.

use std::sync::Arc;

use homeostat_model::GroupVersion;
use homeostat_resources::{Resource, builtin, crd, discovery};
use serde_json::{Value, json};

fn redis(conditions: Value) -> Arc<Resource> {
    let version = |name: &str, served: bool, storage: bool| {
        json!({"name": name, "served": served, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object"}}})
    };
    let mut v1 = version("v1", true, true);
    v1["subresources"] = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    let mut definition = json!({
        "metadata": {"name": "redisclusters.zz-caches.example.com"},
        "spec": {"group": "zz-caches.example.com", "scope": "Namespaced",
            "names": {"plural": "redisclusters", "kind": "RedisCluster", "shortNames": ["rc", "rdc"],
                "categories": ["all", "databases"]},
            "versions": [version("v1beta1", true, false), version("v2alpha1", false, false), v1]},
        "status": {"conditions": conditions},
    });
    crd::default(&mut definition);
    Arc::new(crd::to_resource(&definition, 1).unwrap())
}

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

#[test]
fn groups_resources_and_subresources_are_listed() {
    let all = [redis(json!([]))];
    let v1 = json!({"groupVersion": "zz-caches.example.com/v1", "version": "v1"});
    assert_eq!(
        discovery::group(&all, "zz-caches.example.com"),
        Some(json!({"kind": "APIGroup", "apiVersion": "v1", "name": "zz-caches.example.com",
            "versions": [v1, {"groupVersion": "zz-caches.example.com/v1beta1", "version": "v1beta1"}],
            "preferredVersion": v1}))
    );
    assert_eq!(
        discovery::resource_list(&all, &GroupVersion::new("zz-caches.example.com", "v1")),
        Some(
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "zz-caches.example.com/v1",
            "resources": [
                {"name": "redisclusters", "singularName": "rediscluster", "namespaced": true,
                    "kind": "RedisCluster", "verbs": VERBS, "shortNames": ["rc", "rdc"],
                    "categories": ["all", "databases"], "storageVersionHash": "yKyWM+vxw4U="},
                {"name": "redisclusters/status", "singularName": "", "namespaced": true,
                    "kind": "RedisCluster", "verbs": ["get", "patch", "update"]},
                {"name": "redisclusters/scale", "singularName": "", "namespaced": true, "group": "autoscaling",
                    "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]}]})
        )
    );
    assert_eq!(discovery::resource_list(&all, &GroupVersion::new("zz-caches.example.com", "v2alpha1")), None);
    assert_eq!(discovery::group(&all, "none.example.com"), None);
}

#[test]
fn the_aggregated_document_ends_with_custom_groups() {
    let mut all = vec![redis(json!([]))];
    all.extend(builtin::resources());
    let document = discovery::aggregated(&all, false);
    let kind =
        |version: &str| json!({"group": "zz-caches.example.com", "version": version, "kind": "RedisCluster"});
    let resource = |version: &str| {
        json!({"resource": "redisclusters", "responseKind": kind(version), "scope": "Namespaced",
            "singularResource": "rediscluster", "verbs": VERBS, "shortNames": ["rc", "rdc"],
            "categories": ["all", "databases"]})
    };
    let mut first = resource("v1");
    first["subresources"] = json!([
        {"subresource": "status", "responseKind": kind("v1"), "verbs": ["get", "patch", "update"]},
        {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "verbs": ["get", "patch", "update"]}]);
    assert_eq!(
        document["items"].as_array().unwrap().last(),
        Some(&json!({"metadata": {"name": "zz-caches.example.com"}, "versions": [
            {"version": "v1", "resources": [first], "freshness": "Current"},
            {"version": "v1beta1", "resources": [resource("v1beta1")], "freshness": "Current"}]}))
    );
    let core = discovery::aggregated(&all, true);
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");
}

#[test]
fn a_type_that_ends_is_not_for_writing() {
    let all = [redis(json!([{"type": "Terminating", "status": "True"}]))];
    let list = discovery::resource_list(&all, &GroupVersion::new("zz-caches.example.com", "v1")).unwrap();
    assert_eq!(list["resources"][0]["verbs"], json!(["delete", "deletecollection", "get", "list", "watch"]));
}

#[test]
fn built_in_groups_have_their_preferred_version_and_hashes() {
    let all = builtin::resources();
    let groups = discovery::group_list(&all);
    let autoscaling =
        groups["groups"].as_array().unwrap().iter().find(|g| g["name"] == "autoscaling").unwrap();
    assert_eq!(autoscaling["preferredVersion"]["version"], "v2");
    let hash = |gv: &str, name: &str| {
        let list = discovery::resource_list(&all, &GroupVersion::parse(gv).unwrap()).unwrap();
        let found = list["resources"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap().clone();
        found["storageVersionHash"].as_str().map(str::to_owned)
    };
    assert_eq!(hash("v1", "pods").as_deref(), Some("xPOwRZ+Yhw8="));
    assert_eq!(hash("apps/v1", "deployments").as_deref(), Some("8aSe+NMegvE="));
    assert_eq!(hash("v1", "events").as_deref(), Some("r2yiGXH7wu8="));
    assert_eq!(hash("events.k8s.io/v1", "events").as_deref(), Some("r2yiGXH7wu8="));
    assert_eq!(hash("v1", "bindings"), None);
    let core = discovery::resource_list(&all, &GroupVersion::new("", "v1")).unwrap();
    assert_eq!(core.get("apiVersion"), None);
}
