//! StatefulSets: pods with stable names and claims, made, updated and removed in order.
//!
//! [`plan`] decides, from the set and its pods alone, what may happen now; this module carries it out. It never waits:
//! what has to wait comes back when a pod changes.
//! Invariant (OrderedReady): a pod is created only while all before it are ready, and deleted only as the last one.

mod claims;
mod identity;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use homeostat_sdk::{Context, Edits, Error, Event, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use kube::api::Patch;
use serde_json::json;

use crate::common::claim::{self, Orphans};
use crate::common::{history, pods};
use plan::{Action, Plan, State, Which};

/// The controller.
#[derive(Default)]
pub(crate) struct StatefulSets {
    pods: Orphans<Pod>,
    revisions: Orphans<ControllerRevision>,
}

impl StatefulSets {
    /// The set's own pods, adopted and released as needed.
    async fn pods(
        &self,
        set: &StatefulSet,
        spec: &StatefulSetSpec,
        cx: &Context<Self>,
    ) -> Result<Vec<Arc<Pod>>> {
        let selector = claim::labels(Some(&spec.selector))?;
        let name = cx.name();
        let of_set = |p: &Pod| identity::parent_and_ordinal(p).is_some_and(|(parent, _)| parent == name);
        claim::claim(cx, &self.pods, &set.metadata, &selector, of_set).await
    }
}

impl Operator for StatefulSets {
    type Resource = StatefulSet;
    type Owns = (Pod, ControllerRevision);
    type Reads = (Edits<PersistentVolumeClaim>,);

    fn name() -> &'static str {
        "statefulset-controller"
    }

    async fn reconcile(&self, set: &StatefulSet, cx: &Context<Self>) -> Result<Next> {
        let Some(spec) = &set.spec else { return Ok(Next::done()) };
        let selector = claim::labels(Some(&spec.selector))?;
        let pods = self.pods(set, spec, cx).await?;
        let revisions =
            claim::claim(cx, &self.revisions, &set.metadata, &selector, |_: &ControllerRevision| true)
                .await?;

        let collisions = set.status.as_ref().and_then(|s| s.collision_count).unwrap_or(0);
        let (revisions, collisions) = history::sync(
            cx,
            &set.metadata,
            &spec.template,
            revisions,
            collisions,
            history::REVISION_HASH_LABEL,
        )
        .await?;
        let Some(update) = revisions.last() else { return Ok(Next::done()) };
        let wanted = set.status.as_ref().and_then(|s| s.current_revision.as_deref());
        let current = revisions.iter().find(|r| r.metadata.name.as_deref() == wanted).unwrap_or(update);

        let stale: BTreeSet<i32> =
            pods_without_claims(set, &pods, |name| cx.read::<PersistentVolumeClaim, _>(name));
        let mut plan = plan::plan(&State {
            set,
            spec,
            pods: &pods,
            current: current.metadata.name.as_deref().unwrap_or_default(),
            update: update.metadata.name.as_deref().unwrap_or_default(),
            collisions,
            stale: &stale,
            now: cx.clock().now(),
        });
        // Before a pod goes for good its claims must be its own, or nobody would take them once it is gone.
        let kept = claims::keep_owners(set, &pods, cx).await;
        if kept.is_err() {
            plan.spare_condemned(spec);
        }
        let done = act(set, spec, &plan, [current, update], cx).await.and(kept);
        // Also where something failed: what is known should be told.
        cx.status(&plan.status).await?;
        done?;

        let mut live: BTreeSet<&str> = pods.iter().filter_map(|p| identity::revision(p)).collect();
        live.extend([current, update].into_iter().filter_map(|r| r.metadata.name.as_deref()));
        history::truncate(cx, &revisions, &live, spec.revision_history_limit.unwrap_or(10)).await?;
        Ok(plan.again.map_or(Next::done(), Next::after))
    }

    /// A set that is being deleted still tells how many pods it has, and makes nothing: neither pods nor the revisions
    /// that the garbage collector takes.
    async fn finalize(&self, set: &StatefulSet, cx: &Context<Self>) -> Result<Next> {
        let (Some(spec), Some(status)) = (&set.spec, &set.status) else { return Ok(Next::done()) };
        let pods = self.pods(set, spec, cx).await?;
        let plan = plan::plan(&State {
            set,
            spec,
            pods: &pods,
            current: status.current_revision.as_deref().unwrap_or_default(),
            update: status.update_revision.as_deref().unwrap_or_default(),
            collisions: status.collision_count.unwrap_or(0),
            stale: &BTreeSet::new(),
            now: cx.clock().now(),
        });
        cx.status(&plan.status).await?;
        Ok(plan.again.map_or(Next::done(), Next::after))
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // A pod without a controller concerns every set that could adopt it.
        watches.map::<Pod, _>(|pod, view| {
            let Some((parent, _)) = identity::parent_and_ordinal(pod) else { return Vec::new() };
            if claim::controller(&pod.metadata).is_some() {
                return Vec::new();
            }
            let key = Key::new(pod.metadata.namespace.as_deref(), parent);
            view.resources().get(&key).map(|_| key).into_iter().collect()
        });
    }
}

/// The ordinals whose claims still belong to an earlier pod of the same name, and so are about to be collected.
fn pods_without_claims(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    read: impl Fn(&str) -> Option<Arc<PersistentVolumeClaim>>,
) -> BTreeSet<i32> {
    let Some(spec) = &set.spec else { return BTreeSet::new() };
    let missing = |ordinal: &i32| {
        let name = identity::pod_name(set, *ordinal);
        !pods.iter().any(|p| p.metadata.name.as_deref() == Some(&name))
    };
    let stale = |ordinal: &i32| {
        let names = claims::names(set, spec, *ordinal);
        names
            .iter()
            .filter_map(|n| read(n))
            .any(|c| claims::belongs_to_pod(&c, &identity::pod_name(set, *ordinal)))
    };
    plan::ordinals(spec).filter(missing).filter(stale).collect()
}

/// Carries out a plan: in order where the set is ordered, side by side where it is parallel.
async fn act(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    plan: &Plan,
    [current, update]: [&Arc<ControllerRevision>; 2],
    cx: &Context<StatefulSets>,
) -> Result<()> {
    if plan.actions.is_empty() {
        return Ok(());
    }
    let update_template = history::template(update)?;
    let current_template =
        if Arc::ptr_eq(current, update) { update_template.clone() } else { history::template(current)? };
    let one = |action: Action| {
        let (set, current_template, update_template) = (set, &current_template, &update_template);
        async move {
            match action {
                Action::Create(ordinal, which) => {
                    let (template, revision) = match which {
                        Which::Current => (current_template, current),
                        Which::Update => (update_template, update),
                    };
                    create(set, spec, ordinal, template, revision, cx).await
                }
                Action::Claims(ordinal) => claims::create(set, spec, ordinal, cx).await,
                Action::Mend(pod) => mend(set, spec, &pod, cx).await,
                Action::Delete(pod) => delete(set, &pod, cx).await,
            }
        }
    };
    if plan.ordered {
        for action in plan.actions.iter().cloned() {
            one(action).await?;
        }
        return Ok(());
    }
    let mut rest = plan.actions.as_slice();
    let mut batch = 1;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(batch.min(rest.len()));
        join_all(now.iter().cloned().map(one)).await.into_iter().collect::<Result<()>>()?;
        rest = later;
        batch = (2 * batch).min(500);
    }
    Ok(())
}

async fn create(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    ordinal: i32,
    template: &PodTemplateSpec,
    revision: &ControllerRevision,
    cx: &Context<StatefulSets>,
) -> Result<()> {
    let pod =
        identity::pod(set, spec, ordinal, template, revision.metadata.name.as_deref().unwrap_or_default());
    let name = identity::pod_name(set, ordinal);
    let made = match claims::create(set, spec, ordinal, cx).await {
        Ok(()) => cx.create::<Pod, _>(pod).await.map(|_| ()),
        Err(e) => Err(e),
    };
    match made {
        Err(e) if e.is_already_exists() => {
            // Not ours, or not seen yet; it may be neither next time.
            Err(e)
        }
        made => tell("create", "Create", set, &name, made, cx).await,
    }
}

async fn delete(set: &StatefulSet, pod: &Pod, cx: &Context<StatefulSets>) -> Result<()> {
    let deleted = match cx.delete::<Pod, _>(pod).await {
        // A pod of this name that came later is none of this decision.
        Err(e) if e.is_conflict() => Ok(()),
        other => other.map(|_| ()),
    };
    let name = pod.metadata.name.clone().unwrap_or_default();
    tell("delete", "Delete", set, &name, deleted, cx).await
}

/// Gives a pod the labels and volumes that its place in the set demands.
async fn mend(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: &Pod,
    cx: &Context<StatefulSets>,
) -> Result<()> {
    let Some((_, ordinal)) = identity::parent_and_ordinal(pod) else { return Ok(()) };
    let labels = json!(identity::labels(set, ordinal));
    let patch = Patch::Merge(json!({"metadata": {"uid": pod.metadata.uid, "labels": labels}}));
    let name = pod.metadata.name.clone().unwrap_or_default();
    let mended = match claims::create(set, spec, ordinal, cx).await {
        Ok(()) => cx.patch::<Pod, _>(&Key::of(pod), &patch).await.map(|_| ()),
        Err(e) => Err(e),
    };
    tell("update", "Update", set, &name, mended, cx).await
}

/// The reference's events about what was done with a pod.
async fn tell(
    verb: &str,
    title: &str,
    set: &StatefulSet,
    pod: &str,
    done: Result<(), Error>,
    cx: &Context<StatefulSets>,
) -> Result<()> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let event = match &done {
        Ok(()) => Event::normal(
            format!("Successful{title}"),
            format!("{verb} Pod {pod} in StatefulSet {name} successful"),
        ),
        Err(e) => Event::warning(
            format!("Failed{title}"),
            format!("{verb} Pod {pod} in StatefulSet {name} failed error: {e}"),
        ),
    };
    cx.event(event).await;
    done
}

/// Whether a pod runs and is ready.
fn is_running_and_ready(pod: &Pod) -> bool {
    pods::phase(pod) == "Running" && pods::is_ready(pod)
}
