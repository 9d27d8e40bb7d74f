//! The JSON that extenders speak (`k8s.io/kube-scheduler/extender/v1`). Field names are Go's, in upper case.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde::{Deserialize, Serialize};

/// What a filter and scores are asked with: a pod and nodes, or only the nodes' names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderArgs {
    /// The pod.
    pub pod: Pod,
    /// The nodes, for an extender without a cache of its own.
    pub nodes: Option<NodeList>,
    /// Their names, for one with.
    pub node_names: Option<Vec<String>>,
}

/// A list of nodes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeList {
    /// The list's metadata, which is empty.
    #[serde(default)]
    pub metadata: serde_json::Value,
    /// The nodes.
    #[serde(default)]
    pub items: Vec<Node>,
}

/// What a filter answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ExtenderFilterResult {
    /// Nodes that do.
    pub nodes: Option<NodeList>,
    /// Their names.
    pub node_names: Option<Vec<String>>,
    /// Why others don't.
    pub failed_nodes: Option<BTreeMap<String, String>>,
    /// Why others don't, whoever goes.
    pub failed_and_unresolvable_nodes: Option<BTreeMap<String, String>>,
    /// What went wrong.
    pub error: String,
}

/// A node's score, 0 to 10.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct HostPriority {
    /// The node.
    pub host: String,
    /// Its score.
    pub score: i64,
}

/// What an extender is asked to bind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderBindingArgs {
    /// The pod.
    pub pod_name: String,
    /// Its namespace.
    pub pod_namespace: String,
    /// Its uid.
    #[serde(rename = "PodUID")]
    pub pod_uid: String,
    /// The node.
    pub node: String,
}

/// What it answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ExtenderBindingResult {
    /// What went wrong.
    pub error: String,
}

/// Whom a node would lose.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Victims {
    /// The pods.
    pub pods: Vec<Pod>,
    /// How many of them a budget protects.
    #[serde(rename = "NumPDBViolations")]
    pub violations: i64,
}

/// A pod by its uid.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetaPod {
    /// The uid.
    #[serde(rename = "UID")]
    pub uid: String,
}

/// Whom a node would lose, by uid.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct MetaVictims {
    /// The pods.
    pub pods: Option<Vec<MetaPod>>,
    /// How many of them a budget protects.
    #[serde(rename = "NumPDBViolations")]
    pub violations: i64,
}

/// What is asked about making room.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderPreemptionArgs {
    /// The pod.
    pub pod: Pod,
    /// Victims by node, for an extender without a cache of its own.
    pub node_name_to_victims: Option<BTreeMap<String, Victims>>,
    /// The same by uid, for one with.
    pub node_name_to_meta_victims: Option<BTreeMap<String, MetaVictims>>,
}

/// What it answers: the nodes that remain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ExtenderPreemptionResult {
    /// Victims by node.
    pub node_name_to_meta_victims: Option<BTreeMap<String, MetaVictims>>,
}
