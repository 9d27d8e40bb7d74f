//! Pods that nobody else will take away: those of nodes that are gone or out of service, those on their way out without
//! ever having had a node, and those that ended where there are too many of them.
//!
//! A node that vanishes may come back, so its pods wait; whether it is gone is asked of the server before they go.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Index, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::pods;

/// How long a node may be missing before its pods go (the reference's quarantine).
const QUARANTINE: Duration = Duration::from_secs(40);
/// How long it is known that a node is missing: its pods are gone long before.
const REMEMBERED: Duration = Duration::from_secs(600);
/// How often the pods that ended are counted at most (the reference's period).
const PERIOD: Duration = Duration::from_secs(20);
/// The taint by which people say that a machine is off, so that its pods run nowhere.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
const ENDED: &str = "ended";

/// The controller.
pub(crate) struct PodGc {
    /// So many pods that ended may stay; zero: all of them.
    threshold: usize,
    /// Since when a node is missing.
    missing: Mutex<BTreeMap<String, Timestamp>>,
    ended: OnceLock<Index<Pod>>,
    count: Mutex<Count>,
}

/// When the pods that ended were counted, and who will count them next.
#[derive(Default)]
struct Count {
    last: Option<Instant>,
    next: Option<Key>,
}

impl PodGc {
    pub(crate) fn new(threshold: usize) -> Self {
        Self { threshold, missing: Mutex::default(), ended: OnceLock::new(), count: Mutex::default() }
    }

    /// A pod on a node that isn't there: how long it waits, then it goes.
    async fn orphaned(&self, pod: &Pod, node: &str, cx: &Context<Self>) -> Result<Next> {
        let now = cx.clock().now();
        let passed = |since| Duration::try_from(now.duration_since(since)).unwrap_or_default();
        let since = {
            let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            if !missing.contains_key(node) {
                // Those whose pods are gone by now are not asked for again.
                missing.retain(|_, since| passed(*since) < REMEMBERED);
            }
            *missing.entry(node.to_owned()).or_insert(now)
        };
        let left = QUARANTINE.saturating_sub(passed(since));
        if !left.is_zero() {
            return Ok(Next::after(left));
        }
        if cx.writer().get::<Node>(&Key::cluster(node)).await?.is_some() {
            return Ok(Next::done());
        }
        let now = homeostat_model::clock::seconds(now);
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "lastTransitionTime": now});
        fail(pod, Some(condition), cx).await
    }

    /// Deletes pods that ended where there are too many; soon, where they were counted a moment ago.
    async fn thin_out(&self, cx: &Context<Self>) -> Result<Next> {
        if self.threshold == 0 {
            return Ok(Next::done());
        }
        {
            let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
            let left = count.last.map_or(Duration::ZERO, |at| PERIOD.saturating_sub(at.elapsed()));
            if !left.is_zero() {
                let mine = count.next.get_or_insert_with(|| cx.key().clone()) == cx.key();
                return Ok(if mine { Next::after(left) } else { Next::done() });
            }
            *count = Count { last: Some(Instant::now()), next: None };
        }
        let index = self.ended.get_or_init(|| {
            cx.cache::<Pod, _>().index(|p| if pods::is_over(p) { vec![ENDED.to_owned()] } else { Vec::new() })
        });
        // One that can't be deleted keeps none of the others.
        let mut done = Ok(Next::done());
        for pod in surplus(index.get(ENDED), self.threshold) {
            if let Err(e) = delete(&pod, cx).await {
                done = Err(e);
            }
        }
        done
    }
}

impl Operator for PodGc {
    type Resource = Pod;
    type Owns = ();
    type Reads = (Node,);

    fn name() -> &'static str {
        "pod-garbage-collector-controller"
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        if let Some(name) = pods::node(pod) {
            let Some(node) = cx.cache::<Node, _>().get(&Key::cluster(name)) else {
                return self.orphaned(pod, name, cx).await;
            };
            self.missing.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
            if pods::is_terminating(pod) && is_out_of_service(&node) {
                return fail(pod, None, cx).await;
            }
        } else if pods::is_terminating(pod) {
            return remove(pod, cx).await;
        }
        if pods::is_over(pod) { self.thin_out(cx).await } else { Ok(Next::done()) }
    }

    async fn finalize(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(pod, cx).await
    }

    /// The pod that was to bring back the next count is gone itself.
    async fn absent(&self, key: &Key, cx: &Context<Self>) -> Result<Next> {
        let mine = self.count.lock().unwrap_or_else(PoisonError::into_inner).next.as_ref() == Some(key);
        if mine { self.thin_out(cx).await } else { Ok(Next::done()) }
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.filter(|change| {
            change.new.is_some()
                && change.differs(|p| {
                    (pods::node(p).map(str::to_owned), pods::is_terminating(p), pods::is_over(p))
                })
        });
        let index: OnceLock<Index<Pod>> = OnceLock::new();
        watches.changes::<Node, _>(move |change, view| {
            let Some(node) = change.object() else { return Vec::new() };
            let gone = change.new.is_none();
            let off = is_out_of_service(node) && change.differs(is_out_of_service);
            if !gone && !off {
                return Vec::new();
            }
            let index = index.get_or_init(|| pods::by_node(&view.resources()));
            let pods = index.get(node.metadata.name.as_deref().unwrap_or_default());
            pods.iter().filter(|p| gone || pods::is_terminating(p)).map(|p| Key::of(&**p)).collect()
        });
    }
}

/// Whether nothing runs on the node any more: it isn't ready, and people say so.
fn is_out_of_service(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|s| s.conditions.iter().flatten());
    let ready = conditions.filter(|c| c.type_ == "Ready").any(|c| c.status == "True");
    let mut taints = node.spec.iter().flat_map(|s| s.taints.iter().flatten());
    !ready && taints.any(|t| t.key == OUT_OF_SERVICE)
}

/// Those of the pods that ended which are too many: the evicted ones first, then the oldest.
fn surplus(mut ended: Vec<Arc<Pod>>, threshold: usize) -> Vec<Arc<Pod>> {
    let evicted = |p: &Pod| {
        pods::phase(p) == "Failed" && p.status.as_ref().and_then(|s| s.reason.as_deref()) == Some("Evicted")
    };
    let many = ended.len().saturating_sub(threshold);
    if many > 0 {
        ended.sort_by_cached_key(|p| {
            let created = p.metadata.creation_timestamp.as_ref().map(|t| t.0);
            (Reverse(evicted(p)), created, p.metadata.name.clone())
        });
    }
    ended.truncate(many);
    ended
}

/// Says that a pod failed, where it didn't end, and removes it.
async fn fail(pod: &Pod, condition: Option<Value>, cx: &Context<PodGc>) -> Result<Next> {
    if !pods::is_over(pod) {
        let conditions: Vec<Value> = condition.into_iter().collect();
        let patch = json!({"metadata": {"uid": pod.metadata.uid},
            "status": {"phase": "Failed", "conditions": conditions}});
        cx.writer().patch_status::<Pod, _>(cx.key(), &Patch::Strategic(patch)).await?;
    }
    remove(pod, cx).await
}

/// Removes a pod at once: there is no kubelet to wait for.
async fn remove(pod: &Pod, cx: &Context<PodGc>) -> Result<Next> {
    delete(pod, cx).await?;
    Ok(Next::done())
}

async fn delete(pod: &Pod, cx: &Context<PodGc>) -> Result<()> {
    let preconditions = Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default() }.grace_period(0);
    match cx.writer().delete::<Pod>(&Key::of(pod), &params).await {
        Err(e) if !e.is_conflict() && !e.is_not_found() => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicted_pods_go_first_then_the_oldest() {
        let pod = |name: &str, created: &str, reason: &str| {
            let value = json!({"metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:{created}Z")},
                "status": {"phase": "Failed", "reason": reason}});
            Arc::new(serde_json::from_value::<Pod>(value).unwrap())
        };
        let ended = || {
            vec![pod("b", "02", ""), pod("a", "01", ""), pod("d", "04", "Evicted"), pod("c", "03", "Evicted")]
        };
        let check = |threshold, want: &[&str]| {
            let gone = surplus(ended(), threshold);
            assert_eq!(gone.iter().filter_map(|p| p.metadata.name.as_deref()).collect::<Vec<_>>(), want);
        };
        check(4, &[]);
        check(3, &["c"]);
        check(1, &["c", "d", "a"]);
    }
}
