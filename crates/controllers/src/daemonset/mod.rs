//! DaemonSets: one pod on every node that may run it.
//!
//! [`plan`] pairs nodes with pods; this module carries it out. Pods are bound by the scheduler, to the one node that
//! their affinity names.
//! Invariant: without surge, a node never has two pods of a set that are not on their way out for longer than a look.

mod plan;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use homeostat_sdk::{Context, Event, Key, Next, Operator, Result, Settings, Watches};
use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};

use crate::common::backoff::Backoffs;
use crate::common::claim::{self, Orphans};
use crate::common::{counting, history, pod_control, pods};
use plan::State;

/// How soon a pod that ended again on the same node is replaced again.
const FIRST_BURIAL: Duration = Duration::from_secs(1);
const LAST_BURIAL: Duration = Duration::from_secs(15 * 60);

/// The controller.
pub(crate) struct DaemonSets {
    pods: Orphans<Pod>,
    revisions: Orphans<ControllerRevision>,
    burials: Backoffs,
}

impl Default for DaemonSets {
    fn default() -> Self {
        let burials = Backoffs::new(FIRST_BURIAL, LAST_BURIAL);
        Self { pods: Orphans::default(), revisions: Orphans::default(), burials }
    }
}

impl DaemonSets {
    /// Deletes a pod that ended; one that failed not while another of this template failed on its node just before:
    /// then, in how long.
    async fn bury(
        &self,
        set: &DaemonSet,
        pod: &Arc<Pod>,
        failed: bool,
        cx: &Context<Self>,
    ) -> Result<Option<Duration>> {
        let node = plan::target(pod).unwrap_or_default();
        let name = Key::of(&**pod);
        let event = if failed {
            // A template that was put right doesn't wait for what became of the one before.
            let (uid, generation) = (set.metadata.uid.as_deref(), set.metadata.generation);
            let key = format!("{}/{}/{node}", uid.unwrap_or_default(), generation.unwrap_or(0));
            let wait = self.burials.try_now(&key, cx.clock().now());
            if !wait.is_zero() {
                return Ok(Some(wait));
            }
            let text = format!("Found failed daemon pod {name} on node {node}, will try to kill it");
            Event::warning("FailedDaemonPod", text)
        } else {
            let text = format!("Found succeeded daemon pod {name} on node {node}, will try to delete it");
            Event::normal("SucceededDaemonPod", text)
        };
        cx.event(event).await;
        pod_control::delete_one(cx, pod).await?;
        Ok(None)
    }
}

impl Operator for DaemonSets {
    type Resource = DaemonSet;
    type Owns = (Pod, ControllerRevision);
    type Reads = (Node,);

    fn name() -> &'static str {
        "daemonset-controller"
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, set: &DaemonSet, cx: &Context<Self>) -> Result<Next> {
        let Some(spec) = &set.spec else { return Ok(Next::done()) };
        let selector = claim::labels(Some(&spec.selector))?;
        let own = claim::claim(cx, &self.pods, &set.metadata, &selector, |_: &Pod| true).await?;
        let revisions =
            claim::claim(cx, &self.revisions, &set.metadata, &selector, |_: &ControllerRevision| true)
                .await?;
        let collisions = set.status.as_ref().and_then(|s| s.collision_count).unwrap_or(0);
        let (revisions, collisions) =
            history::sync(cx, &set.metadata, &spec.template, revisions, collisions, history::HASH_LABEL)
                .await?;
        let hash =
            revisions.last().and_then(|r| r.metadata.labels.as_ref()?.get(history::HASH_LABEL).cloned());
        let hash = hash.unwrap_or_default();

        let nodes = cx.cache::<Node, _>().list();
        let now = cx.clock().now();
        let state = State { set, spec, nodes: &nodes, pods: &own, hash: &hash, collisions, now };
        let mut plan = plan::plan(&state);
        for pod in &plan.ended {
            let wait = self.bury(set, pod, pods::phase(pod) == "Failed", cx).await?;
            plan.again = [plan.again, wait].into_iter().flatten().min();
        }
        let new = plan.create.iter().map(|n| template::pod(set, &spec.template, n, &hash)).collect();
        let mut done = pod_control::create(cx, new).await.1;
        if done.is_ok() {
            done = pod_control::delete(cx, plan.delete).await;
        }
        cx.status(&plan.status).await?;
        match done {
            Err(e) if pod_control::is_namespace_terminating(&e) => return Ok(Next::done()),
            other => other?,
        }
        let hashes: BTreeSet<&str> = own.iter().filter_map(|p| plan::hash(p)).collect();
        let is_live = |r: &&Arc<ControllerRevision>| {
            let label = r.metadata.labels.as_ref().and_then(|l| l.get(history::HASH_LABEL));
            label.is_some_and(|h| hashes.contains(h.as_str()) || *h == hash)
        };
        let live = revisions.iter().filter(is_live).filter_map(|r| r.metadata.name.as_deref()).collect();
        history::truncate(cx, &revisions, &live, spec.revision_history_limit.unwrap_or(10)).await?;
        Ok(plan.again.map_or(Next::done(), Next::after))
    }

    /// A set that is being deleted does nothing more: what the garbage collector takes is not made again.
    async fn finalize(&self, _: &DaemonSet, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.map::<Pod, _>(|pod, view| {
            if claim::controller(&pod.metadata).is_some() {
                return Vec::new();
            }
            let sets = view.resources().in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
            let selects = |s: &&Arc<DaemonSet>| {
                let selector = claim::labels(s.spec.as_ref().map(|s| &s.selector));
                selector.is_ok_and(|l| claim::matches(&l, &pod.metadata))
            };
            sets.iter().filter(selects).map(|s| Key::of(&**s)).collect()
        });
        // What of a node decides whether it should run a pod; not its heartbeats.
        watches.changes::<Node, _>(|change, view| {
            if change.differs(|n| (n.metadata.labels.clone(), n.spec.clone())) {
                view.resources().keys()
            } else {
                Vec::new()
            }
        });
    }
}
