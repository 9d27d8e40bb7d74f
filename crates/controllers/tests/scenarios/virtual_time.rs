//! A cluster in virtual time, with a count of what its own parts ask of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_cluster::audit::{Audit, Event, Interest, Level, Stage};
use homeostat_cluster::{Cluster, ClusterOptions};
use kube::Client;
use serde_json::Value;

const KUBELET: &str = "system:serviceaccount:kube-system:simulated-kubelet";

/// An account of the cluster's parts, a verb, a group, and a resource with its subresource.
pub(crate) type Use = (String, String, String, String);

/// Counts finished requests of the cluster's parts by verb and path, and keeps what they were refused for want of
/// rights. Watches are left out, which begin when the cluster does, and kubelets, who show all the time that they live.
#[derive(Debug, Default)]
pub(crate) struct Count {
    requests: Mutex<BTreeMap<String, usize>>,
    refusals: Mutex<Vec<String>>,
    uses: Mutex<BTreeSet<Use>>,
}

impl Audit for Count {
    fn interest(&self, _: &homeostat_access::Attributes<'_>) -> Interest {
        Interest { level: Level::Metadata, ..Interest::default() }
    }

    fn tell(&self, event: Event) {
        let part = event.user.name.starts_with("system:");
        if let Some(status) = event.response_status.filter(|s| part && s["code"] == 403) {
            let message = status["message"].as_str().unwrap_or_default();
            if message.contains("is forbidden: User \"system:") {
                self.refusals.lock().unwrap().push(message.to_owned());
            }
        }
        let account = event.user.name.strip_prefix("system:serviceaccount:kube-system:");
        if let (Some(account), Some(of)) = (account, &event.object_ref) {
            let resource = match &*of.subresource {
                "" => of.resource.clone(),
                sub => format!("{}/{sub}", of.resource),
            };
            let used = (account.to_owned(), event.verb.clone(), of.api_group.clone(), resource);
            self.uses.lock().unwrap().insert(used);
        }
        if event.stage == Stage::ResponseComplete
            && part
            && &*event.verb != "watch"
            && event.user.name != KUBELET
        {
            let path = event.request_uri.split('?').next().unwrap_or_default();
            // Names of events differ.
            let path = path.split("/events/").next().unwrap_or_default();
            *self.requests.lock().unwrap().entry(format!("{} {path}", event.verb)).or_default() += 1;
        }
    }
}

impl Count {
    /// What was counted since the last time.
    pub(crate) fn take(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// The rights that parts have made use of so far.
    pub(crate) fn uses(&self) -> BTreeSet<Use> {
        self.uses.lock().unwrap().clone()
    }

    /// Panics if a controller asked for what it may not do.
    pub(crate) fn assert_rights(&self) {
        let refusals = self.refusals.lock().unwrap();
        assert!(refusals.is_empty(), "refused: {refusals:#?}");
    }
}

/// A cluster in virtual time.
pub(crate) struct Simulation {
    _cluster: Cluster,
    pub(crate) client: Client,
    pub(crate) count: Arc<Count>,
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.count.assert_rights();
        }
    }
}

impl Simulation {
    pub(crate) async fn start(seed: u64, nodes: usize) -> Self {
        Self::with(ClusterOptions { nodes, ..ClusterOptions::simulated(seed) }).await
    }

    pub(crate) async fn with(options: ClusterOptions) -> Self {
        let count = Arc::new(Count::default());
        let options = ClusterOptions { audit: Some(count.clone()), ..options };
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        let simulation = Self { _cluster: cluster, client, count };
        simulation.pass(10).await;
        simulation
    }

    /// Lets seconds pass.
    pub(crate) async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<Value, kube::Error> {
        self.client.request::<Value>(request).await
    }

    pub(crate) async fn create(&self, path: &str, object: Value) {
        let request = http::Request::post(path).body(object.to_string().into_bytes()).unwrap();
        self.send(request).await.unwrap_or_else(|e| panic!("{path}: {e}"));
    }

    /// Whether the server agreed.
    pub(crate) async fn post(&self, path: &str, object: Value) -> bool {
        let request = http::Request::post(path).body(object.to_string().into_bytes()).unwrap();
        self.send(request).await.is_ok()
    }

    pub(crate) async fn merge(&self, path: &str, patch: Value) {
        let request = http::Request::patch(path)
            .header("content-type", "application/merge-patch+json")
            .body(patch.to_string().into_bytes())
            .unwrap();
        self.send(request).await.unwrap_or_else(|e| panic!("{path}: {e}"));
    }

    pub(crate) async fn delete(&self, path: &str, policy: &str) {
        let path = format!("{path}?propagationPolicy={policy}");
        let request = http::Request::delete(path).body(Vec::new()).unwrap();
        self.send(request).await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.send(request).await.unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        self.get(path).await["items"].as_array().cloned().unwrap_or_default()
    }
}
