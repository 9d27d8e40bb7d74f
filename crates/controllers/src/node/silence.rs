//! Since when nothing new was heard of each node, by this process's own time.
//!
//! What a kubelet writes into its lease and its `Ready` condition is a sign of life when it changes, whatever time it
//! names: a machine whose clock is behind is not silent, and one that claims to be heard in 2099 is.
//! Forgetting it (a restart) gives every node its time anew, nothing worse.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use tokio::time::Instant;

use super::lifecycle::condition;

/// Heartbeat, transition and status of a `Ready` condition.
type Posted = (Option<Time>, Option<Time>, String);

#[derive(Default)]
struct Heard {
    renewed: Option<MicroTime>,
    posted: Option<Posted>,
    /// When one of these changed; `None` where nothing was heard of the node but that it is there.
    at: Option<Instant>,
    /// What the node is called, once its coming was told.
    told: Option<ObjectMeta>,
}

/// What was heard of the nodes that there are.
#[derive(Default)]
pub(super) struct Silence(Mutex<BTreeMap<String, Heard>>);

impl Silence {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node is there, with this status.
    pub(super) fn posted(&self, node: &Node, now: Instant) {
        let Some(name) = &node.metadata.name else { return };
        let mut all = self.lock();
        let heard = all.entry(name.clone()).or_default();
        // What the controller wrote itself is no sign of life; that there is a condition at all once was one.
        let Some(ready) = condition(node, "Ready") else { return };
        let posted =
            (ready.last_heartbeat_time.clone(), ready.last_transition_time.clone(), ready.status.clone());
        if heard.at.is_none() || (ready.status != "Unknown" && heard.posted.as_ref() != Some(&posted)) {
            heard.at = Some(now);
        }
        if ready.status != "Unknown" {
            heard.posted = Some(posted);
        }
    }

    /// The node's lease is this one. A lease without a node says nothing.
    pub(super) fn renewed(&self, name: &str, lease: &Lease, now: Instant) {
        let renewed = lease.spec.as_ref().and_then(|s| s.renew_time.clone());
        if let Some(heard) = self.lock().get_mut(name)
            && renewed.is_some()
            && heard.renewed != renewed
        {
            heard.renewed = renewed;
            heard.at = Some(now);
        }
    }

    /// How long nothing new was heard; `None` where nothing ever was.
    pub(super) fn of(&self, name: &str, now: Instant) -> Option<Duration> {
        self.lock().get(name).and_then(|h| h.at).map(|at| now.saturating_duration_since(at))
    }

    /// The control plane was cut off: everybody has his time anew.
    pub(super) fn begin_anew(&self, now: Instant) {
        for heard in self.lock().values_mut() {
            heard.at = heard.at.map(|_| now);
        }
    }

    /// Whether the node's coming is news.
    pub(super) fn is_new(&self, node: &Node) -> bool {
        let Some(name) = &node.metadata.name else { return false };
        let mut all = self.lock();
        let heard = all.entry(name.clone()).or_default();
        let (name, uid) = (Some(name.clone()), node.metadata.uid.clone());
        heard.told.replace(ObjectMeta { name, uid, ..ObjectMeta::default() }).is_none()
    }

    /// The node is no more; what it was called, where its coming was told.
    pub(super) fn forget(&self, name: &str) -> Option<ObjectMeta> {
        self.lock().remove(name).and_then(|h| h.told)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(ready: Option<(&str, &str)>) -> Node {
        let condition =
            |(status, heartbeat)| json!({"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat});
        let conditions: Vec<_> = ready.map(condition).into_iter().collect();
        serde_json::from_value(json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}}))
            .unwrap()
    }

    fn lease(time: &str) -> Lease {
        serde_json::from_value(json!({"spec": {"renewTime": time}})).unwrap()
    }

    const BEHIND: &str = "1999-01-01T00:00:00.000000Z";
    const AHEAD: &str = "2099-01-01T00:00:00.000000Z";

    #[test]
    fn only_changes_are_signs_of_life() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let silence = Silence::default();
        let of = |seconds| silence.of("n", at(seconds)).map(|d| d.as_secs());
        silence.renewed("n", &lease(BEHIND), at(0));
        assert_eq!(of(0), None, "a lease without a node");
        silence.posted(&node(None), at(0));
        assert_eq!(of(5), None, "nothing was said");
        silence.posted(&node(Some(("True", BEHIND))), at(10));
        assert_eq!(of(15), Some(5));
        silence.posted(&node(Some(("True", BEHIND))), at(20));
        assert_eq!(of(20), Some(10), "the same again");
        // Whatever time it names.
        silence.renewed("n", &lease(AHEAD), at(30));
        assert_eq!(of(30), Some(0));
        silence.renewed("n", &lease(AHEAD), at(40));
        assert_eq!(of(40), Some(10));
        silence.renewed("n", &lease(BEHIND), at(50));
        assert_eq!(of(50), Some(0));
        // The controller's own word.
        silence.posted(&node(Some(("Unknown", BEHIND))), at(60));
        assert_eq!(of(60), Some(10));
        silence.posted(&node(Some(("True", AHEAD))), at(70));
        assert_eq!(of(70), Some(0));
    }

    #[test]
    fn coming_and_going_are_told_once() {
        let silence = Silence::default();
        silence.posted(&node(None), Instant::now());
        assert!(silence.is_new(&node(None)));
        assert!(!silence.is_new(&node(None)));
        assert_eq!(silence.forget("n").unwrap().name.as_deref(), Some("n"));
        assert_eq!(silence.forget("n"), None);
    }
}
