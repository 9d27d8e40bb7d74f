//! What the scheduler sees: nodes with the pods on them, at one moment.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};

use crate::resources::{Amounts, requests, requests_for_score};

/// A host port in use: address (`0.0.0.0` for all), protocol, port.
pub type HostPort = (String, String, i32);

/// A node and what is on it.
#[derive(Clone, Debug, Default)]
pub struct NodeInfo {
    /// The node.
    pub node: Node,
    /// What it can give to pods.
    pub allocatable: Amounts,
    /// What its pods ask for.
    pub requested: Amounts,
    /// The same for scoring.
    pub scored: Amounts,
    /// How many pods it has.
    pub pods: i64,
    /// How many of its pods each controller has there, by the controller's uid.
    pub controllers: BTreeMap<String, i64>,
    /// Ports that its pods take from the host.
    pub ports: BTreeSet<HostPort>,
}

impl NodeInfo {
    /// A node without pods.
    pub fn new(node: Node) -> Self {
        let allocatable = Amounts::of(node.status.as_ref().and_then(|s| s.allocatable.as_ref()));
        Self { node, allocatable, ..Self::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    /// Puts a pod on it.
    pub fn add(&mut self, spec: &PodSpec, controller: Option<&str>) {
        if let Some(uid) = controller {
            *self.controllers.entry(uid.to_owned()).or_default() += 1;
        }
        self.requested.add(&requests(spec));
        self.scored.add(&requests_for_score(spec));
        self.pods += 1;
        self.ports.extend(host_ports(spec));
    }
}

/// The nodes, by name.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    nodes: BTreeMap<String, NodeInfo>,
}

impl Snapshot {
    /// From all nodes and all pods; pods that are over take nothing.
    pub fn new<'a>(
        nodes: impl IntoIterator<Item = &'a Node>,
        pods: impl IntoIterator<Item = &'a Pod>,
    ) -> Self {
        let mut snapshot = Self::default();
        for node in nodes {
            let info = NodeInfo::new(node.clone());
            snapshot.nodes.insert(info.name().to_owned(), info);
        }
        for pod in pods {
            if is_over(pod) {
                continue;
            }
            if let Some(spec) = &pod.spec
                && let Some(node) = &spec.node_name
            {
                snapshot.assume(spec, controller(pod), node);
            }
        }
        snapshot
    }

    /// Counts a pod on a node.
    pub fn assume(&mut self, spec: &PodSpec, controller: Option<&str>, node: &str) {
        if let Some(info) = self.nodes.get_mut(node) {
            info.add(spec, controller);
        }
    }

    /// Every node, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeInfo> {
        self.nodes.values()
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

/// The uid of a pod's controller.
pub fn controller(pod: &Pod) -> Option<&str> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|o| o.controller == Some(true)).map(|o| o.uid.as_str())
}

/// Whether a pod has ended and holds nothing any more.
pub fn is_over(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|s| s.phase.as_deref()), Some("Succeeded" | "Failed"))
}

/// The host ports that a pod asks for.
pub fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let ports = spec.containers.iter().flat_map(|c| c.ports.iter().flatten());
    ports
        .filter_map(|p| {
            let port = p.host_port.filter(|p| *p > 0)?;
            let address = p.host_ip.clone().filter(|a| !a.is_empty()).unwrap_or_else(|| "0.0.0.0".to_owned());
            Some((address, p.protocol.clone().unwrap_or_else(|| "TCP".to_owned()), port))
        })
        .collect()
}
