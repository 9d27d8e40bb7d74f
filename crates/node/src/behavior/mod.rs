//! What simulated nodes and containers do: the `Behavior` resource, and what follows from it.
//!
//! A Behavior selects containers or nodes and says how they behave; where several match, each part (`pull`, `start`,
//! `stages` …) comes from the one with the highest priority that has it, and of these from the first by name. What no
//! Behavior says, annotations of the pod or the built-in default say.
//! Invariant: all of it is a function of the objects, the moment and one seed; jitter too.

pub(crate) mod annotations;
pub mod choice;
mod glob;
pub mod nodes;
pub mod script;
pub mod span;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use choice::{Act, Choice, Subject};
pub use span::Span;

/// How simulated containers or nodes behave.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "simulation.homeostat.dev",
    version = "v1alpha1",
    kind = "Behavior",
    doc = "How simulated containers or nodes behave.",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name":"Priority","type":"integer","jsonPath":".spec.priority"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase", default)]
pub struct BehaviorSpec {
    /// Of behaviors that match the same, the one with the highest priority holds, then the first by name.
    pub priority: i32,
    /// What it is about. Everything that is given must match; nothing given matches everything.
    pub selector: Selector,
    /// What the selected containers do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerBehavior>,
    /// What the selected nodes do. Of the selector only `nodes`, `labels` and `percent` count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeBehavior>,
}

/// What a Behavior is about. Patterns are shell patterns: `*` and `?`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    /// Patterns of images; one must match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub images: Vec<String>,
    /// Patterns of container names; one must match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub containers: Vec<String>,
    /// Patterns of namespaces; one must match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub namespaces: Vec<String>,
    /// Patterns of node names; one must match.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub nodes: Vec<String>,
    /// A label selector as kubectl takes it, such as `app=web,tier!=db`, of pods (of nodes, for `node`).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub labels: String,
    /// Annotations of the pod: by name, patterns of their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Only runs of a container that come after so many restarts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Restarts>,
    /// Only so many of a hundred, chosen by chance: pods, or nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percent: Option<u32>,
}

/// A range of restart counts; both ends belong to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Restarts {
    /// At least so many.
    #[schemars(range(min = 0))]
    pub from: i32,
    /// At most so many; without it any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub to: Option<i32>,
}

/// What a container does. Parts that are missing come from other behaviors or the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerBehavior {
    /// How its image comes to the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
    /// How it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// How a run goes on: one stage after the other, the last for ever unless it says how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// How it takes the signal to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What it uses, in stages that don't say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// How an image comes to the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pull {
    /// How long a pull takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Up to so much longer, by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// The image's size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub size: Option<i64>,
    /// Why pulls fail: the image is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub error: Option<String>,
    /// How many pulls fail before one succeeds; without it all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failures: Option<i32>,
}

/// How a container starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Start {
    /// From a pulled image to a running container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Up to so much longer, by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Why the runtime can't start it; it ends with code 128, reason StartError.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub error: Option<String>,
}

/// How a run goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Run {
    /// The stages, in order.
    #[schemars(length(max = 64))]
    pub stages: Vec<Stage>,
    /// After the last stage the first comes again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// A stage of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Stage {
    /// How long it lasts; without it for ever, or not at all where it has an `exit`.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Up to so much longer, by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// What a startup probe finds.
    pub started: bool,
    /// What a readiness probe finds. Without such a probe the container counts as ready all the same.
    pub ready: bool,
    /// What a liveness probe finds.
    pub live: bool,
    /// What it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The container ends when the stage does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

impl Default for Stage {
    fn default() -> Self {
        Self { lasts: None, jitter: None, started: true, ready: true, live: true, usage: None, exit: None }
    }
}

/// How a container ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Exit {
    /// The exit code.
    #[schemars(range(min = 0, max = 255))]
    pub code: i32,
    /// The reason, such as OOMKilled. Without it Completed or Error, by the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The termination message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
}

/// How a container takes the signal to stop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Stop {
    /// From the signal to the exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Up to so much longer, by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// The exit code.
    #[schemars(range(min = 0, max = 255))]
    pub code: i32,
    /// It takes no notice and is killed (137) at the end of the grace period.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore: bool,
}

/// What a container uses of the node, as metrics.k8s.io tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Processor time, such as `250m`. Without it a tenth of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub cpu: Option<String>,
    /// Memory, such as `64Mi`. Without it half of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub memory: Option<String>,
}

/// What a node does, from when it and the behavior are there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeBehavior {
    /// The stages, in order; the last for ever unless it says how long, and after that all is well.
    #[schemars(length(max = 64))]
    pub stages: Vec<NodeStage>,
    /// After the last stage the first comes again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// A stage of a node's life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStage {
    /// How long it lasts; without it for ever.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Span>,
    /// Up to so much longer, by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Span>,
    /// Nothing is heard of it: no lease, no status, neither its own nor its pods'. Its containers go on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// It reboots: as `lost`, and when the stage is over its containers start anew.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reboot: bool,
    /// Conditions that it reports, such as Ready or MemoryPressure.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// Devices that are unhealthy, by resource, such as `nvidia.com/gpu: 2`: no longer allocatable.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unhealthy: BTreeMap<String, i64>,
}

/// A condition of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// The reason.
    pub reason: String,
    /// The message.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// The definition of the `Behavior` resource.
pub fn crd() -> CustomResourceDefinition {
    Behavior::crd()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_has_a_structural_schema_without_references() {
        let text = serde_json::to_string(&crd()).unwrap();
        assert!(!text.contains("$ref") && text.contains("\"for\""), "{text}");
        assert_eq!(crd().metadata.name.as_deref(), Some("behaviors.simulation.homeostat.dev"));
    }
}
