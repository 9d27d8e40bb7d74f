//! A pod as the scheduler looks at it: read once, when it comes into the snapshot, not in every cycle.
//!
//! Pods of one workload are alike in what others' rules see of them: namespace, labels, (anti-)affinity. These parts
//! are shared ([`Class`], [`Affinity`]), so that a rule is matched once for each of them and not for each pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat_model::selector::Labels;
use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::{Pod, PodAffinityTerm, PodSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::resources::{Amounts, non_zero, requests};

/// A host port in use: address (`0.0.0.0` for all), protocol, port.
pub type HostPort = (String, String, i32);

/// Namespace and labels, shared by pods that have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Whether the pods are being deleted.
    pub terminating: bool,
}

impl Class {
    /// Whether the labels are selected.
    pub fn selected(&self, labels: &Labels) -> bool {
        labels.matches(|k| self.labels.get(k).map(String::as_str))
    }
}

/// A term of pod (anti-)affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Namespaces by name.
    pub namespaces: BTreeSet<String>,
    /// Namespaces by label.
    pub namespace_selector: Labels,
    /// Pods in them.
    pub selector: Labels,
    /// The node label whose values are the domains.
    pub topology: String,
}

impl Term {
    fn new(namespace: &str, term: &PodAffinityTerm) -> Self {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if namespaces.is_empty() && term.namespace_selector.is_none() {
            namespaces.insert(namespace.to_owned());
        }
        Self {
            namespaces,
            namespace_selector: selector(term.namespace_selector.as_ref()),
            selector: selector(term.label_selector.as_ref()),
            topology: term.topology_key.clone(),
        }
    }

    /// Whether pods of a class are meant. `namespaces` are the labels of each.
    pub fn matches(&self, class: &Class, namespaces: &BTreeMap<String, BTreeMap<String, String>>) -> bool {
        let named = self.namespaces.contains(&*class.namespace);
        let labels = || namespaces.get(&*class.namespace);
        let meant = named
            || (!self.namespace_selector.is_nothing()
                && self.namespace_selector.matches(|k| labels().and_then(|l| l.get(k)).map(String::as_str)));
        meant && class.selected(&self.selector)
    }
}

/// The (anti-)affinity to other pods, shared by pods that have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// Required affinity.
    pub required: Vec<Term>,
    /// Required anti-affinity.
    pub anti: Vec<Term>,
    /// Preferred affinity, with weights.
    pub preferred: Vec<(i64, Term)>,
    /// Preferred anti-affinity, with weights.
    pub avoided: Vec<(i64, Term)>,
}

impl Affinity {
    /// Of a pod; `None` where it has none.
    pub fn of(namespace: &str, spec: &PodSpec) -> Option<Self> {
        let affinity = spec.affinity.as_ref()?;
        let mut all = Self::default();
        let weighted = |w: &k8s_openapi::api::core::v1::WeightedPodAffinityTerm| {
            (i64::from(w.weight), Term::new(namespace, &w.pod_affinity_term))
        };
        if let Some(a) = &affinity.pod_affinity {
            let required = a.required_during_scheduling_ignored_during_execution.iter().flatten();
            all.required = required.map(|t| Term::new(namespace, t)).collect();
            let preferred = a.preferred_during_scheduling_ignored_during_execution.iter().flatten();
            all.preferred = preferred.map(weighted).collect();
        }
        if let Some(a) = &affinity.pod_anti_affinity {
            let required = a.required_during_scheduling_ignored_during_execution.iter().flatten();
            all.anti = required.map(|t| Term::new(namespace, t)).collect();
            let preferred = a.preferred_during_scheduling_ignored_during_execution.iter().flatten();
            all.avoided = preferred.map(weighted).collect();
        }
        (all != Self::default()).then_some(all)
    }
}

/// A label selector; absent selects nothing.
pub(crate) fn selector(selector: Option<&LabelSelector>) -> Labels {
    // Serialising a selector can't fail.
    Labels::from_valid(&serde_json::to_value(selector).unwrap_or_default())
}

/// A pod.
#[derive(Clone, Debug)]
pub struct PodInfo {
    /// As the API server has it, or as it will be once it is bound.
    pub pod: Arc<Pod>,
    /// Namespace and name.
    pub key: Key,
    /// Its uid; its key where it has none.
    pub uid: Arc<str>,
    /// Priority; 0 where it has none.
    pub priority: i32,
    /// What it needs from a node.
    pub requests: Amounts,
    /// CPU (thousandths) and memory (bytes) that it is scored with.
    pub non_zero: (i64, i64),
    /// Ports that it takes from the host.
    pub ports: Vec<HostPort>,
    /// Names of the claims that its volumes use, in its namespace.
    pub claims: Vec<String>,
    /// Namespace and labels.
    pub class: Arc<Class>,
    /// Its place among the classes of the snapshot.
    pub(crate) class_id: usize,
    /// (Anti-)affinity to other pods.
    pub affinity: Option<Arc<Affinity>>,
    /// Its place among those of the snapshot.
    pub(crate) affinity_id: usize,
}

impl PodInfo {
    /// Reads a pod, with its shared parts as the snapshot has them.
    pub(crate) fn new(
        pod: Arc<Pod>,
        class: (usize, Arc<Class>),
        affinity: Option<(usize, Arc<Affinity>)>,
    ) -> Self {
        let key = Key::of(&*pod);
        let uid = pod.metadata.uid.as_deref().map_or_else(|| key.to_string().as_str().into(), Arc::from);
        let spec = pod.spec.as_ref();
        Self {
            uid,
            priority: spec.and_then(|s| s.priority).unwrap_or(0),
            requests: requests(&pod),
            non_zero: non_zero(&pod),
            ports: spec.map(host_ports).unwrap_or_default(),
            claims: claims(&key, spec),
            class: class.1,
            class_id: class.0,
            affinity_id: affinity.as_ref().map_or(usize::MAX, |a| a.0),
            affinity: affinity.map(|a| a.1),
            key,
            pod,
        }
    }

    /// The spec; that of a pod without one is empty.
    pub fn spec(&self) -> Option<&PodSpec> {
        self.pod.spec.as_ref()
    }

    /// The node that it is bound to, or will be.
    pub fn node(&self) -> Option<&str> {
        node_of(&self.pod)
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.class.namespace
    }

    /// Its tolerations.
    pub fn tolerations(&self) -> &[Toleration] {
        self.spec().and_then(|s| s.tolerations.as_deref()).unwrap_or_default()
    }

    /// A label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.class.labels.get(key).map(String::as_str)
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The node that it made room on.
    pub fn nominated(&self) -> Option<&str> {
        self.pod.status.as_ref()?.nominated_node_name.as_deref().filter(|n| !n.is_empty())
    }
}

/// The node that a pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|n| !n.is_empty())
}

/// Whether a pod has ended and holds nothing any more.
pub fn is_over(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|s| s.phase.as_deref()), Some("Succeeded" | "Failed"))
}

/// The host ports that a pod asks for.
pub fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let sidecars =
        spec.init_containers.iter().flatten().filter(|c| c.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|c| c.ports.iter().flatten());
    ports
        .filter_map(|p| {
            let port = p.host_port.filter(|p| *p > 0)?;
            let address = p.host_ip.clone().filter(|a| !a.is_empty()).unwrap_or_else(|| "0.0.0.0".to_owned());
            Some((address, p.protocol.clone().unwrap_or_else(|| "TCP".to_owned()), port))
        })
        .collect()
}

fn claims(key: &Key, spec: Option<&PodSpec>) -> Vec<String> {
    let volumes = spec.and_then(|s| s.volumes.as_deref()).unwrap_or_default();
    volumes
        .iter()
        .filter_map(|v| match (&v.persistent_volume_claim, &v.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.clone()),
            (None, Some(_)) => Some(format!("{}-{}", key.name(), v.name)),
            (None, None) => None,
        })
        .collect()
}
