//! What happens in the cluster, as far as it may let a pod be scheduled that could not be before.
//!
//! Each plugin says of an event whether it may have removed the plugin's own objection to a pod (a queueing hint); the
//! queue asks only the plugins that objected. An event is data, never a command: a plugin that says yes too often
//! costs attempts, one that says no too often costs five minutes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim};
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::snapshot::PodInfo;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node came.
    NodeAdded(Arc<Node>),
    /// A node changed; heartbeats are not events.
    NodeUpdated {
        /// As it was.
        old: Arc<Node>,
        /// As it is.
        new: Arc<Node>,
    },
    /// A node went.
    NodeDeleted(Arc<Node>),
    /// A pod got its node, by this scheduler or another.
    PodAssigned(Arc<PodInfo>),
    /// A pod that has a node changed.
    AssignedPodUpdated {
        /// As it was.
        old: Arc<PodInfo>,
        /// As it is.
        new: Arc<PodInfo>,
    },
    /// A pod no longer holds anything on its node: deleted, or over.
    AssignedPodDeleted(Arc<PodInfo>),
    /// A pod gave back a place that it was never bound to. Plugins are told of it as of a deleted pod, except for pods
    /// that share the fate of this one ([`Plugin::shares_fate`](super::Plugin::shares_fate)).
    PlaceGivenBack(Arc<PodInfo>),
    /// A pod has its place and waits for its permit.
    PodWaits(Arc<PodInfo>),
    /// A pod without a node appeared.
    PodAdded(Arc<PodInfo>),
    /// The pod in question itself changed.
    PodUpdated {
        /// As it was.
        old: Arc<PodInfo>,
        /// As it is.
        new: Arc<PodInfo>,
    },
    /// A pod without a node went.
    PodDeleted(Arc<PodInfo>),
    /// A claim came or changed.
    Claim(Arc<PersistentVolumeClaim>),
    /// A claim of devices came or changed.
    ResourceClaim(Arc<ResourceClaim>),
    /// A persistent volume came, changed or went.
    Volume,
    /// A storage class came or changed.
    StorageClass,
    /// What a node's storage drivers say changed.
    StorageNode,
    /// A storage driver, or how much it can still hold, came, changed or went.
    StorageCapacity,
    /// A namespace came or its labels changed.
    Namespace,
    /// It is time to try everything again.
    Flush,
}

/// What of a node changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct NodeChange {
    /// `status.allocatable`.
    pub allocatable: bool,
    /// Labels.
    pub labels: bool,
    /// Taints, and cordoning.
    pub taints: bool,
    /// Conditions' states.
    pub conditions: bool,
    /// Annotations.
    pub annotations: bool,
    /// Images.
    pub images: bool,
    /// Features that the node declares.
    pub features: bool,
}

impl NodeChange {
    /// Between two states of a node.
    pub fn between(old: &Node, new: &Node) -> Self {
        let allocatable = |n: &Node| n.status.as_ref().and_then(|s| s.allocatable.clone());
        let images = |n: &Node| n.status.as_ref().and_then(|s| s.images.clone());
        let features = |n: &Node| n.status.as_ref().and_then(|s| s.declared_features.clone());
        let taints = |n: &Node| {
            let spec = n.spec.as_ref();
            (spec.and_then(|s| s.taints.clone()), spec.and_then(|s| s.unschedulable).unwrap_or(false))
        };
        let conditions = |n: &Node| -> Vec<(String, String)> {
            let all = n.status.as_ref().and_then(|s| s.conditions.as_ref()).into_iter().flatten();
            all.map(|c| (c.type_.clone(), c.status.clone())).collect()
        };
        Self {
            allocatable: allocatable(old) != allocatable(new),
            labels: old.metadata.labels != new.metadata.labels,
            taints: taints(old) != taints(new),
            conditions: conditions(old) != conditions(new),
            annotations: old.metadata.annotations != new.metadata.annotations,
            images: images(old) != images(new),
            features: features(old) != features(new),
        }
    }

    /// Whether anything that scheduling looks at changed.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}

impl Event {
    /// The node that the event offers: one that came, or changed in the way that `f` says.
    pub fn node(&self, f: impl Fn(NodeChange) -> bool) -> Option<&Arc<Node>> {
        match self {
            Self::NodeAdded(node) => Some(node),
            Self::NodeUpdated { old, new } if f(NodeChange::between(old, new)) => Some(new),
            _ => None,
        }
    }
}
