//! Gives running containers other resources: what a kubelet does when a pod's spec asks for more or less.
//!
//! What fits is given; what the node could never give is Infeasible, what it can't give now is Deferred and tried
//! again. Source: kubelet's allocation manager.

use std::collections::BTreeMap;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::machines::{Amounts, Holding, requests};
use crate::runtime::{News, Plan, What, after};
use crate::status::Pending;
use crate::status::resize::{asks, containers, in_force, needs_restart};
use crate::world::Placed;

/// A fingerprint of what the container of this name asks for.
pub(crate) fn asked(pod: &Pod, name: &str) -> u64 {
    asks(containers(pod).find(|(_, c)| c.name == name).and_then(|(_, c)| c.resources.as_ref()))
}

/// Compares what the pod asks for with what it was given, and gives what fits. What it doesn't get is news once.
pub(crate) fn resize(
    plan: &Plan<'_>,
    placed: &mut Placed,
    holding: &mut Holding,
    allocatable: &BTreeMap<String, Quantity>,
    now: Timestamp,
    news: &mut Vec<News>,
) -> Option<Pending> {
    let pending = give(plan, placed, holding, allocatable, now, news);
    let told = pending.clone().map(|p| Box::new((plan.pod().metadata.generation, p)));
    if told != placed.pending
        && let Some(pending) = &pending
    {
        news.push(News { at: now, container: 0, what: What::ResizePending(pending.clone()) });
    }
    placed.pending = told;
    pending
}

fn give(
    plan: &Plan<'_>,
    placed: &mut Placed,
    holding: &mut Holding,
    allocatable: &BTreeMap<String, Quantity>,
    now: Timestamp,
    news: &mut Vec<News>,
) -> Option<Pending> {
    let pod = plan.pod();
    let sandbox = &mut placed.sandbox;
    let changed: Vec<(usize, &Container)> = containers(pod)
        .filter(|(i, c)| {
            sandbox.containers.get(*i).is_some_and(|r| r.allocated != asks(c.resources.as_ref()))
        })
        .collect();
    if changed.is_empty() {
        if sandbox.resizing.is_none() {
            // What was pending is no longer asked for.
            sandbox.containers.iter_mut().for_each(|r| r.held = None);
        }
        return None;
    }
    let wanted = requests(pod);
    let refused = refuse(&wanted, &placed.requests, holding, allocatable);
    for (i, container) in &changed {
        let Some(record) = sandbox.containers.get_mut(*i) else { continue };
        if record.held.is_none() {
            record.held = Some(Box::new(in_force(pod, &container.name).unwrap_or_default()));
        }
        if refused.is_none() {
            record.allocated = asks(container.resources.as_ref());
        }
    }
    if refused.is_some() {
        return refused;
    }
    sandbox.touch(now);
    sandbox.resizing = Some(after(now, plan.delays.resize));
    news.push(News { at: now, container: 0, what: What::ResizeStarted });
    for (i, container) in changed {
        let old = sandbox.containers.get(i).and_then(|r| r.held.clone());
        if needs_restart(container, old.as_deref()) {
            sandbox.restart(plan, i, now, news);
        }
    }
    holding.take_back(&placed.requests);
    holding.give(&wanted);
    placed.requests = wanted;
    None
}

fn refuse(
    wanted: &Amounts,
    has: &Amounts,
    holding: &Holding,
    allocatable: &BTreeMap<String, Quantity>,
) -> Option<Pending> {
    if let Err(lacks) = Holding::default().fits(wanted, &Amounts::new(), allocatable) {
        let message = format!(
            "Node didn't have enough capacity: {}, requested: {}, capacity: {}",
            lacks.resource, lacks.requested, lacks.capacity
        );
        return Some(Pending { reason: "Infeasible", message });
    }
    let lacks = holding.fits(wanted, has, allocatable).err()?;
    Some(Pending { reason: "Deferred", message: lacks.text() })
}
