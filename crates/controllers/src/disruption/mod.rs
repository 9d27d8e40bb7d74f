//! The status of PodDisruptionBudgets: how many pods may be evicted now.
//!
//! [`plan`] counts; [`stale`] takes back announcements that came to nothing. The eviction subresource of the API server takes from what is allowed and notes the pod; this
//! controller forgets the note when the pod is gone. Its writes are conditional, so that they never undo an eviction.

mod plan;
pub(crate) mod stale;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use homeostat_sdk::selector::Labels;
use homeostat_sdk::{Context, Error, Event, Key, Next, Object, Operator, Result, Sees, Settings, Watches};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::Patch;
use serde_json::json;

use crate::common::served::Discovery;
use crate::common::{claim, counting, pods, scale};
use plan::State;

/// The controller.
#[derive(Default)]
pub(crate) struct Disruption {
    discovery: Mutex<Option<Arc<Discovery>>>,
}

impl Operator for Disruption {
    type Resource = PodDisruptionBudget;
    type Owns = ();
    type Reads = (Pod, Deployment, ReplicaSet, StatefulSet, ReplicationController);

    fn name() -> &'static str {
        "disruption-controller"
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, budget: &PodDisruptionBudget, cx: &Context<Self>) -> Result<Next> {
        let Some(spec) = &budget.spec else { return Ok(Next::done()) };
        let Some(selector) = &spec.selector else { return Ok(Next::done()) };
        // An empty selector selects all pods of the namespace.
        let selector = claim::labels(Some(selector))?;
        let mut pods = cx.cache::<Pod, _>().in_namespace(cx.namespace().unwrap_or_default());
        pods.retain(|p| selects(&selector, p) && !pods::is_over(p));
        // A number of pods that must stay needs no number of pods that there should be.
        let counts =
            matches!((&spec.max_unavailable, &spec.min_available), (None, Some(IntOrString::Int(_))));
        let expected = if counts { Ok((0, 0)) } else { self.expected(&pods, cx).await };
        let (expected, unmanaged) = match expected {
            Ok(found) => found,
            Err(why) => return self.unknown(budget, why, cx).await,
        };
        if unmanaged > 0 {
            let text = format!(
                "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the \
                 status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account \
                 for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
                claim::text(spec.selector.as_ref())
            );
            cx.event(Event::warning("UnmanagedPods", text)).await;
        }
        let plan = plan::plan(&State { budget, spec, pods: &pods, expected, now: cx.clock().now() });
        for event in plan.events {
            cx.event(event).await;
        }
        if let Some(status) = plan.status {
            let patch =
                json!({"metadata": {"resourceVersion": budget.metadata.resource_version}, "status": status});
            cx.writer().patch_status::<PodDisruptionBudget, _>(cx.key(), &Patch::Merge(patch)).await?;
        }
        Ok(plan.again.map_or(Next::done(), Next::after))
    }

    /// One that is being deleted protects to the end.
    async fn finalize(&self, budget: &PodDisruptionBudget, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(budget, cx).await
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.changes::<Pod, _>(|change, view| {
            let matters = |p: &Pod| {
                (p.metadata.labels.clone(), pods::is_ready(p), pods::is_terminating(p), pods::is_over(p))
            };
            let Some(pod) = change.object().filter(|_| change.differs(matters)) else { return Vec::new() };
            let all = view.resources().in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
            let hit = |b: &&Arc<PodDisruptionBudget>| {
                let selector = b.spec.as_ref().and_then(|s| s.selector.as_ref());
                let selector = selector.and_then(|s| claim::labels(Some(s)).ok());
                selector.is_some_and(|l| change.each().any(|p| selects(&l, p)))
            };
            all.iter().filter(hit).map(|b| Key::of(&**b)).collect()
        });
        // What pods are expected is their controllers' size.
        sized::<Deployment, _>(watches, |d| d.spec.as_ref().and_then(|s| s.replicas));
        sized::<ReplicaSet, _>(watches, |s| s.spec.as_ref().and_then(|s| s.replicas));
        sized::<StatefulSet, _>(watches, |s| s.spec.as_ref().and_then(|s| s.replicas));
        sized::<ReplicationController, _>(watches, |c| c.spec.as_ref().and_then(|s| s.replicas));
    }
}

fn selects(selector: &Labels, pod: &Pod) -> bool {
    selector.matches(|k| pod.metadata.labels.as_ref().and_then(|l| l.get(k)).map(String::as_str))
}

/// A changed size brings back the budgets of its namespace.
fn sized<T: Object, P>(watches: &mut Watches<Disruption>, size: fn(&T) -> Option<i32>)
where
    Disruption: Sees<T, P>,
{
    watches.changes::<T, P>(move |change, view| {
        let object = change.object().filter(|_| change.differs(size));
        let namespace = object.and_then(|o| o.meta().namespace.as_deref());
        let budgets = namespace.map(|n| view.resources().in_namespace(n)).unwrap_or_default();
        budgets.iter().map(|b| Key::of(&**b)).collect()
    });
}

impl Disruption {
    /// The size of all the controllers of these pods together, and how many pods have none.
    async fn expected(&self, pods: &[Arc<Pod>], cx: &Context<Self>) -> Result<(i32, usize), String> {
        let mut sizes: BTreeMap<String, i32> = BTreeMap::new();
        let mut unmanaged = 0;
        for pod in pods {
            if let Some((uid, size)) = self.controller(pod, cx) {
                sizes.insert(uid, size);
                continue;
            }
            let Some(owner) = claim::controller(&pod.metadata) else {
                unmanaged += 1;
                continue;
            };
            if !sizes.contains_key(&owner.uid) {
                let size = self.scale_of(owner, pod, cx).await?;
                sizes.insert(owner.uid.clone(), size);
            }
        }
        Ok((sizes.values().sum(), unmanaged))
    }

    /// The size of a controller of any kind, by its `scale` subresource.
    async fn scale_of(&self, owner: &OwnerReference, pod: &Pod, cx: &Context<Self>) -> Result<i32, String> {
        let find = |d: &Discovery| d.of_kind(&owner.api_version, &owner.kind).cloned();
        let known = self.discovery.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut served = known.as_deref().and_then(find);
        if served.is_none() {
            let discovery = Arc::new(Discovery::ask(cx.client()).await.map_err(|e| e.to_string())?);
            served = find(&discovery);
            *self.discovery.lock().unwrap_or_else(PoisonError::into_inner) = Some(discovery);
        }
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Some(served) = served else { return Err(format!("found no controllers for pod {name:?}")) };
        if !served.scalable {
            return Err(format!("{} does not implement the scale subresource", served.full_name()));
        }
        let namespace = cx.namespace().unwrap_or_default();
        Ok(scale::of(cx.client(), &served, namespace, &owner.name).await?.spec.replicas)
    }

    /// Nothing may be evicted while it isn't known how many pods there should be.
    async fn unknown(&self, budget: &PodDisruptionBudget, why: String, cx: &Context<Self>) -> Result<Next> {
        let text = format!("Failed to calculate the number of expected pods: {why}");
        cx.event(Event::warning("CalculateExpectedPodCountFailed", text)).await;
        if let Some(status) = plan::unknown(budget, &why, cx.clock().now()) {
            let patch =
                json!({"metadata": {"resourceVersion": budget.metadata.resource_version}, "status": status});
            cx.writer().patch_status::<PodDisruptionBudget, _>(cx.key(), &Patch::Merge(patch)).await?;
        }
        Err(Error::msg(why))
    }

    /// The uid and size of what controls a pod in the end.
    fn controller(&self, pod: &Pod, cx: &Context<Self>) -> Option<(String, i32)> {
        let owner = claim::controller(&pod.metadata)?;
        let key = Key::new(pod.metadata.namespace.as_deref(), &owner.name);
        let size = |n: Option<i32>| Some((owner.uid.clone(), n.unwrap_or(1)));
        match owner.kind.as_str() {
            "ReplicaSet" => {
                let set = cx.cache::<ReplicaSet, _>().get(&key)?;
                let above = claim::controller(&set.metadata).filter(|o| o.kind == "Deployment");
                let deployment = above.and_then(|o| {
                    cx.cache::<Deployment, _>().get(&Key::new(pod.metadata.namespace.as_deref(), &o.name))
                });
                match (above, deployment) {
                    (Some(o), Some(d)) => {
                        Some((o.uid.clone(), d.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1)))
                    }
                    _ => size(set.spec.as_ref().and_then(|s| s.replicas)),
                }
            }
            "StatefulSet" => {
                size(cx.cache::<StatefulSet, _>().get(&key)?.spec.as_ref().and_then(|s| s.replicas))
            }
            "ReplicationController" => {
                size(cx.cache::<ReplicationController, _>().get(&key)?.spec.as_ref().and_then(|s| s.replicas))
            }
            _ => None,
        }
    }
}
