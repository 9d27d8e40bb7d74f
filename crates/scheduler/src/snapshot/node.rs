//! A node with the pods on it, and the sums over them.
//!
//! Invariant: the sums are those of the pods in the list. A copy can lose and gain pods without the snapshot knowing,
//! which is how preemption tries things.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};

use super::pod::{HostPort, PodInfo};
use crate::resources::Amounts;

/// A node and what is on it.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// The node.
    pub node: Arc<Node>,
    /// Its name.
    pub name: Arc<str>,
    /// Its place in the snapshot, which stays as long as the node.
    pub slot: usize,
    /// Grows with each change of the node or its pods.
    pub generation: u64,
    /// What it can give to pods.
    pub allocatable: Amounts,
    /// What its pods ask for.
    pub requested: Amounts,
    /// CPU and memory of its pods for scoring.
    pub non_zero: (i64, i64),
    /// Its pods.
    pub pods: Vec<Arc<PodInfo>>,
    /// Ports that its pods take from the host, with how often (which can be more than once in a copy).
    pub ports: BTreeMap<HostPort, u32>,
    /// Sizes of the images that it has, by name.
    pub images: Arc<BTreeMap<String, i64>>,
}

impl NodeInfo {
    /// A node without pods.
    pub fn new(node: Arc<Node>, slot: usize) -> Self {
        let mut info = Self {
            name: node.metadata.name.as_deref().unwrap_or_default().into(),
            slot,
            generation: 0,
            allocatable: Amounts::default(),
            requested: Amounts::default(),
            non_zero: (0, 0),
            pods: Vec::new(),
            ports: BTreeMap::new(),
            images: Arc::default(),
            node: Arc::default(),
        };
        info.set(node);
        info
    }

    /// Takes in a new state of the node itself.
    pub fn set(&mut self, node: Arc<Node>) {
        let status = node.status.as_ref();
        self.allocatable = Amounts::of(status.and_then(|s| s.allocatable.as_ref()));
        let images = status.and_then(|s| s.images.as_deref()).unwrap_or_default();
        let mut sizes = BTreeMap::new();
        for image in images {
            for name in image.names.iter().flatten() {
                sizes.insert(name.clone(), image.size_bytes.unwrap_or(0));
            }
        }
        if *self.images != sizes {
            self.images = Arc::new(sizes);
        }
        self.node = node;
    }

    /// A label of the node.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.node.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// An annotation of the node.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.node.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Its taints.
    pub fn taints(&self) -> &[Taint] {
        self.node.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default()
    }

    /// Puts a pod on it.
    pub fn add(&mut self, pod: Arc<PodInfo>) {
        self.requested.add(&pod.requests);
        self.non_zero.0 = self.non_zero.0.saturating_add(pod.non_zero.0);
        self.non_zero.1 = self.non_zero.1.saturating_add(pod.non_zero.1);
        for port in &pod.ports {
            *self.ports.entry(port.clone()).or_default() += 1;
        }
        self.pods.push(pod);
    }

    /// Takes a pod off it. Whether it was there.
    pub fn remove(&mut self, uid: &str) -> bool {
        let Some(at) = self.pods.iter().position(|p| &*p.uid == uid) else { return false };
        let pod = self.pods.remove(at);
        self.requested.sub(&pod.requests);
        self.non_zero.0 -= pod.non_zero.0;
        self.non_zero.1 -= pod.non_zero.1;
        for port in &pod.ports {
            if let Some(n) = self.ports.get_mut(port) {
                *n -= 1;
                if *n == 0 {
                    self.ports.remove(port);
                }
            }
        }
        true
    }
}
