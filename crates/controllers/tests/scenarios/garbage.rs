//! Deletion in the background, in the foreground, and with orphans; kinds that come later.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::{World, holds};

async fn map(world: &World, name: &str, owner: Option<(&str, &str, &str, &str)>) -> String {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    if let Some((api_version, kind, name, uid)) = owner {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": api_version, "kind": kind, "name": name,
            "uid": uid, "blockOwnerDeletion": true}]);
    }
    world.create(object).await.uid().unwrap()
}

async fn is_gone(world: &World, name: &str) -> Option<()> {
    holds(world.api::<ConfigMap>().get_opt(name).await.unwrap().is_none())
}

/// `a` owns `b`, which owns `c`.
async fn chain(world: &World) {
    let a = map(world, "a", None).await;
    let b = map(world, "b", Some(("v1", "ConfigMap", "a", &a))).await;
    map(world, "c", Some(("v1", "ConfigMap", "b", &b))).await;
}

#[tokio::test]
async fn dependents_follow() {
    let world = World::start().await;
    chain(&world).await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    world.until("the chain is gone", || is_gone(&world, "c")).await;
    world.until("the chain is gone", || is_gone(&world, "b")).await;
    world.stop().await;
}

#[tokio::test]
async fn an_owner_in_the_foreground_goes_last() {
    let world = World::start().await;
    chain(&world).await;
    world.merge::<ConfigMap>("c", json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::foreground()).await.unwrap();
    world
        .until("the last one is being deleted", || async {
            holds(world.api::<ConfigMap>().get("c").await.unwrap().metadata.deletion_timestamp.is_some())
        })
        .await;
    for name in ["a", "b"] {
        let held = world.api::<ConfigMap>().get(name).await.unwrap();
        assert_eq!(held.finalizers(), ["foregroundDeletion"], "{name}");
    }
    world.merge::<ConfigMap>("c", json!({"metadata": {"finalizers": null}})).await;
    world.until("the owner is gone", || is_gone(&world, "a")).await;
    assert_eq!(is_gone(&world, "b").await, Some(()));
    world.stop().await;
}

#[tokio::test]
async fn orphans_stay() {
    let world = World::start().await;
    chain(&world).await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::orphan()).await.unwrap();
    world.until("the owner is gone", || is_gone(&world, "a")).await;
    let b = world.api::<ConfigMap>().get("b").await.unwrap();
    assert!(b.owner_references().is_empty());
    assert_eq!(is_gone(&world, "c").await, None);
    world.stop().await;
}

#[tokio::test]
async fn an_owner_that_never_was_takes_its_dependents_along() {
    let world = World::start().await;
    map(&world, "b", Some(("v1", "ConfigMap", "ghost", "no-such-uid"))).await;
    world.until("the dependent is gone", || is_gone(&world, "b")).await;
    world.stop().await;
}

#[tokio::test]
async fn one_owner_left_is_enough() {
    let world = World::start().await;
    let a = map(&world, "a", None).await;
    let b = map(&world, "b", None).await;
    let owner =
        |name: &str, uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid});
    world
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c",
            "ownerReferences": [owner("a", &a), owner("b", &b)]}}))
        .await;
    world.api::<ConfigMap>().delete("a", &DeleteParams::default()).await.unwrap();
    world
        .until("the reference to the absent one is gone", || async {
            let c = world.api::<ConfigMap>().get("c").await.unwrap();
            holds(c.owner_references().iter().map(|o| o.name.as_str()).collect::<Vec<_>>() == ["b"])
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn owners_are_in_the_same_namespace() {
    let world = World::start().await;
    world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})).await;
    let far = world
        .create(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "far"}}),
        )
        .await;
    map(&world, "b", Some(("v1", "ConfigMap", "a", &far.uid().unwrap()))).await;
    world.until("the dependent is gone", || is_gone(&world, "b")).await;
    world
        .until("it is told why", || async {
            let events: Value = world.get("/apis/events.k8s.io/v1/namespaces/default/events").await?;
            let events = events["items"].as_array().cloned().unwrap_or_default();
            holds(
                events
                    .iter()
                    .any(|e| e["reason"] == "OwnerRefInvalidNamespace" && e["regarding"]["name"] == "b"),
            )
        })
        .await;
    world.stop().await;
}

fn crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "backups.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "backups", "singular": "backup", "kind": "Backup"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[tokio::test]
async fn kinds_that_come_later_are_collected_too() {
    let world = World::start().await;
    world.create(crd()).await;
    let backups = "/apis/example.com/v1/namespaces/default/backups";
    world.until("it is served", || async { world.get::<Value>(backups).await }).await;
    let backup = json!({"apiVersion": "example.com/v1", "kind": "Backup", "metadata": {"name": "a"}});
    let owner = world.create(backup.clone()).await.uid().unwrap();
    map(&world, "b", Some(("example.com/v1", "Backup", "a", &owner))).await;
    let mut child = backup.clone();
    child["metadata"] = json!({"name": "child", "ownerReferences": [
        {"apiVersion": "example.com/v1", "kind": "Backup", "name": "a", "uid": owner}]});
    world.create(child).await;
    let (api, _) = world.dynamic(&backup);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    world.until("the dependent is gone", || is_gone(&world, "b")).await;
    world
        .until("the child is gone", || async {
            holds(world.get::<Value>(&format!("{backups}/child")).await.is_none())
        })
        .await;
    world.stop().await;
}
