//! What a namespace gets when it is made, and how it ends.

use homeostat_cluster::simulate;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{World, holds};
use crate::virtual_time::Simulation;

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
}

#[tokio::test]
async fn a_namespace_has_its_account_and_root_ca() {
    let world = World::start().await;
    world.create(namespace()).await;
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), "team");
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "team");
    world.until("the account", || async { accounts.get_opt("default").await.unwrap() }).await;
    let map = world.until("the map", || async { maps.get_opt("kube-root-ca.crt").await.unwrap() }).await;
    let data = map.data.clone().unwrap();
    assert!(data["ca.crt"].starts_with("-----BEGIN CERTIFICATE-----"), "{data:?}");

    // Both come back, and the map is mended.
    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    world.until("the account again", || async { accounts.get_opt("default").await.unwrap() }).await;
    let patch = Patch::Merge(json!({"data": {"ca.crt": "x"}}));
    maps.patch("kube-root-ca.crt", &PatchParams::default(), &patch).await.unwrap();
    world
        .until("the map is mended", || async {
            holds(maps.get("kube-root-ca.crt").await.unwrap().data == Some(data.clone()))
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_namespace_ends_when_it_is_empty() {
    let world = World::start().await;
    world.create(namespace()).await;
    for (name, finalizers) in [("a", json!(["example.com/hold"])), ("b", json!([]))] {
        world
            .create(json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": "team", "finalizers": finalizers}}))
            .await;
    }
    world
        .create(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0}}}}))
        .await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let held = world
        .until("the conditions tell", || async {
            let namespace = namespaces.get("team").await.unwrap();
            let conditions = namespace.status?.conditions?;
            let remaining = conditions.iter().find(|c| c.type_ == "NamespaceFinalizersRemaining")?.clone();
            (remaining.status == "True").then_some(remaining)
        })
        .await;
    assert_eq!(
        held.message.as_deref(),
        Some(
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        )
    );
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "team");
    maps.patch("a", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await
        .unwrap();
    world.until("it is gone", || async { holds(namespaces.get_opt("team").await.unwrap().is_none()) }).await;
    world.stop().await;
}

#[test]
fn what_pods_may_need_outlives_them() {
    simulate(async || {
        let world = Simulation::start(91, 1).await;
        world.create("/api/v1/namespaces", json!({"metadata": {"name": "team"}})).await;
        world.pass(5).await;
        let (pods, maps) = ("/api/v1/namespaces/team/pods", "/api/v1/namespaces/team/configmaps");
        let slow = json!({"metadata": {"name": "slow", "annotations": {"simulation.homeostat.dev/stop": "never"}},
            "spec": {"terminationGracePeriodSeconds": 60, "containers": [{"name": "c", "image": "i"}]}});
        world.create(pods, slow).await;
        world.create(maps, json!({"metadata": {"name": "settings"}})).await;
        world.pass(10).await;
        world.delete("/api/v1/namespaces/team", "Background").await;
        world.pass(50).await;
        assert_eq!(world.items(pods).await.len(), 1);
        let left = world.items(maps).await;
        assert!(left.iter().any(|m| m["metadata"]["name"] == "settings"), "{left:#?}");
        world.pass(30).await;
        let names: Vec<Value> =
            world.items("/api/v1/namespaces").await.iter().map(|n| n["metadata"]["name"].clone()).collect();
        assert!(!names.contains(&json!("team")), "{names:?}");
    })
    .unwrap();
}

#[tokio::test]
async fn cluster_roles_aggregate() {
    let world = World::start().await;
    let role = |name: &str, labels: Value, verbs: Value| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name, "labels": labels},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]})
    };
    let mut all = role("all", json!({}), json!(["patch"]));
    all["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"to": "all"}}]});
    world.create(all).await;
    world.create(role("b", json!({"to": "all"}), json!(["list"]))).await;
    world.create(role("a", json!({"to": "all"}), json!(["get"]))).await;
    world.create(role("c", json!({"to": "none"}), json!(["watch"]))).await;
    world
        .until("the rules are gathered", || async {
            let role: Value = world.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/all").await?;
            let verbs: Vec<&Value> = role["rules"].as_array()?.iter().map(|r| &r["verbs"][0]).collect();
            holds(verbs == ["get", "list"])
        })
        .await;
    world.stop().await;
}
