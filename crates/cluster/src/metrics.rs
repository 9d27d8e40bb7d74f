//! Serves what simulated nodes and pods use as `metrics.k8s.io`: the nodes compute it, the server hands it out.
//!
//! It only wires; a cluster without nodes doesn't serve the group, so that something else may.

use std::sync::Arc;

use homeostat_apiserver::Computed;
use homeostat_node::Metrics;
use serde_json::Value;

struct Pods(Metrics);
struct Nodes(Metrics);

/// Both resources.
pub(crate) fn resources(metrics: &Metrics) -> Vec<Arc<dyn Computed>> {
    vec![Arc::new(Pods(metrics.clone())), Arc::new(Nodes(metrics.clone()))]
}

impl Computed for Pods {
    fn definition(&self) -> Value {
        let [pods, _] = Metrics::definitions();
        pods
    }

    fn get(&self, namespace: &str, name: &str) -> Option<Value> {
        self.0.pod(namespace, name)
    }

    fn list(&self, namespace: &str) -> Vec<Value> {
        self.0.pods(namespace)
    }
}

impl Computed for Nodes {
    fn definition(&self) -> Value {
        let [_, nodes] = Metrics::definitions();
        nodes
    }

    fn get(&self, _: &str, name: &str) -> Option<Value> {
        self.0.node(name)
    }

    fn list(&self, _: &str) -> Vec<Value> {
        self.0.nodes()
    }
}
