//! Which nodes lack their pod and which pods must go: a pure function of nodes and pods.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::placement;
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetSpec, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};

use super::template;
use crate::common::{history, pods, scaled};

/// What a plan is made from.
pub(super) struct State<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) spec: &'a DaemonSetSpec,
    pub(super) nodes: &'a [Arc<Node>],
    /// The set's own pods.
    pub(super) pods: &'a [Arc<Pod>],
    /// The hash of the present template.
    pub(super) hash: &'a str,
    pub(super) collisions: i32,
    pub(super) now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Nodes that get a pod.
    pub(super) create: Vec<String>,
    pub(super) delete: Vec<Arc<Pod>>,
    /// Those to be deleted because they ended.
    pub(super) ended: Vec<Arc<Pod>>,
    pub(super) status: DaemonSetStatus,
    pub(super) again: Option<Duration>,
}

/// The hash of the template that a pod was made from.
pub(super) fn hash(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(history::HASH_LABEL).map(String::as_str)
}

/// The node that a pod is bound to, or can only be bound to.
pub(super) fn target(pod: &Pod) -> Option<&str> {
    if let Some(node) = pods::node(pod) {
        return Some(node);
    }
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let fields = required.node_selector_terms.iter().flat_map(|t| t.match_fields.iter().flatten());
    let mut named = fields.filter(|r| r.key == "metadata.name" && r.operator == "In");
    named.find_map(|r| match r.values.as_deref() {
        Some([node]) => Some(node.as_str()),
        _ => None,
    })
}

/// Whether a node should have a pod, and whether one that it has may stay.
fn wants(spec: &PodSpec, node: &Node) -> (bool, bool) {
    let named = spec.node_name.as_deref().filter(|n| !n.is_empty());
    if named.is_some_and(|n| Some(n) != node.metadata.name.as_deref()) || !placement::fits(spec, node) {
        return (false, false);
    }
    let taints = node.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default();
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    if placement::untolerated(taints, tolerations, &["NoSchedule", "NoExecute"]).is_none() {
        return (true, true);
    }
    (false, placement::untolerated(taints, tolerations, &["NoExecute"]).is_none())
}

/// A node that should have a pod, and the pods it has.
struct Place<'a> {
    node: &'a str,
    /// Those that are bound first, then the oldest, without those that ended.
    pods: Vec<&'a Arc<Pod>>,
    /// One that ended is still there.
    ended: bool,
}

pub(super) fn plan(state: &State<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut spec = state.spec.template.spec.clone().unwrap_or_default();
    template::tolerate(&mut spec);
    let mut by_node: BTreeMap<&str, Vec<&Arc<Pod>>> = BTreeMap::new();
    for pod in state.pods {
        if let Some(node) = target(pod) {
            by_node.entry(node).or_default().push(pod);
        }
    }
    for list in by_node.values_mut() {
        list.sort_by_key(|p| {
            let created = p.metadata.creation_timestamp.as_ref().map(|t| t.0);
            (pods::node(p).is_none(), created, p.metadata.name.clone())
        });
    }
    let mut places = Vec::new();
    let status = &mut plan.status;
    for node in state.nodes {
        let Some(name) = node.metadata.name.as_deref() else { continue };
        let has = by_node.remove(name).unwrap_or_default();
        let (run, stay) = wants(&spec, node);
        state.count(status, run, &has);
        if !stay {
            plan.delete.extend(has.into_iter().filter(|p| !pods::is_terminating(p)).cloned());
            continue;
        }
        let (over, alive): (Vec<_>, Vec<_>) = has.into_iter().partition(|p| pods::is_over(p));
        let ended = !over.is_empty();
        plan.ended.extend(over.into_iter().filter(|p| !pods::is_terminating(p)).cloned());
        if run || !alive.is_empty() {
            places.push(Place { node: name, pods: alive, ended });
        }
    }
    // What remains is on nodes that are no more.
    let lost = by_node.into_values().flatten().filter(|p| !pods::is_terminating(p));
    plan.delete.extend(lost.cloned());
    let status = &mut plan.status;
    let unavailable = status.desired_number_scheduled - status.number_available.unwrap_or(0);
    status.number_unavailable = Some(unavailable).filter(|n| *n > 0);
    status.number_available = status.number_available.filter(|n| *n > 0);
    status.updated_number_scheduled = status.updated_number_scheduled.filter(|n| *n > 0);
    status.observed_generation = state.set.metadata.generation;
    status.collision_count = Some(state.collisions).filter(|n| *n != 0);

    let rolling = state.spec.update_strategy.as_ref().is_none_or(|s| s.type_.as_deref() != Some("OnDelete"));
    let surge = state.limits(plan.status.desired_number_scheduled).1;
    for place in &places {
        plan.keep(state, place, rolling && surge > 0);
    }
    if rolling {
        if surge > 0 { plan.roll_surging(state, &places) } else { plan.roll(state, &places) }
    }
    plan.again = pods::next_available(state.pods.iter().map(|p| &**p), state.min_ready(), state.now);
    plan
}

impl State<'_> {
    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or(0)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.min_ready(), self.now)
    }

    fn is_updated(&self, pod: &Pod) -> bool {
        hash(pod) == Some(self.hash)
    }

    /// `maxUnavailable` and `maxSurge`.
    fn limits(&self, desired: i32) -> (usize, usize) {
        let rolling = self.spec.update_strategy.as_ref().and_then(|s| s.rolling_update.as_ref());
        let count = |v: Option<i32>| usize::try_from(v.unwrap_or(0).max(0)).unwrap_or(0);
        let surge = rolling.and_then(|r| r.max_surge.as_ref()).and_then(|v| scaled::of(v, desired, true));
        let unavailable = rolling.and_then(|r| r.max_unavailable.as_ref());
        let unavailable = unavailable.map_or(Some(1), |v| scaled::of(v, desired, true));
        let (unavailable, surge) = (count(unavailable), count(surge));
        // Both may be nothing by percentages; then one at a time keeps the update going.
        if unavailable == 0 && surge == 0 { (1, 0) } else { (unavailable, surge) }
    }

    /// What a node adds to the status. Its oldest pod speaks for it in everything, so that during a surge the successor
    /// counts only when it stands alone.
    fn count(&self, status: &mut DaemonSetStatus, run: bool, has: &[&Arc<Pod>]) {
        let oldest = has.iter().find(|p| !(pods::is_terminating(p) && pods::is_over(p)));
        if !run {
            status.number_misscheduled += i32::from(oldest.is_some());
            return;
        }
        status.desired_number_scheduled += 1;
        let Some(oldest) = oldest else { return };
        status.current_number_scheduled += 1;
        if pods::is_ready(oldest) {
            status.number_ready += 1;
            *status.number_available.get_or_insert_default() += i32::from(self.is_available(oldest));
        }
        *status.updated_number_scheduled.get_or_insert_default() += i32::from(self.is_updated(oldest));
    }
}

impl Plan {
    /// One pod per node: makes the missing one and deletes the superfluous.
    fn keep(&mut self, state: &State<'_>, place: &Place<'_>, surging: bool) {
        let running: Vec<&Arc<Pod>> =
            place.pods.iter().copied().filter(|p| !pods::is_terminating(p)).collect();
        if place.pods.is_empty() && !place.ended {
            self.create.push(place.node.to_owned());
        } else if !surging {
            self.delete.extend(running.iter().skip(1).map(|p| (*p).clone()));
        } else {
            // One of each template may stay: the oldest. An old one that isn't ready has nothing to hand over.
            let of = |updated| running.iter().filter(move |p| state.is_updated(p) == updated);
            for updated in [true, false] {
                self.delete.extend(of(updated).skip(1).map(|p| (*p).clone()));
            }
            if of(true).next().is_some() {
                self.delete.extend(of(false).take(1).filter(|p| !pods::is_ready(p)).map(|p| (*p).clone()));
            }
        }
    }

    /// Deletes old pods: those that aren't available anyway, and as many more as may be unavailable.
    fn roll(&mut self, state: &State<'_>, places: &[Place<'_>]) {
        let mut unavailable = 0;
        let (mut broken, mut candidates) = (Vec::new(), Vec::new());
        for place in places {
            let running: Vec<&Arc<Pod>> =
                place.pods.iter().copied().filter(|p| !pods::is_terminating(p)).collect();
            match running.as_slice() {
                [pod] if state.is_updated(pod) => unavailable += usize::from(!state.is_available(pod)),
                [pod] if state.is_available(pod) => candidates.push((*pod).clone()),
                [pod] => broken.push((*pod).clone()),
                // None, or one too many: that is put right first.
                _ => unavailable += 1,
            }
        }
        let (most, _) = state.limits(self.status.desired_number_scheduled);
        let may = most.saturating_sub(unavailable + broken.len());
        self.delete.extend(broken);
        self.delete.extend(candidates.into_iter().take(may));
    }

    /// Makes new pods beside the old ones, as many as may be too much, and deletes an old one when its successor is
    /// available.
    fn roll_surging(&mut self, state: &State<'_>, places: &[Place<'_>]) {
        let mut surging = 0;
        let (mut broken, mut candidates) = (Vec::new(), Vec::new());
        for place in places {
            let running = || place.pods.iter().copied().filter(|p| !pods::is_terminating(p));
            let new = running().find(|p| state.is_updated(p));
            let old = running().find(|p| !state.is_updated(p));
            match (new, old) {
                (Some(new), Some(old)) if state.is_available(new) => self.delete.push(old.clone()),
                (Some(_), Some(_)) => surging += 1,
                (None, Some(old)) if state.is_available(old) => candidates.push(place.node.to_owned()),
                (None, Some(_)) => broken.push(place.node.to_owned()),
                // An old pod on its way out: its successor doesn't wait for it.
                (None, None) if !place.pods.is_empty() => broken.push(place.node.to_owned()),
                _ => {}
            }
        }
        let (_, most) = state.limits(self.status.desired_number_scheduled);
        let may = most.saturating_sub(surging + broken.len());
        self.create.extend(broken);
        self.create.extend(candidates.into_iter().take(may));
        self.create.sort();
        self.create.dedup();
        self.delete.sort_by_key(|p| Reverse(p.metadata.name.clone()));
        self.delete.dedup_by_key(|p| p.metadata.name.clone());
    }
}
