//! Deletes pods from nodes with `NoExecute` taints that they don't tolerate, or don't tolerate any longer.
//!
//! When a pod must go follows from the taints' times and the pod's tolerations. A taint that doesn't say since when it
//! is there counts from when it was first seen; forgetting that (a restart) lets a pod stay longer, nothing worse.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Edits, Event, Index, Key, Next, Operator, Result, Watches, placement};
use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Patch;
use serde_json::json;

use crate::common::pods;

const EFFECT: &str = "NoExecute";

/// When taints were first seen, by key and value.
type Seen = BTreeMap<(String, Option<String>), Timestamp>;

/// Pods that are to be deleted later.
type Waiting = BTreeMap<Key, Arc<Pod>>;

/// The controller.
#[derive(Default)]
pub(crate) struct TaintEviction {
    by_node: OnceLock<Index<Pod>>,
    /// By node.
    seen: Mutex<BTreeMap<String, Seen>>,
    /// The pods of each node whose time there runs out.
    waiting: Mutex<BTreeMap<String, Waiting>>,
}

impl TaintEviction {
    /// The node's taints that drive pods out, each with its time.
    fn dated(&self, node: &Node, now: Timestamp) -> Vec<Taint> {
        let name = node.metadata.name.clone().unwrap_or_default();
        let mut taints = drivers(node);
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.remove(&name).unwrap_or_default();
        let mut seen = Seen::new();
        for taint in taints.iter_mut().filter(|t| t.time_added.is_none()) {
            let id = (taint.key.clone(), taint.value.clone());
            let since = before.get(&id).copied().unwrap_or(now);
            taint.time_added = Some(Time(since));
            seen.insert(id, since);
        }
        if !seen.is_empty() {
            all.insert(name, seen);
        }
        taints
    }

    /// Notes which pods wait for their deletion; returns those that waited before and don't any more.
    fn wait(&self, node: &str, now: &Waiting) -> Waiting {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = all.remove(node).unwrap_or_default();
        before.retain(|key, _| !now.contains_key(key));
        if !now.is_empty() {
            all.insert(node.to_owned(), now.clone());
        }
        before
    }

    /// Tells of the pods that may stay after all.
    async fn cancel(&self, pods: Waiting, cx: &Context<Self>) {
        for (key, was) in pods {
            let there = cx.cache::<Pod, _>().get(&key);
            let stays = |p: &Arc<Pod>| p.metadata.uid == was.metadata.uid && !pods::is_terminating(p);
            if let Some(pod) = there.filter(stays) {
                let text = format!("Cancelling deletion of Pod {key}");
                cx.event_about::<Pod>(&pod, Event::normal("TaintManagerEviction", text)).await;
            }
        }
    }
}

impl Operator for TaintEviction {
    type Resource = Node;
    type Owns = ();
    type Reads = (Edits<Pod>,);

    fn name() -> &'static str {
        "taint-eviction-controller"
    }

    async fn reconcile(&self, node: &Node, cx: &Context<Self>) -> Result<Next> {
        let now = cx.clock().now();
        let taints = self.dated(node, now);
        if taints.is_empty() {
            self.cancel(self.wait(cx.name(), &Waiting::new()), cx).await;
            return Ok(Next::done());
        }
        let index = self.by_node.get_or_init(|| pods::by_node(&cx.cache::<Pod, _>()));
        let mut next = None;
        let (mut waiting, mut going) = (Waiting::new(), Vec::new());
        for pod in index.get(cx.name()).iter().filter(|p| !pods::is_terminating(p)) {
            let tolerations = pod.spec.as_ref().and_then(|s| s.tolerations.as_deref()).unwrap_or_default();
            match stays(&taints, tolerations, now) {
                None => {}
                Some(Duration::ZERO) => going.push(pod.clone()),
                Some(left) => {
                    waiting.insert(Key::of(&**pod), pod.clone());
                    next = Some(next.map_or(left, |n: Duration| n.min(left)));
                }
            }
        }
        let mut cancelled = self.wait(cx.name(), &waiting);
        cancelled.retain(|key, _| !going.iter().any(|p| Key::of(&**p) == *key));
        self.cancel(cancelled, cx).await;
        for pod in &going {
            evict(pod, cx).await?;
        }
        Ok(next.map_or(Next::done(), Next::after))
    }

    async fn absent(&self, key: &Key, _: &Context<Self>) -> Result<Next> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(key.name());
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(key.name());
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.filter(|change| change.differs(|n| n.spec.as_ref().and_then(|s| s.taints.clone())));
        // A pod that comes to a tainted node.
        watches.changes::<Pod, _>(|change, view| {
            let bound = change.differs(|p| pods::node(p).map(str::to_owned));
            let pod = change.new.as_ref().filter(|_| bound);
            let key = pod.and_then(|p| pods::node(p)).map(|n| Key::new(None, n));
            key.filter(|k| view.resources().get(k).is_some_and(|n| !drivers(&n).is_empty()))
                .into_iter()
                .collect()
        });
    }
}

fn drivers(node: &Node) -> Vec<Taint> {
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default();
    taints.iter().filter(|t| t.effect == EFFECT).cloned().collect()
}

/// How long a pod with these tolerations stays: zero where it goes now, `None` for ever.
fn stays(taints: &[Taint], tolerations: &[Toleration], now: Timestamp) -> Option<Duration> {
    let each = taints.iter().map(|taint| {
        let mut covering = tolerations.iter().filter(|t| placement::tolerates(t, taint)).peekable();
        if covering.peek().is_none() {
            return Some(Duration::ZERO);
        }
        // The shortest of the limits counts; no limit is for ever.
        let seconds = covering.filter_map(|t| t.toleration_seconds).min()?;
        let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let since = taint.time_added.as_ref().map_or(now, |t| t.0);
        Some(limit.saturating_sub(Duration::try_from(now.duration_since(since)).unwrap_or_default()))
    });
    each.flatten().min()
}

async fn evict(pod: &Arc<Pod>, cx: &Context<TaintEviction>) -> Result<()> {
    let text = format!("Marking for deletion Pod {}", Key::of(&**pod));
    cx.event_about::<Pod>(pod, Event::normal("TaintManagerEviction", text)).await;
    if pods::condition(pod, "DisruptionTarget").is_none_or(|c| c.status != "True") {
        let now = homeostat_model::clock::seconds(cx.clock().now());
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint", "lastTransitionTime": now});
        let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}});
        match cx.patch_status::<Pod, _>(&Key::of(&**pod), &Patch::Strategic(patch)).await {
            Err(e) if e.is_conflict() || e.is_not_found() => return Ok(()),
            other => drop(other?),
        }
    }
    match cx.delete::<Pod, _>(&**pod).await {
        Err(e) if !e.is_conflict() => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(tolerations: Value, want: Option<u64>) {
        let at = |s: i64| Timestamp::from_second(1_000_000 + s).unwrap();
        let taints: Vec<Taint> = serde_json::from_value(json!([
            {"key": "node.kubernetes.io/unreachable", "effect": EFFECT, "timeAdded": at(0).to_string()}]))
        .unwrap();
        let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
        assert_eq!(stays(&taints, &tolerations, at(100)).map(|d| d.as_secs()), want);
    }

    #[test]
    fn a_taint_without_a_time_counts_from_when_it_was_seen() {
        let at = |s: i64| Timestamp::from_second(1_000_000 + s).unwrap();
        let node = |taints: Value| {
            serde_json::from_value::<Node>(json!({"metadata": {"name": "n"}, "spec": {"taints": taints}}))
                .unwrap()
        };
        let since = |eviction: &TaintEviction, taints: Value, now: i64| {
            let dated = eviction.dated(&node(taints), at(now));
            dated.first().map(|t| t.time_added.as_ref().unwrap().0.as_second() - at(0).as_second())
        };
        let eviction = TaintEviction::default();
        let taint = || json!([{"key": "k", "effect": EFFECT}]);
        assert_eq!(since(&eviction, taint(), 0), Some(0));
        assert_eq!(since(&eviction, taint(), 30), Some(0));
        assert_eq!(since(&eviction, json!([]), 40), None);
        assert_eq!(since(&eviction, taint(), 50), Some(50));
    }

    #[test]
    fn tolerations_buy_time() {
        let toleration = |seconds: Value| {
            json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": EFFECT,
                "tolerationSeconds": seconds})
        };
        check(json!([]), Some(0));
        check(json!([toleration(json!(300))]), Some(200));
        check(json!([toleration(json!(50))]), Some(0));
        check(json!([toleration(Value::Null)]), None);
        check(json!([toleration(Value::Null), toleration(json!(300))]), Some(200));
    }
}
