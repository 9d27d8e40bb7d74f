//! Whether a kubelet takes a pod that is bound to its node, whoever bound it. Pure.
//!
//! A scheduler has looked at the same before, but not for a pod whose `nodeName` was fixed, nor at what has changed
//! since. A pod that isn't taken has failed. Source: kubelet's `lifecycle/predicate.go`, the scheduler's
//! `AdmissionCheck`.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_sdk::placement;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::behavior::nodes::NodeState;
use crate::machines::{Amounts, Holding, requests};
use crate::pressure;

/// Why a pod isn't taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Refusal {
    fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }

    fn predicate(name: &str, why: &str) -> Self {
        Self::new(name, format!("Predicate {name} failed: {why}"))
    }
}

/// A port of the node that a pod takes: address, protocol, number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPort(Arc<str>, Arc<str>, i32);

impl HostPort {
    const ANY: &str = "0.0.0.0";

    /// Whether both can't be there at once.
    fn conflicts(&self, other: &Self) -> bool {
        let anywhere = |p: &Self| &*p.0 == Self::ANY;
        (&self.1, self.2) == (&other.1, other.2) && (self.0 == other.0 || anywhere(self) || anywhere(other))
    }
}

/// The node's ports that a pod takes while it runs.
pub(crate) fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|c| c.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|c| c.ports.iter().flatten());
    let or = |text: &Option<String>, usual: &str| -> Arc<str> {
        text.as_deref().filter(|t| !t.is_empty()).unwrap_or(usual).into()
    };
    let taken = ports.filter_map(|p| {
        let number = p.host_port.filter(|n| *n > 0)?;
        Some(HostPort(or(&p.host_ip, HostPort::ANY), or(&p.protocol, "TCP"), number))
    });
    taken.collect()
}

/// Whether a kubelet has taken the pod before: then it stays, though the node may since have changed.
fn ran(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|s| s.start_time.is_some())
}

/// Whether what is known of the node keeps a pod away: worth a look at the node as it is this moment.
pub(crate) fn is_kept_away(pod: &Pod, node: &Node) -> bool {
    is_elsewhere(pod, node) || is_driven_out(pod, node)
}

fn is_elsewhere(pod: &Pod, node: &Node) -> bool {
    !ran(pod) && pod.spec.as_ref().is_some_and(|spec| !placement::fits(spec, node))
}

fn is_driven_out(pod: &Pod, node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default();
    let tolerations = pod.spec.as_ref().and_then(|s| s.tolerations.as_deref()).unwrap_or_default();
    !ran(pod) && placement::untolerated(taints, tolerations, &["NoExecute"]).is_some()
}

/// The first reason not to take a pod; `None` where it is taken.
pub(crate) fn refuse(
    pod: &Pod,
    node: &Node,
    holding: &Holding,
    allocatable: &BTreeMap<String, Quantity>,
    state: &NodeState,
) -> Option<Refusal> {
    let spec = pod.spec.as_ref()?;
    // One that ran there already is evicted in its turn.
    if !ran(pod)
        && let Some(why) = pressure::refuse(pod, state)
    {
        return Some(Refusal::new(pressure::REASON, why));
    }
    let os = pod.metadata.labels.as_ref().and_then(|l| l.get("kubernetes.io/os"));
    if os.is_some_and(|os| os != "linux") {
        let text = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
        return Some(Refusal::new("PodOSSelectorNodeLabelDoesNotMatch", text));
    }
    if spec.os.as_ref().is_some_and(|os| os.name != "linux") {
        let text = "Failed to admit pod as the OS field doesn't match node OS";
        return Some(Refusal::new("PodOSNotSupported", text));
    }
    if let Err(lacks) = holding.fits(&requests(pod), &Amounts::new(), allocatable) {
        return Some(Refusal::new(&format!("OutOf{}", lacks.resource), lacks.text()));
    }
    if is_elsewhere(pod, node) {
        let why = "node(s) didn't match Pod's node affinity/selector";
        return Some(Refusal::predicate("NodeAffinity", why));
    }
    if host_ports(pod).iter().any(|p| holding.ports.iter().any(|taken| taken.conflicts(p))) {
        let why = "node(s) didn't have free ports for the requested pod ports";
        return Some(Refusal::predicate("NodePorts", why));
    }
    if is_driven_out(pod, node) {
        let why = "node(s) had taints that the pod didn't tolerate";
        return Some(Refusal::predicate("TaintToleration", why));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Why a node (`zone=a`, tainted, port 80 of one address taken) doesn't take a pod.
    #[track_caller]
    fn check(pod: Value, want: Option<&str>) {
        let mut object = json!({"spec": {"containers": []}});
        json_patch::merge(&mut object, &pod);
        let node = json!({"metadata": {"name": "n", "labels": {"zone": "a"}}, "spec": {"taints": [
            {"key": "sick", "effect": "NoExecute"}, {"key": "full", "effect": "NoSchedule"}]}});
        let node = serde_json::from_value(node).unwrap();
        let other = json!({"spec": {"containers": [{"name": "c", "ports": [
            {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}]}]}});
        let mut holding = Holding::default();
        holding.ports = host_ports(&serde_json::from_value(other).unwrap());
        let allocatable = [("pods".to_owned(), Quantity("2".to_owned()))].into();
        let got = refuse(
            &serde_json::from_value(object).unwrap(),
            &node,
            &holding,
            &allocatable,
            &NodeState::default(),
        );
        assert_eq!(got.map(|r| format!("{}: {}", r.reason, r.message)).as_deref(), want, "{pod}");
    }

    #[test]
    fn a_kubelet_takes_what_belongs_there() {
        let healthy = json!([{"key": "sick", "operator": "Exists"}]);
        let port = |ip: &str, number: i32, protocol: &str| {
            json!({"spec": {"tolerations": healthy, "containers": [{"name": "c", "ports": [
                {"containerPort": 1, "hostPort": number, "hostIP": ip, "protocol": protocol}]}]}})
        };
        let taken = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
        check(json!({"spec": {"tolerations": healthy}}), None);
        check(port("10.0.0.1", 80, "TCP"), Some(taken));
        check(port("", 80, "TCP"), Some(taken));
        check(port("10.0.0.2", 80, "TCP"), None);
        check(port("10.0.0.1", 80, "UDP"), None);
        check(port("10.0.0.1", 81, "TCP"), None);
        let want = "TaintToleration: Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
        check(json!({}), Some(want));
        let elsewhere = json!({"tolerations": healthy, "nodeSelector": {"zone": "b"}});
        let want =
            "NodeAffinity: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
        check(json!({"spec": elsewhere}), Some(want));
        // It has run there already.
        check(json!({"spec": elsewhere, "status": {"startTime": "2026-01-01T00:00:00Z"}}), None);
        let want = "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS";
        check(json!({"spec": {"os": {"name": "windows"}}}), Some(want));
        let cpu = json!([{"name": "c", "resources": {"requests": {"cpu": "1"}}}]);
        let want = "OutOfcpu: Node didn't have enough resource: cpu, requested: 1000, used: 0, capacity: 0";
        check(json!({"spec": {"containers": cpu}}), Some(want));
    }

    #[test]
    fn who_ran_there_is_not_refused_for_what_the_node_is_short_of() {
        let short = crate::behavior::Condition {
            kind: "DiskPressure".to_owned(),
            status: "True".to_owned(),
            ..Default::default()
        };
        let state = NodeState { conditions: vec![short], ..NodeState::default() };
        let (node, holding) = (Node::default(), Holding::default());
        let allocatable = [("pods".to_owned(), Quantity("2".to_owned()))].into();
        for (status, refused) in [(json!({}), true), (json!({"startTime": "2026-01-01T00:00:00Z"}), false)] {
            let pod = serde_json::from_value(json!({"spec": {"containers": []}, "status": status})).unwrap();
            assert_eq!(refuse(&pod, &node, &holding, &allocatable, &state).is_some(), refused);
        }
    }
}
