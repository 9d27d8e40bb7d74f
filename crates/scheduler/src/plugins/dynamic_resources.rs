//! DynamicResources: a pod waits until its resource claims are there and allocated, and goes where their devices are.
//!
//! It allocates nothing itself: that needs drivers and their slices, which nobody here publishes. A claim that somebody
//! else has allocated counts. What the reference looks at before it lets a pod into the queue is looked at here when
//! the pod is tried, so that its condition says what it waits for.

use std::sync::Arc;

use k8s_openapi::api::resource::v1::ResourceClaim;

use super::node_affinity::{Place, matches};
use crate::framework::{
    Cycle, CycleState, Diagnosis, Event, Filter, Framework, Plugin, PostFilter, PreFilter, PreFiltered,
    Proposal, Status,
};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct DynamicResources;

/// The pod's claims, all of them allocated.
#[derive(Clone, Debug)]
struct Allocated(Vec<Arc<ResourceClaim>>);

fn has_claims(pod: &PodInfo) -> bool {
    pod.spec().and_then(|s| s.resource_claims.as_ref()).is_some_and(|claims| !claims.is_empty())
}

/// The names of the claims that a pod has; `None` for one that hasn't been made from its template yet. What was made
/// for nothing is left out.
fn names(pod: &PodInfo) -> impl Iterator<Item = Option<&str>> {
    let made = pod.pod.status.as_ref().and_then(|s| s.resource_claim_statuses.as_deref()).unwrap_or_default();
    let claims = pod.spec().and_then(|s| s.resource_claims.as_deref()).unwrap_or_default();
    claims.iter().filter_map(move |claim| {
        if let Some(name) = &claim.resource_claim_name {
            return Some(Some(name.as_str()));
        }
        match made.iter().find(|m| m.name == claim.name) {
            Some(made) => made.resource_claim_name.as_deref().map(Some),
            None => Some(None),
        }
    })
}

fn allocated(snapshot: &Snapshot, pod: &PodInfo) -> Result<Vec<Arc<ResourceClaim>>, Status> {
    let mut all = Vec::new();
    for name in names(pod) {
        let why = match name.map(|name| (name, snapshot.objects.resource_claim(pod.namespace(), name))) {
            None => {
                let (namespace, name) = (pod.namespace(), pod.key.name());
                format!("pod \"{namespace}/{name}\": ResourceClaim not created yet")
            }
            Some((name, None)) => format!("resourceclaim \"{name}\" not found"),
            Some((name, Some(claim))) if claim.metadata.deletion_timestamp.is_some() => {
                format!("resourceclaim \"{name}\" is being deleted")
            }
            Some((name, Some(claim))) => {
                if claim.status.as_ref().is_some_and(|s| s.allocation.is_some()) {
                    all.push(claim.clone());
                    continue;
                }
                format!("resourceclaim \"{name}\" is not allocated: this scheduler allocates no devices")
            }
        };
        return Err(Status::unresolvable(why));
    }
    Ok(all)
}

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        "DynamicResources"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::ResourceClaim(claim) => {
                let name = claim.metadata.name.as_deref();
                claim.metadata.namespace.as_deref() == Some(pod.namespace())
                    && names(pod).flatten().any(|n| Some(n) == name)
            }
            Event::PodUpdated { old, new } => !names(old).eq(names(new)),
            _ => event.node(|c| c.labels || c.taints).is_some(),
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }

    fn post_filter(&self) -> Option<&dyn PostFilter> {
        Some(self)
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        if !has_claims(pod) {
            return Ok(PreFiltered::Skip);
        }
        state.write(Allocated(allocated(cx.snapshot, pod)?));
        Ok(PreFiltered::Any)
    }
}

impl Filter for DynamicResources {
    fn filter(&self, _: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        let Some(Allocated(claims)) = state.read::<Allocated>() else { return Ok(()) };
        let reaches = |claim: &Arc<ResourceClaim>| {
            let allocation = claim.status.as_ref().and_then(|s| s.allocation.as_ref());
            let selector = allocation.and_then(|a| a.node_selector.as_ref());
            selector.is_none_or(|s| matches(s, Place::of(&node.node)))
        };
        if claims.iter().all(reaches) {
            return Ok(());
        }
        Err(Status::unresolvable("resourceclaim not available on the node"))
    }
}

impl PostFilter for DynamicResources {
    fn post_filter(
        &self,
        _: &Cycle<'_>,
        _: &Framework,
        state: &CycleState,
        _: &PodInfo,
        _: &Diagnosis,
    ) -> Proposal {
        let claims = state.read::<Allocated>().is_some_and(|Allocated(claims)| !claims.is_empty());
        let why = if claims { "still not schedulable" } else { "no new claims to deallocate" };
        Proposal {
            candidates: Vec::new(),
            refusal: Some(Status::unschedulable(why)),
            clear_nomination: false,
            reject: Vec::new(),
        }
    }
}
