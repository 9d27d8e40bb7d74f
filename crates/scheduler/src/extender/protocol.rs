//! The JSON that extenders speak (`k8s.io/kube-scheduler/extender/v1`). Field names are Go's, in upper case; what comes
//! back is read as Go reads it (see `answer`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Serialize;
use serde_json::Value;

use super::answer::{Fields, Read};

/// What a filter and scores are asked with: a pod and nodes, or only the nodes' names.
#[derive(Clone, Debug, Default, Serialize)]
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
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeList {
    /// The list's metadata, which is empty.
    pub metadata: Value,
    /// The nodes.
    pub items: Vec<Node>,
}

/// What a filter answers.
#[derive(Clone, Debug, Default)]
pub struct ExtenderFilterResult {
    /// Nodes that do; of each only the name is looked at.
    pub nodes: Option<Vec<String>>,
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
#[derive(Clone, Debug, Default)]
pub struct HostPriority {
    /// The node.
    pub host: String,
    /// Its score.
    pub score: i64,
}

/// What an extender is asked to bind.
#[derive(Clone, Debug, Default, Serialize)]
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
#[derive(Clone, Debug, Default)]
pub struct ExtenderBindingResult {
    /// What went wrong.
    pub error: String,
}

/// Whom a node would lose.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Victims {
    /// The pods.
    pub pods: Vec<Pod>,
    /// How many of them a budget protects.
    #[serde(rename = "NumPDBViolations")]
    pub violations: i64,
}

/// A pod by its uid.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetaPod {
    /// The uid.
    #[serde(rename = "UID")]
    pub uid: String,
}

/// Whom a node would lose, by uid.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetaVictims {
    /// The pods.
    pub pods: Option<Vec<MetaPod>>,
    /// How many of them a budget protects.
    #[serde(rename = "NumPDBViolations")]
    pub violations: i64,
}

/// What is asked about making room.
#[derive(Clone, Debug, Default, Serialize)]
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
#[derive(Clone, Debug, Default)]
pub struct ExtenderPreemptionResult {
    /// Victims by node.
    pub node_name_to_meta_victims: Option<BTreeMap<String, MetaVictims>>,
}

/// A list of nodes, as far as it is looked at: their names.
#[derive(Default)]
struct Named(Vec<String>);

impl Read for Named {
    fn read(value: &Value) -> Result<Self, String> {
        let items: Vec<Item> = Fields::of(value)?.get("items")?;
        Ok(Self(items.into_iter().map(|item| item.metadata.name).collect()))
    }
}

#[derive(Default)]
struct Item {
    metadata: Meta,
}

impl Read for Item {
    fn read(value: &Value) -> Result<Self, String> {
        Ok(Self { metadata: Fields::of(value)?.get("metadata")? })
    }
}

#[derive(Default)]
struct Meta {
    name: String,
}

impl Read for Meta {
    fn read(value: &Value) -> Result<Self, String> {
        Ok(Self { name: Fields::of(value)?.get("name")? })
    }
}

impl Read for ExtenderFilterResult {
    fn read(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        Ok(Self {
            nodes: fields.get::<Option<Named>>("Nodes")?.map(|list| list.0),
            node_names: fields.get("NodeNames")?,
            failed_nodes: fields.get("FailedNodes")?,
            failed_and_unresolvable_nodes: fields.get("FailedAndUnresolvableNodes")?,
            error: fields.get("Error")?,
        })
    }
}

impl Read for HostPriority {
    fn read(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        Ok(Self { host: fields.get("Host")?, score: fields.get("Score")? })
    }
}

impl Read for ExtenderBindingResult {
    fn read(value: &Value) -> Result<Self, String> {
        Ok(Self { error: Fields::of(value)?.get("Error")? })
    }
}

impl Read for MetaPod {
    fn read(value: &Value) -> Result<Self, String> {
        Ok(Self { uid: Fields::of(value)?.get("UID")? })
    }
}

impl Read for MetaVictims {
    fn read(value: &Value) -> Result<Self, String> {
        let fields = Fields::of(value)?;
        Ok(Self { pods: fields.get("Pods")?, violations: fields.get("NumPDBViolations")? })
    }
}

impl Read for ExtenderPreemptionResult {
    fn read(value: &Value) -> Result<Self, String> {
        Ok(Self { node_name_to_meta_victims: Fields::of(value)?.get("NodeNameToMetaVictims")? })
    }
}
