//! The operator against a control plane inside the test: the user's definition, the user's object, in virtual time.

use std::time::Duration;

use homeostat::testing::{Cluster, ClusterOptions};
use homeostat::{CancellationToken, Clock, Entropy, Manager};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleRef, Subject};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use redis_operator::{RedisCluster, RedisClusterOperator};
use serde_json::json;

fn example<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A cluster with the operator at work in it.
struct World {
    client: Client,
    _cluster: Cluster,
    stop: CancellationToken,
}

impl World {
    async fn start() -> Self {
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        let entropy = Entropy::seeded(1);
        let options = ClusterOptions {
            nodes: 3,
            clock: clock.clone(),
            entropy: entropy.clone(),
            ..ClusterOptions::default()
        };
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        let stop = CancellationToken::new();
        grant(&client).await;
        let operator = cluster.client_as(redis_operator::NAME, &[]);
        let manager =
            Manager::new(operator).with_clock(clock).with_entropy(entropy).with(RedisClusterOperator);
        tokio::spawn(manager.run(stop.clone()));
        // The definition comes after the operator, as it may in any cluster.
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        definitions.create(&PostParams::default(), &example("rediscluster-crd.yaml")).await.unwrap();
        Self { client, _cluster: cluster, stop }
    }

    fn api<K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Creates the user's object, as soon as the definition is established.
    async fn create(&self) {
        let redis: RedisCluster = example("rediscluster.yaml");
        until("the definition is served", async || {
            self.api::<RedisCluster>().create(&PostParams::default(), &redis).await.is_ok()
        })
        .await;
    }

    async fn scale(&self, replicas: i32) {
        let patch = json!({"spec": {"replicas": replicas}});
        self.api::<RedisCluster>()
            .patch("sessions", &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    async fn ready(&self) -> Option<i32> {
        let redis = self.api::<RedisCluster>().get("sessions").await.unwrap();
        redis.status.and_then(|s| s.ready_replicas)
    }

    async fn pods(&self) -> usize {
        let pods = ListParams::default().labels("app.kubernetes.io/instance=sessions");
        self.api::<Pod>().list(&pods).await.unwrap().items.len()
    }

    async fn has(&self, replicas: i32) {
        until(&format!("{replicas} are ready"), async || {
            self.ready().await == Some(replicas) && self.pods().await == replicas as usize
        })
        .await;
    }
}

/// The operator has the rights that follow from its types, and no others.
async fn grant(client: &Client) {
    let role = ClusterRole {
        metadata: ObjectMeta { name: Some(redis_operator::NAME.into()), ..ObjectMeta::default() },
        rules: Some(homeostat::rules::<RedisClusterOperator>()),
        ..ClusterRole::default()
    };
    Api::all(client.clone()).create(&PostParams::default(), &role).await.unwrap();
    let binding = ClusterRoleBinding {
        metadata: role.metadata.clone(),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "ClusterRole".into(),
            name: redis_operator::NAME.into(),
        },
        subjects: Some(vec![Subject {
            api_group: Some("rbac.authorization.k8s.io".into()),
            kind: "User".into(),
            name: redis_operator::NAME.into(),
            namespace: None,
        }]),
    };
    Api::all(client.clone()).create(&PostParams::default(), &binding).await.unwrap();
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Waits, ten (virtual) minutes at most.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..6000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(start_paused = true)]
async fn replicas_become_ready_and_follow_the_spec() {
    let world = World::start().await;
    world.create().await;
    for replicas in [3, 5, 1] {
        world.scale(replicas).await;
        world.has(replicas).await;
    }
    let service = world.api::<Service>().get("sessions").await.unwrap();
    assert_eq!(service.spec.unwrap().cluster_ip.as_deref(), Some("None"));
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_comes_back() {
    let world = World::start().await;
    world.create().await;
    world.has(3).await;
    let sets = world.api::<StatefulSet>();
    let before = sets.get("sessions").await.unwrap().metadata.uid;
    sets.delete("sessions", &DeleteParams::default()).await.unwrap();
    until("there is another StatefulSet", async || {
        sets.get("sessions").await.is_ok_and(|s| s.metadata.uid != before)
    })
    .await;
    world.has(3).await;
    world.api::<Service>().delete("sessions", &DeleteParams::default()).await.unwrap();
    until("the Service is back", async || world.api::<Service>().get("sessions").await.is_ok()).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_deleted_cluster() {
    let world = World::start().await;
    world.create().await;
    world.has(3).await;
    world.api::<RedisCluster>().delete("sessions", &DeleteParams::default()).await.unwrap();
    until("nothing is left", async || {
        world.pods().await == 0
            && world.api::<StatefulSet>().get_opt("sessions").await.unwrap().is_none()
            && world.api::<Service>().get_opt("sessions").await.unwrap().is_none()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn converged_means_quiet() {
    let world = World::start().await;
    world.create().await;
    world.has(3).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let version = async || {
        let redis = world.api::<RedisCluster>().get("sessions").await.unwrap();
        let set = world.api::<StatefulSet>().get("sessions").await.unwrap();
        (redis.metadata.resource_version, set.metadata.resource_version)
    };
    let before = version().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(version().await, before);
}

/// Uids, names, versions and times included: what a seed made once it makes again.
#[test]
fn the_same_seed_gives_the_same_cluster() {
    async fn once() -> Vec<serde_json::Value> {
        let world = World::start().await;
        world.create().await;
        world.has(3).await;
        world.scale(5).await;
        world.has(5).await;
        let mut objects = Vec::new();
        let everything = ListParams::default();
        for pod in world.api::<Pod>().list(&everything).await.unwrap() {
            objects.push(json!(pod));
        }
        for set in world.api::<StatefulSet>().list(&everything).await.unwrap() {
            objects.push(json!(set));
        }
        for redis in world.api::<RedisCluster>().list(&everything).await.unwrap() {
            objects.push(json!(redis));
        }
        objects
    }
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(once())
    };
    let (first, second) = (run(), run());
    assert_eq!(first.len(), 7);
    for (a, b) in first.iter().zip(&second) {
        assert_eq!(a, b);
    }
}
