//! Accelerators: pods that ask for devices get ones that lie well together, each for one pod alone.
//!
//! Nodes publish how their devices lie ([`TOPOLOGY`]); the devices that a pod got are on the pod ([`DEVICES`]), set by
//! the write that binds it. Whatever of a resource no topology is known for stays with NodeResourcesFit.
//! Not in the default profile. See `docs/scheduler.md`.

use std::collections::BTreeSet;

use super::devices::{Assigned, Choice, DEVICES, Devices, Distance, TOGETHER, TOPOLOGY, choose};
use crate::framework::{
    Cycle, CycleState, Event, Filter, Plugin, PreFilter, PreFiltered, Reserve, Score, Status,
};
use crate::resources::is_extended;
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct Accelerators;

/// What a pod wants.
#[derive(Clone, Debug)]
struct Wanted {
    devices: Vec<(String, usize)>,
    within: Option<Distance>,
}

fn wanted(pod: &PodInfo) -> Vec<(String, usize)> {
    let extended = pod.requests.scalars().filter(|(name, n)| is_extended(name) && *n > 0);
    extended.map(|(name, n)| (name.to_owned(), usize::try_from(n).unwrap_or(usize::MAX))).collect()
}

/// The devices of a resource that pods on the node have, and how many more are held by pods that don't say which.
fn held(node: &NodeInfo, resource: &str) -> (BTreeSet<String>, usize) {
    let (mut known, mut unknown) = (BTreeSet::new(), 0);
    for pod in &node.pods {
        let asks = usize::try_from(pod.requests.get(resource)).unwrap_or(0);
        if asks == 0 {
            continue;
        }
        let assigned: Option<Assigned> = pod.annotation(DEVICES).and_then(|a| serde_json::from_str(a).ok());
        let ids = assigned.and_then(|mut a| a.remove(resource)).unwrap_or_default();
        unknown += asks.saturating_sub(ids.len());
        known.extend(ids);
    }
    (known, unknown)
}

/// What the pod would get on a node, by resource. Resources whose topology isn't known are left out.
fn choices(wanted: &Wanted, node: &NodeInfo) -> Result<Vec<(String, Choice)>, Status> {
    let devices: Devices = match node.annotation(TOPOLOGY) {
        Some(text) => serde_json::from_str(text)
            .map_err(|_| Status::unresolvable("node(s) had an invalid accelerator topology"))?,
        None => Devices::new(),
    };
    let mut all = Vec::new();
    for (resource, n) in &wanted.devices {
        let Some(devices) = devices.get(resource) else {
            if wanted.within.is_some() {
                let text = format!("node(s) didn't publish how their {resource} devices lie");
                return Err(Status::unresolvable(text));
            }
            continue;
        };
        let (taken, unknown) = held(node, resource);
        let free = devices.iter().filter(|d| d.healthy && !taken.contains(&d.id)).count();
        if free < n.saturating_add(unknown) {
            return Err(Status::unschedulable(format!("node(s) didn't have {n} free {resource} devices")));
        }
        let within = wanted.within.unwrap_or(Distance::Node);
        let Some(choice) = choose(devices, &taken, *n, within) else {
            let text = format!("node(s) didn't have {n} free {resource} devices {}", within.text());
            return Err(Status::unschedulable(text));
        };
        all.push((resource.clone(), choice));
    }
    Ok(all)
}

impl Plugin for Accelerators {
    fn name(&self) -> &'static str {
        "Accelerators"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::AssignedPodDeleted(gone) => wanted(pod).iter().any(|(r, _)| gone.requests.get(r) > 0),
            Event::PodUpdated { old, new } => old.annotation(TOGETHER) != new.annotation(TOGETHER),
            _ => event.node(|c| c.annotations || c.allocatable).is_some(),
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn Score> {
        Some(self)
    }

    fn reserve(&self) -> Option<&dyn Reserve> {
        Some(self)
    }
}

impl PreFilter for Accelerators {
    fn pre_filter(
        &self,
        _: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        let devices = wanted(pod);
        if devices.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        let within = match pod.annotation(TOGETHER) {
            None => None,
            Some(text) => Some(Distance::parse(text).ok_or_else(|| {
                Status::unresolvable(format!(
                    "annotation {TOGETHER} is {text:?}: it may be link, numa or node"
                ))
            })?),
        };
        state.write(Wanted { devices, within });
        Ok(PreFiltered::Any)
    }
}

impl Filter for Accelerators {
    fn filter(&self, _: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        state.read::<Wanted>().map_or(Ok(()), |w| choices(w, node).map(drop))
    }
}

impl Score for Accelerators {
    fn score(&self, _: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(Ok(choices)) = state.read::<Wanted>().map(|w| choices(w, node)) else { return 0 };
        // The worst of several resources counts. A group that is used up is worth a little more than one broken up.
        let worth = |c: &Choice| {
            let near = match c.distance {
                Distance::Link => 90,
                Distance::Numa => 60,
                Distance::Node => 30,
            };
            near + 10_i64.saturating_sub(i64::try_from(c.left).unwrap_or(10)).max(0)
        };
        choices.iter().map(|(_, c)| worth(c)).min().unwrap_or(0)
    }
}

impl Reserve for Accelerators {
    fn reserve(
        &self,
        _: &Cycle<'_>,
        state: &mut CycleState,
        _: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status> {
        let Some(wanted) = state.read::<Wanted>() else { return Ok(()) };
        let assigned: Assigned = choices(wanted, node)?.into_iter().map(|(r, c)| (r, c.ids)).collect();
        if !assigned.is_empty() {
            let text = serde_json::to_string(&assigned).map_err(|e| Status::error(e.to_string()))?;
            state.annotations.insert(DEVICES.to_owned(), text);
        }
        Ok(())
    }
}
