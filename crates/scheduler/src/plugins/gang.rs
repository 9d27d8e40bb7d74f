//! Gang: the pods of a group are bound together or not at all.
//!
//! A group is the pods of a namespace with one value of the label [`GROUP`]; [`MINIMUM`] says how many of them there
//! have to be for the group to be of use. Each keeps its place, unbound, until so many have one. Where a member finds
//! none, or the time is up, all give their places back, so that two groups can't hold each other up for ever.
//! Not in the default profile. See `docs/scheduler.md`.

use std::sync::Arc;
use std::time::Duration;

use crate::framework::{
    Cycle, CycleState, Diagnosis, Event, Framework, NodeChange, Permission, Permit, Plugin, PostFilter,
    PreFilter, PreFiltered, Proposal, Reserve, Status,
};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The label with the group's name.
pub const GROUP: &str = "scheduling.homeostat.dev/pod-group";
/// The label with the number of pods that the group needs at least. All members say the same.
pub const MINIMUM: &str = "scheduling.homeostat.dev/pod-group-minimum";

/// The plugin.
#[derive(Clone, Copy, Debug)]
pub struct Gang {
    /// How long a member waits for the others.
    pub timeout: Duration,
}

impl Default for Gang {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60) }
    }
}

/// The group that a pod is in, and how many the group needs. A minimum that is no number is none.
fn group(pod: &PodInfo) -> Option<(&str, usize)> {
    let minimum = pod.label(MINIMUM).and_then(|m| m.parse().ok()).unwrap_or(1);
    pod.label(GROUP).filter(|g| !g.is_empty()).map(|g| (g, minimum))
}

fn together(a: &PodInfo, b: &PodInfo) -> bool {
    a.namespace() == b.namespace() && a.label(GROUP).is_some() && a.label(GROUP) == b.label(GROUP)
}

/// The members that are there, those that are going left out.
fn members<'s>(snapshot: &'s Snapshot, pod: &'s PodInfo) -> impl Iterator<Item = &'s Arc<PodInfo>> {
    snapshot.pods().filter(move |p| together(p, pod) && !p.class.terminating)
}

/// Members that wait for the others.
fn waiting(cx: &Cycle<'_>, pod: &PodInfo) -> Vec<Arc<str>> {
    let others = cx.waiting.iter().filter(|w| w.pod.uid != pod.uid && together(&w.pod, pod));
    others.map(|w| w.pod.uid.clone()).collect()
}

impl Plugin for Gang {
    fn name(&self) -> &'static str {
        "Gang"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::PodAdded(other) | Event::PodWaits(other) => together(other, pod),
            Event::AssignedPodDeleted(_) => true,
            Event::PodUpdated { old, new } => old.class != new.class,
            _ => event.node(NodeChange::any).is_some(),
        }
    }

    fn shares_fate(&self, a: &PodInfo, b: &PodInfo) -> bool {
        together(a, b)
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn post_filter(&self) -> Option<&dyn PostFilter> {
        Some(self)
    }

    fn reserve(&self) -> Option<&dyn Reserve> {
        Some(self)
    }

    fn permit(&self) -> Option<&dyn Permit> {
        Some(self)
    }
}

impl PreFilter for Gang {
    fn pre_filter(&self, cx: &Cycle<'_>, _: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        if let Some((name, minimum)) = group(pod) {
            // The pod itself may not be in the snapshot yet.
            let there = members(cx.snapshot, pod).filter(|p| p.uid != pod.uid).count() + 1;
            if there < minimum {
                return Err(Status::unresolvable(format!(
                    "pod group {name:?} has {there} of at least {minimum} pods"
                )));
            }
        }
        Ok(PreFiltered::Skip)
    }
}

impl PostFilter for Gang {
    fn post_filter(
        &self,
        cx: &Cycle<'_>,
        _: &Framework,
        _: &CycleState,
        pod: &PodInfo,
        _: &Diagnosis,
    ) -> Proposal {
        let reject = if group(pod).is_some() { waiting(cx, pod) } else { Vec::new() };
        Proposal { candidates: Vec::new(), refusal: None, clear_nomination: false, reject }
    }
}

impl Reserve for Gang {
    fn reserve(&self, _: &Cycle<'_>, _: &mut CycleState, _: &PodInfo, _: &NodeInfo) -> Result<(), Status> {
        Ok(())
    }

    fn unreserve(&self, cx: &Cycle<'_>, pod: &PodInfo) -> Vec<Arc<str>> {
        let Some((_, minimum)) = group(pod) else { return Vec::new() };
        let placed = members(cx.snapshot, pod).filter(|p| p.node().is_some() && p.uid != pod.uid).count();
        if placed < minimum { waiting(cx, pod) } else { Vec::new() }
    }
}

impl Permit for Gang {
    fn permit(&self, cx: &Cycle<'_>, _: &CycleState, pod: &PodInfo, _: &str) -> Permission {
        let Some((_, minimum)) = group(pod) else { return Permission::Allow(Vec::new()) };
        let placed = members(cx.snapshot, pod).filter(|p| p.node().is_some()).count();
        if placed < minimum { Permission::Wait(self.timeout) } else { Permission::Allow(waiting(cx, pod)) }
    }
}
