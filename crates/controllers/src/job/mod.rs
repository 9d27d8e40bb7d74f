//! Jobs: pods that run to an end, so many of them, counted exactly once.
//!
//! A pod of a Job carries a finalizer until its end has been counted in the Job's status, so none is lost however it
//! goes. [`plan`] decides; this module carries it out: first pods, then the status, then the finalizers.
//! Invariant: a finalizer is taken off a counted pod only after the status that counts it has been written.

mod failure;
mod index;
mod indexes;
mod plan;
mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::future::join_all;
use homeostat_sdk::{Context, Event, Key, Next, Operator, Result, Settings, Watches};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use serde_json::json;

use crate::common::claim::{self, Orphans};
use crate::common::{counting, pod_control};
pub(crate) use plan::outcome;
use plan::{Plan, State};

/// The finalizer of pods that are not counted yet.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The label with the name of a pod's Job.
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
/// `spec.managedBy` of Jobs that are this controller's.
const MANAGER: &str = "kubernetes.io/job-controller";

/// The controller.
#[derive(Default)]
pub(crate) struct Jobs {
    pods: Orphans<Pod>,
}

/// Whether a pod waits to be counted.
fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|f| f == TRACKING)
}

impl Operator for Jobs {
    type Resource = Job;
    type Owns = (Pod,);
    type Reads = ();

    fn name() -> &'static str {
        "job-controller"
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, job: &Job, cx: &Context<Self>) -> Result<Next> {
        let Some(spec) = &job.spec else { return Ok(Next::done()) };
        if spec.managed_by.as_deref().is_some_and(|m| m != MANAGER) {
            return Ok(Next::done());
        }
        let selector = claim::labels(spec.selector.as_ref())?;
        let pods = claim::claim(cx, &self.pods, &job.metadata, &selector, |_: &Pod| true).await?;
        let mut plan = plan::plan(&State { job, spec, pods: &pods, now: cx.clock().now() });
        let done = act(job, &mut plan, cx).await;
        for event in std::mem::take(&mut plan.events) {
            cx.event(event).await;
        }
        cx.status(&plan.status).await?;
        untrack(plan.counted.iter().map(|p| &**p), cx).await?;
        match done {
            Err(e) if pod_control::is_namespace_terminating(&e) => Ok(Next::done()),
            Err(e) => Err(e),
            Ok(()) => Ok(plan.again.map_or(Next::done(), Next::after)),
        }
    }

    /// A Job that is being deleted makes nothing more but still counts.
    async fn finalize(&self, job: &Job, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(job, cx).await
    }

    /// Nobody will count the pods of a Job that is gone.
    async fn absent(&self, key: &Key, cx: &Context<Self>) -> Result<Next> {
        let pods = cx.cache::<Pod, _>().in_namespace(key.namespace().unwrap_or_default());
        let left = pods.iter().filter(|p| is_tracked(p) && job_of(p).is_some_and(|j| j == key.name()));
        untrack(left.map(|p| &**p), cx).await?;
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.map::<Pod, _>(|pod, view| {
            let namespace = pod.metadata.namespace.as_deref();
            if claim::controller(&pod.metadata).is_some() {
                return Vec::new();
            }
            if is_tracked(pod) {
                return job_of(pod).map(|j| Key::new(namespace, j)).into_iter().collect();
            }
            let jobs = view.resources().in_namespace(namespace.unwrap_or_default());
            let selects = |j: &&Arc<Job>| {
                let selector = j.spec.as_ref().and_then(|s| s.selector.as_ref());
                selector
                    .is_some_and(|s| claim::labels(Some(s)).is_ok_and(|l| claim::matches(&l, &pod.metadata)))
            };
            jobs.iter().filter(selects).map(|j| Key::of(&**j)).collect()
        });
    }
}

/// The name of the Job that made a pod, whoever owns it now.
fn job_of(pod: &Pod) -> Option<&str> {
    let owner = claim::controller(&pod.metadata).filter(|o| o.kind == "Job").map(|o| o.name.as_str());
    owner.or_else(|| pod.metadata.labels.as_ref()?.get(NAME_LABEL).map(String::as_str))
}

/// Makes and deletes pods, and keeps the status' count of active ones right.
async fn act(job: &Job, plan: &mut Plan, cx: &Context<Jobs>) -> Result<()> {
    if job.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    // Pods that are taken back rather than ended don't count as failed.
    untrack(plan.take_back.iter().map(|p| &**p), cx).await?;
    let delete: Vec<Arc<Pod>> = plan.take_back.iter().chain(&plan.stop).cloned().collect();
    let count = i32::try_from(delete.len()).unwrap_or(i32::MAX);
    pod_control::delete(cx, delete).await?;
    let (made, result) = match &job.spec {
        Some(spec) => {
            let name = cx.name();
            let new = plan.create.iter().map(|new| template::pod(name, spec, *new)).collect();
            pod_control::create(cx, new).await
        }
        None => (0, Ok(())),
    };
    let active = plan.status.active.unwrap_or(0) - count + i32::try_from(made).unwrap_or(0);
    plan.status.active = Some(active).filter(|n| *n > 0);
    result
}

/// Takes the finalizer off pods.
async fn untrack(pods: impl Iterator<Item = &Pod>, cx: &Context<Jobs>) -> Result<()> {
    let one = |pod: &Pod| {
        let key = Key::of(pod);
        let patch = json!({"metadata": {"uid": pod.metadata.uid,
            "$deleteFromPrimitiveList/finalizers": [TRACKING]}});
        async move {
            match cx.patch::<Pod, _>(&key, &Patch::Strategic(patch)).await {
                Err(e) if !e.is_not_found() && !e.is_conflict() => Err(e),
                _ => Ok(()),
            }
        }
    };
    join_all(pods.filter(|p| is_tracked(p)).map(one)).await.into_iter().collect()
}

/// The reference's event about the end of a Job.
fn ended(complete: bool, reason: &str, message: &str) -> Event {
    if complete { Event::normal("Completed", "Job completed") } else { Event::warning(reason, message) }
}
