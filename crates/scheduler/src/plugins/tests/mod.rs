//! The default profile as tables: a pod, nodes and pods in; a node, or the text of the condition, out.

mod basic;
mod claims;
mod groups;
mod hints;
mod preemption;
mod properties;
mod rules;
mod volumes;

use std::sync::Arc;

use homeostat_model::{Entropy, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use crate::Registry;
use crate::config::Configuration;
use crate::framework::{Candidate, Cycle, CycleState, Framework, pick};
use crate::snapshot::{PodInfo, Snapshot};

/// The default profile, or that of a configuration.
pub(super) fn profile(configuration: Option<&str>) -> Arc<Framework> {
    let configuration =
        configuration.map_or_else(Configuration::default, |c| Configuration::parse(c).unwrap());
    configuration.frameworks(&Registry::default(), &Entropy::seeded(1)).unwrap().remove(0)
}

/// A node with room for ten pods, and what `change` says.
pub(super) fn node(name: &str, change: Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    merge(&mut node, &change);
    serde_json::from_value(node).unwrap()
}

pub(super) fn zoned(name: &str, zone: &str) -> Node {
    node(name, json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}}))
}

/// A pod with one container, and what `change` says.
pub(super) fn pod(name: &str, change: Value) -> Pod {
    let mut pod = json!({"metadata": {"name": name, "namespace": "default", "uid": format!("u-{name}")},
        "spec": {"containers": [{"name": "c"}]}});
    merge(&mut pod, &change);
    serde_json::from_value(pod).unwrap()
}

pub(super) fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (k, v) in from {
                merge(into.entry(k).or_insert(Value::Null), v);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

pub(super) fn both(mut a: Value, b: Value) -> Value {
    merge(&mut a, &b);
    a
}

/// A container's requests.
pub(super) fn asks(requests: Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

pub(super) fn cpu(amount: &str) -> Value {
    asks(json!({"cpu": amount}))
}

pub(super) fn on(node: &str, what: Value) -> Value {
    both(what, json!({"spec": {"nodeName": node}}))
}

pub(super) fn labelled(key: &str, value: &str) -> Value {
    json!({"metadata": {"labels": {key: value}}})
}

/// What a cycle makes of a pod.
pub(super) struct Outcome {
    pub(super) node: Result<String, String>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) state: CycleState,
}

impl Outcome {
    /// The node that room would be made on, with the victims.
    pub(super) fn room(&self) -> Option<(String, Vec<String>)> {
        let chosen = pick(self.candidates.clone())?;
        Some((chosen.node.to_string(), chosen.victims.iter().map(|v| v.key.name().to_owned()).collect()))
    }
}

/// A cycle for a pod.
pub(super) fn cycle(snapshot: &Snapshot, framework: &Framework, pod: &PodInfo) -> Outcome {
    let cx = Cycle { snapshot, waiting: &[], now: Timestamp::UNIX_EPOCH };
    let (mut state, mut start) = (CycleState::default(), 0);
    match framework.schedule(&cx, &mut state, pod, &mut start, &Entropy::seeded(1)).unwrap() {
        Ok(node) => {
            framework.reserve(&cx, &mut state, pod, &node).unwrap();
            Outcome { node: Ok(node.name.to_string()), candidates: Vec::new(), state }
        }
        Err(mut diagnosis) => {
            let proposal = framework.post_filter(&cx, &state, pod, &mut diagnosis);
            Outcome { node: Err(diagnosis.text()), candidates: proposal.candidates, state }
        }
    }
}

/// As a condition says it: what comes before what is said about making room.
pub(super) fn refusal(text: &str) -> &str {
    text.split(" no new claims to deallocate, ").next().unwrap_or_default()
}

#[track_caller]
pub(super) fn check_in(snapshot: &mut Snapshot, new: Value, want: Result<&str, &str>) {
    let info = snapshot.read(Arc::new(pod("new", new)));
    let got = cycle(snapshot, &profile(None), &info).node;
    let got = got.as_deref().map_err(|e| refusal(e));
    assert_eq!(got, want);
}

#[track_caller]
pub(super) fn check(nodes: &[Node], pods: &[Pod], new: Value, want: Result<&str, &str>) {
    let mut snapshot = Snapshot::new(nodes.to_vec(), pods.to_vec());
    check_in(&mut snapshot, new, want);
}
