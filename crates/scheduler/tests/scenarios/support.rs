//! A control plane in this process without nodes or a scheduler of its own, and a scheduler as the test configures it.

use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions};
use homeostat_scheduler::{Configuration, Registry};
use homeostat_sdk::{CancellationToken, Manager};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// A cluster with a scheduler.
pub(crate) struct World {
    cluster: Cluster,
    stop: CancellationToken,
    pub(crate) client: Client,
}

impl World {
    /// With the default configuration.
    pub(crate) async fn start() -> Self {
        Self::with(Configuration::default()).await
    }

    /// With a configuration.
    pub(crate) async fn with(configuration: Configuration) -> Self {
        Self::with_plugins(configuration, Registry::default()).await
    }

    /// With a configuration and plugins of one's own.
    pub(crate) async fn with_plugins(configuration: Configuration, registry: Registry) -> Self {
        let mut options = ClusterOptions { nodes: 0, ..ClusterOptions::default() };
        options.controllers("*,-scheduler,-node-lifecycle-controller,-taint-eviction-controller").unwrap();
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        // With the rights that it has in a cluster.
        let mut manager = Manager::new(cluster.client_as("system:kube-controller-manager", &[]));
        manager.act_through(cluster.client_as("system:kube-scheduler", &[]));
        homeostat_scheduler::add_with_plugins(&mut manager, configuration, registry);
        let stop = CancellationToken::new();
        tokio::spawn(manager.run(stop.clone()));
        let world = Self { cluster, stop, client };
        world
            .until("the account of pods", async || {
                let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
                    Api::namespaced(world.client.clone(), "default");
                accounts.get_opt("default").await.unwrap()
            })
            .await;
        world
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.cluster.stop(Duration::from_secs(5)).await;
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// A node with room for 4 cores, and what `change` says.
    pub(crate) async fn node(&self, name: &str, change: Value) {
        let mut node = json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}});
        merge(&mut node, &change);
        let node: Node = serde_json::from_value(node).unwrap();
        let status = json!({"status": node.status});
        self.nodes().create(&PostParams::default(), &node).await.unwrap();
        self.nodes().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    /// A pod that asks for CPU, and what `change` says.
    pub(crate) async fn pod(&self, name: &str, cpu: &str, change: Value) {
        let mut pod = json!({"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}});
        merge(&mut pod, &change);
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }

    pub(crate) async fn delete(&self, pod: &str) {
        self.pods().delete(pod, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    pub(crate) async fn node_of(&self, pod: &str) -> Option<String> {
        self.pods().get_opt(pod).await.unwrap()?.spec?.node_name
    }

    /// The node that a pod's status says it will go to.
    pub(crate) async fn nomination_of(&self, pod: &str) -> Option<String> {
        self.pods().get(pod).await.unwrap().status?.nominated_node_name
    }

    /// Waits until a pod has a node.
    pub(crate) async fn bound(&self, pod: &str) -> String {
        self.until(&format!("{pod} has a node"), async || self.node_of(pod).await).await
    }

    /// Waits until a pod's condition says why it has no node: reason and message.
    pub(crate) async fn refused(&self, pod: &str, part: &str) -> (String, String) {
        self.until(&format!("{pod} is refused: {part}"), async || {
            let status = self.pods().get(pod).await.unwrap().status?;
            let condition = status.conditions?.into_iter().find(|c| c.type_ == "PodScheduled")?;
            let message = condition.message.unwrap_or_default();
            (condition.status == "False" && message.contains(part))
                .then(|| (condition.reason.unwrap_or_default(), message))
        })
        .await
    }

    /// Waits for an event about an object.
    pub(crate) async fn event(&self, object: &str, reason: &str) -> Event {
        self.until(&format!("event {reason} about {object}"), async || {
            let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
            let all = events.list(&ListParams::default()).await.unwrap().items;
            all.into_iter().find(|e| {
                e.reason.as_deref() == Some(reason)
                    && e.regarding.as_ref().and_then(|r| r.name.as_deref()) == Some(object)
            })
        })
        .await
    }

    /// Waits until `f` gives something.
    pub(crate) async fn until<T>(&self, what: &str, f: impl AsyncFn() -> Option<T>) -> T {
        let wait = async {
            loop {
                if let Some(found) = f().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait)
            .await
            .unwrap_or_else(|_| panic!("never happened: {what}"))
    }
}

pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (k, v) in from {
                merge(into.entry(k).or_insert(Value::Null), v);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
