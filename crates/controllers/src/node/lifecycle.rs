//! Judges nodes by their leases and conditions, and keeps the taints that follow.
//!
//! A node whose kubelet is silent for longer than the grace period becomes `Unknown`. Everything else it says of
//! itself stands. Taints of others are left alone.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Edits, Event, Index, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::marking;
use super::silence::Silence;
use super::zones::{Leave, Zones};
use crate::common::pods;

/// A kubelet that was never heard of may be silent for this long at least (the reference's default).
const STARTUP_GRACE: Duration = Duration::from_secs(60);
const LEASES: &str = "kube-node-lease";

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions, the status at which they taint, and the taint.
const BY_CONDITION: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
];
/// Conditions that a silent kubelet can no longer vouch for.
const VOUCHED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// The controller.
pub(crate) struct NodeLifecycle {
    /// A kubelet that was heard of may be silent for this long.
    grace: Duration,
    silence: Arc<Silence>,
    zones: Arc<Zones>,
    by_node: OnceLock<Index<Pod>>,
}

impl NodeLifecycle {
    pub(crate) fn new(grace: Duration) -> Self {
        Self { grace, silence: Arc::default(), zones: Arc::default(), by_node: OnceLock::new() }
    }
}

impl NodeLifecycle {
    /// Whether pods may be driven out of the node now, where it isn't ready. It takes its zone's turn only where that
    /// is news.
    fn may_drive_out(&self, node: &Node, now: Instant) -> Leave {
        if self.zones.is_cut_off() {
            return Leave::CutOff;
        }
        let driven = |t: &Taint| t.effect == "NoExecute" && (t.key == NOT_READY || t.key == UNREACHABLE);
        let taints = node.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default();
        let unready = matches!(status_of(node, "Ready"), Some("False" | "Unknown"));
        if !unready || taints.iter().any(driven) { Leave::Now } else { self.zones.leave(node, now) }
    }
}

impl Operator for NodeLifecycle {
    type Resource = Node;
    type Owns = ();
    type Reads = (Lease, Edits<Pod>);

    fn name() -> &'static str {
        "node-lifecycle-controller"
    }

    async fn reconcile(&self, node: &Node, cx: &Context<Self>) -> Result<Next> {
        let (now, instant) = (cx.clock().now(), Instant::now());
        if self.silence.is_new(node) {
            let text = format!("Node {0} event: Registered Node {0} in Controller", cx.name());
            cx.event(Event::normal("RegisteredNode", text)).await;
        }
        self.silence.posted(node, instant);
        // Without a dependency: a renewal in time is no news.
        if let Some(lease) = cx.cache::<Lease, _>().get(&Key::namespaced(LEASES, cx.name())) {
            self.silence.renewed(cx.name(), &lease, instant);
        }
        let silent_in = silent_in(node, self.silence.of(cx.name(), instant), self.grace, now);
        if silent_in.is_zero() && status_of(node, "Ready") != Some("Unknown") {
            let patch = json!({"metadata": {"resourceVersion": node.metadata.resource_version},
                "status": {"conditions": silenced(node, now)}});
            cx.writer().patch_status::<Node, _>(cx.key(), &Patch::Strategic(patch)).await?;
            let text = format!("Node {} status is now: NodeNotReady", cx.name());
            cx.event(Event::normal("NodeNotReady", text)).await;
            // The change comes back and brings the taints.
            return Ok(Next::done());
        }
        let leave = self.may_drive_out(node, instant);
        if let Some(taints) = tainted(node, leave == Leave::Now, now) {
            let taints = if taints.is_empty() { Value::Null } else { json!(taints) };
            let patch = json!({"metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": taints}});
            cx.patch_resource(&Patch::Merge(patch)).await?;
        }
        if let Some(ready) = condition(node, "Ready").filter(|c| c.status == "Unknown") {
            let by_node = self.by_node.get_or_init(|| pods::by_node(&cx.cache::<Pod, _>()));
            marking::mark(ready, &by_node.get(cx.name()), cx).await?;
        }
        // One that is silent comes back when it speaks, which changes the node.
        let silent_in = Some(silent_in).filter(|d| !d.is_zero());
        let turn = if let Leave::After(left) = leave { Some(left) } else { None };
        Ok([silent_in, turn].into_iter().flatten().min().map_or(Next::done(), Next::after))
    }

    async fn absent(&self, key: &Key, cx: &Context<Self>) -> Result<Next> {
        if let Some(metadata) = self.silence.forget(key.name()) {
            let text = format!("Node {0} event: Removing Node {0} from Controller", key.name());
            let node = Node { metadata, ..Node::default() };
            cx.event_about::<Node>(&node, Event::normal("RemovingNode", text)).await;
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // Signs of life are noted when they come, and bring nothing back.
        let silence = self.silence.clone();
        watches.changes::<Lease, _>(move |change, _| {
            if let Some(lease) =
                change.new.as_ref().filter(|l| l.metadata.namespace.as_deref() == Some(LEASES))
            {
                silence.renewed(lease.metadata.name.as_deref().unwrap_or_default(), lease, Instant::now());
            }
            Vec::new()
        });
        let (silence, zones) = (self.silence.clone(), self.zones.clone());
        watches.changes::<Node, _>(move |change, view| {
            let Some(key) = change.key() else { return Vec::new() };
            let now = Instant::now();
            let news = zones.note(key.name(), change.new.as_deref(), now);
            if !news.all {
                return news.nodes.into_iter().map(Key::cluster).collect();
            }
            if !zones.is_cut_off() {
                silence.begin_anew(now);
            }
            view.resources().keys()
        });
        let silence = self.silence.clone();
        watches.filter(move |change| {
            if let Some(node) = &change.new {
                silence.posted(node, Instant::now());
            }
            change.listed
                || change.differs(|n| {
                    let all = BY_CONDITION.map(|(kind, _, _)| status_of(n, kind).map(str::to_owned));
                    (all, n.spec.clone(), n.metadata.deletion_timestamp.clone())
                })
        });
    }
}

pub(super) fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|c| c.type_ == kind)
}

pub(super) fn status_of<'a>(node: &'a Node, kind: &str) -> Option<&'a str> {
    condition(node, kind).map(|c| c.status.as_str())
}

/// How long until the node counts as silent, of which nothing new was heard for `silence`; zero where it does.
fn silent_in(node: &Node, silence: Option<Duration>, grace: Duration, now: Timestamp) -> Duration {
    if condition(node, "Ready").is_some() {
        return grace.saturating_sub(silence.unwrap_or_default());
    }
    // A kubelet that never said how its node is may still be starting.
    let created = node.metadata.creation_timestamp.as_ref().map(|t| t.0);
    let age = created.map(|t| Duration::try_from(now.duration_since(t)).unwrap_or_default());
    grace.max(STARTUP_GRACE).saturating_sub([age, silence].into_iter().flatten().min().unwrap_or_default())
}

/// The conditions of a silent node.
fn silenced(node: &Node, now: Timestamp) -> Vec<Value> {
    let now = homeostat_model::clock::seconds(now);
    let one = |kind: &&str| {
        let old = condition(node, kind);
        let since = old.filter(|c| c.status == "Unknown").and_then(|c| c.last_transition_time.clone());
        let since = since.map_or_else(|| json!(now), |t| json!(t));
        let (reason, message) = match old {
            Some(_) => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
            None => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
        };
        let mut new = json!({"type": kind, "status": "Unknown", "reason": reason, "message": message,
            "lastTransitionTime": since});
        let heartbeat =
            old.and_then(|c| c.last_heartbeat_time.clone()).or(node.metadata.creation_timestamp.clone());
        new["lastHeartbeatTime"] = json!(heartbeat);
        new
    };
    VOUCHED.iter().map(one).collect()
}

/// The taints that the node should have, where they differ from those it has. `drive_out`: also those that drive pods
/// out of a node that isn't ready.
fn tainted(node: &Node, drive_out: bool, now: Timestamp) -> Option<Vec<Taint>> {
    let spec = node.spec.as_ref();
    let has = spec.and_then(|s| s.taints.clone()).unwrap_or_default();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    for (kind, status, taint) in BY_CONDITION {
        if status_of(node, kind) == Some(status) {
            wanted.push((taint, "NoSchedule"));
            if kind == "Ready" && drive_out {
                wanted.push((taint, "NoExecute"));
            }
        }
    }
    if spec.and_then(|s| s.unschedulable) == Some(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    // A node of which nothing is known yet keeps the taint that it was made with.
    let unknown = condition(node, "Ready").is_none();
    let ours = |t: &Taint| {
        let key = t.key.as_str();
        let known = key == UNSCHEDULABLE || BY_CONDITION.iter().any(|(_, _, taint)| *taint == key);
        let effect =
            t.effect == "NoSchedule" || (t.effect == "NoExecute" && (key == NOT_READY || key == UNREACHABLE));
        known && effect && !(unknown && key == NOT_READY)
    };
    let is_wanted = |t: &Taint| wanted.contains(&(t.key.as_str(), t.effect.as_str()));
    let mut taints: Vec<Taint> = has.iter().filter(|t| !ours(t) || is_wanted(t)).cloned().collect();
    for (key, effect) in wanted {
        if !taints.iter().any(|t| t.key == key && t.effect == effect) {
            let time_added = Timestamp::from_second(now.as_second()).ok().map(Time);
            taints.push(Taint { key: key.into(), effect: effect.into(), value: None, time_added });
        }
    }
    (taints != has).then_some(taints)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;
    const GRACE: Duration = Duration::from_secs(50);

    fn at(offset: i64) -> Timestamp {
        Timestamp::from_second(NOW + offset).unwrap()
    }

    fn node(ready: Option<&str>, extra: Value) -> Node {
        let conditions: Vec<Value> = ready
            .map(|s| json!({"type": "Ready", "status": s, "lastHeartbeatTime": at(-100).to_string()}))
            .into_iter()
            .collect();
        serde_json::from_value(json!({"metadata": {"name": "n", "creationTimestamp": at(-500).to_string()},
            "spec": extra, "status": {"conditions": conditions}}))
        .unwrap()
    }

    #[test]
    fn who_says_nothing_new_is_silent() {
        let check = |ready, silence: Option<u64>, want: u64| {
            let got = silent_in(&node(ready, json!({})), silence.map(Duration::from_secs), GRACE, at(0));
            assert_eq!(got.as_secs(), want, "{ready:?} {silence:?}");
        };
        check(Some("True"), Some(10), 40);
        check(Some("True"), Some(50), 0);
        // Whatever its heartbeat says: it was just seen for the first time.
        check(Some("True"), None, 50);
        check(Some("Unknown"), Some(10), 40);
        check(None, None, 0);
        check(None, Some(20), 40);
        let mut young = node(None, json!({}));
        young.metadata.creation_timestamp = Some(Time(at(-20)));
        assert_eq!(silent_in(&young, None, GRACE, at(0)).as_secs(), 40);
    }

    #[track_caller]
    fn check(ready: Option<&str>, spec: Value, want: Option<&[&str]>) {
        let got = tainted(&node(ready, spec), true, at(0));
        let got = got.map(|l| l.iter().map(|t| format!("{}:{}", t.key, t.effect)).collect::<Vec<_>>());
        assert_eq!(got, want.map(|w| w.iter().map(|t| (*t).to_owned()).collect()), "{ready:?}");
    }

    #[test]
    fn conditions_become_taints() {
        let not_ready = || json!({"taints": [{"key": NOT_READY, "effect": "NoSchedule"}]});
        check(Some("True"), json!({}), None);
        check(Some("True"), not_ready(), Some(&[]));
        check(None, not_ready(), None);
        check(
            Some("False"),
            not_ready(),
            Some(&["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]),
        );
        check(
            Some("Unknown"),
            json!({"taints": [{"key": "mine", "effect": "NoExecute"}]}),
            Some(&[
                "mine:NoExecute",
                "node.kubernetes.io/unreachable:NoSchedule",
                "node.kubernetes.io/unreachable:NoExecute",
            ]),
        );
        let unreachable = |effect: &str| json!({"key": UNREACHABLE, "effect": effect});
        let both = json!({"taints": [unreachable("NoSchedule"), unreachable("NoExecute")]});
        let held = tainted(&node(Some("Unknown"), both), false, at(0)).unwrap();
        assert_eq!(held.iter().map(|t| &*t.effect).collect::<Vec<_>>(), ["NoSchedule"]);
        let cordoned = "node.kubernetes.io/unschedulable:NoSchedule";
        check(Some("True"), json!({"unschedulable": true}), Some(&[cordoned]));
        check(Some("True"), json!({"taints": [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}]}), Some(&[]));
    }

    #[test]
    fn a_silent_node_vouches_for_nothing() {
        let all = silenced(&node(Some("True"), json!({})), at(0));
        let told: Vec<_> =
            all.iter().map(|c| (c["type"].as_str().unwrap(), c["reason"].as_str().unwrap())).collect();
        assert_eq!(told[0], ("Ready", "NodeStatusUnknown"));
        assert_eq!(told[3], ("PIDPressure", "NodeStatusNeverUpdated"));
    }
}
