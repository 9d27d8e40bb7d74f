//! ReplicaSets and ReplicationControllers: so many pods of a template, no matter which.
//!
//! Both kinds are one controller over [`Replicated`]. [`plan`] counts and chooses; this module carries it out.
//! Invariant: a pod that this process made counts from the moment its creation returned, so none is made twice.

mod kinds;
mod plan;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::sync::Arc;

use homeostat_sdk::{Context, Key, Next, Operator, Result, Settings, Watches};
use k8s_openapi::api::core::v1::Pod;

use crate::common::claim::{self, Orphans};
use crate::common::{counting, pod_control, pods, template};
use kinds::Replicated;
use plan::{Failure, State};

/// The controller of a kind.
pub(crate) struct Replicas<K> {
    orphans: Orphans<Pod>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Default for Replicas<K> {
    fn default() -> Self {
        Self { orphans: Orphans::default(), kind: PhantomData }
    }
}

impl<K: Replicated> Operator for Replicas<K> {
    type Resource = K;
    type Owns = (Pod,);
    type Reads = ();

    fn name() -> &'static str {
        K::CONTROLLER
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, set: &K, cx: &Context<Self>) -> Result<Next> {
        let selector = set.selector()?;
        let all = claim::claim(cx, &self.orphans, set.meta(), &selector, |p: &Pod| !pods::is_over(p)).await?;
        let (active, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| pods::is_active(p));
        let now = cx.clock().now();
        let state = State {
            replicas: set.replicas(),
            min_ready: set.min_ready(),
            generation: set.meta().generation,
            template_labels: set.template().and_then(|t| t.metadata.as_ref()?.labels.as_ref()),
            active: &active,
            terminating: others.iter().filter(|p| pods::is_terminating(p) && !pods::is_over(p)).count(),
            conditions: set.conditions(),
            now,
        };
        let change = state.change();
        let mut failure = None;
        if set.meta().deletion_timestamp.is_none() {
            if change < 0 {
                let victims = state.victims(&self.siblings(set, cx));
                failure =
                    pod_control::delete(cx, victims).await.err().map(|e| Failure::new("FailedDelete", e));
            } else if let Some(template) = set.template().filter(|_| change > 0) {
                let name = cx.name().to_owned();
                let count = usize::try_from(change).unwrap_or(0).min(pod_control::BURST);
                let new = std::iter::repeat_with(|| template::pod(template, &name)).take(count).collect();
                failure = pod_control::create(cx, new).await.1.err().map(|e| Failure::new("FailedCreate", e));
            }
        }
        cx.status(state.status::<K>(failure.as_ref())).await?;
        match failure {
            Some(f) if !pod_control::is_namespace_terminating(&f.error) => Err(f.error),
            Some(_) => Ok(Next::done()),
            None => {
                let again = pods::next_available(active.iter().map(|p| &**p), set.min_ready(), now);
                Ok(again.map_or(Next::done(), Next::after))
            }
        }
    }

    /// A set that is being deleted still tells how many pods it has.
    async fn finalize(&self, set: &K, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(set, cx).await
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // A pod without a controller concerns every set that selects it.
        watches.map::<Pod, _>(|pod, view| {
            if claim::controller(&pod.metadata).is_some() {
                return Vec::new();
            }
            let sets = view.resources().in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
            let selects = |s: &&Arc<K>| s.selector().is_ok_and(|l| claim::matches(&l, &pod.metadata));
            sets.iter().filter(selects).map(|s| Key::of(&**s)).collect()
        });
    }
}

impl<K: Replicated> Replicas<K> {
    /// The active pods of all sets with the same controller: those of one Deployment.
    fn siblings(&self, set: &K, cx: &Context<Self>) -> Vec<Arc<Pod>> {
        let cache = cx.cache::<Pod, _>();
        let sets = match claim::controller(set.meta()) {
            Some(owner) => cx.resources().owned_by(&owner.uid),
            None => cx.resources().get(cx.key()).into_iter().collect(),
        };
        let uids = sets.iter().filter_map(|s| s.meta().uid.as_deref());
        uids.flat_map(|uid| cache.owned_by(uid)).filter(|p| pods::is_active(p)).collect()
    }
}
