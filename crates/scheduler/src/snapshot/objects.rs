//! What scheduling looks at beside nodes and pods: volumes, namespaces, services, workloads, disruption budgets.
//!
//! Plain maps by name, as the API server last told. Whatever isn't there yet is answered as absent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat_model::selector::Labels;
use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};

use super::pod::selector;
use crate::resources::units;

/// How much a driver can still hold in a part of the cluster, read.
#[derive(Clone, Debug)]
pub struct Room {
    /// The storage class of which it can.
    pub class: String,
    /// The largest volume, in bytes; nothing where it isn't said.
    pub most: Option<i64>,
    /// The labels of nodes from where it is reached; none where it isn't said.
    pub segment: Option<Labels>,
}

impl Room {
    /// Reads it.
    pub fn new(capacity: &CSIStorageCapacity) -> Self {
        let most = capacity.maximum_volume_size.as_ref().or(capacity.capacity.as_ref());
        let most = most.map(|q| BTreeMap::from([("storage".to_owned(), q.clone())]));
        Self {
            class: capacity.storage_class_name.clone(),
            most: most.map(|most| units(Some(&most), "storage")),
            segment: capacity.node_topology.as_ref().map(|s| selector(Some(s))),
        }
    }
}

/// A disruption budget, read.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Its namespace.
    pub namespace: String,
    /// Whose pods it protects.
    pub selector: Labels,
    /// How many may go now.
    pub allowed: i32,
    /// Pods that are going already and have been counted.
    pub disrupted: BTreeSet<String>,
}

impl Budget {
    /// Reads one.
    pub fn of(budget: &PodDisruptionBudget) -> Self {
        let status = budget.status.as_ref();
        let selector = budget.spec.as_ref().and_then(|s| s.selector.as_ref());
        Self {
            namespace: budget.metadata.namespace.clone().unwrap_or_default(),
            selector: super::pod::selector(selector),
            allowed: status.and_then(|s| s.disruptions_allowed).unwrap_or(0),
            disrupted: status
                .and_then(|s| s.disrupted_pods.as_ref())
                .into_iter()
                .flatten()
                .map(|(n, _)| n.clone())
                .collect(),
        }
    }
}

/// The other objects.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Claims.
    pub claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
    /// Claims of devices.
    pub resource_claims: BTreeMap<Key, Arc<ResourceClaim>>,
    /// Volumes by name.
    pub volumes: BTreeMap<String, Arc<PersistentVolume>>,
    /// Storage classes by name.
    pub classes: BTreeMap<String, Arc<StorageClass>>,
    /// What storage drivers say about each node.
    pub storage_nodes: BTreeMap<String, Arc<CSINode>>,
    /// Storage drivers by name.
    pub drivers: BTreeMap<String, Arc<CSIDriver>>,
    /// How much they can still hold, by class and place.
    pub capacities: BTreeMap<Key, Room>,
    /// Selectors of services, by namespace and name.
    pub services: BTreeMap<Key, BTreeMap<String, String>>,
    /// Selectors of replica sets, replication controllers and stateful sets, by uid.
    pub workloads: BTreeMap<String, Labels>,
    /// Volumes that were chosen for the claims of pods that are being bound, by the pod's uid.
    pub promised: BTreeMap<Arc<str>, Vec<String>>,
    /// Disruption budgets.
    pub budgets: BTreeMap<Key, Budget>,
}

impl Objects {
    /// A claim of a namespace.
    pub fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<PersistentVolumeClaim>> {
        self.claims.get(&Key::namespaced(namespace, name))
    }

    /// A claim of devices.
    pub fn resource_claim(&self, namespace: &str, name: &str) -> Option<&Arc<ResourceClaim>> {
        self.resource_claims.get(&Key::namespaced(namespace, name))
    }
}
