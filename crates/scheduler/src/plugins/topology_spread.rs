//! PodTopologySpread: no domain gets many more pods of a sort than the one that has the fewest.
//!
//! Constraints come from the pod, or from the profile's defaults for the pods of a service or workload.

use std::sync::Arc;

use homeostat_model::selector::Labels;
use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use super::node_affinity::{self, Place};
use super::taint_toleration::untolerated;
use crate::framework::{
    Cycle, CycleState, Event, Filter, MAX_SCORE, Opinion, Plugin, PreFilter, PreFiltered, PreScore, Score,
    Status,
};
use crate::snapshot::{Class, Column, NodeInfo, PodInfo, Snapshot, selector};

const HOSTNAME: &str = "kubernetes.io/hostname";

/// The plugin.
#[derive(Clone, Debug)]
pub struct PodTopologySpread {
    /// Constraints of pods that have none, without selectors.
    pub defaults: Vec<TopologySpreadConstraint>,
    /// Whether the defaults are the built-in ones, which don't ask for all labels on a node.
    pub system: bool,
}

impl Default for PodTopologySpread {
    fn default() -> Self {
        let soft = |key: &str, max_skew| TopologySpreadConstraint {
            topology_key: key.to_owned(),
            max_skew,
            when_unsatisfiable: "ScheduleAnyway".to_owned(),
            ..TopologySpreadConstraint::default()
        };
        Self { defaults: vec![soft(HOSTNAME, 3), soft("topology.kubernetes.io/zone", 5)], system: true }
    }
}

#[derive(Clone, Debug)]
struct Constraint {
    key: String,
    column: Arc<Column>,
    max_skew: i64,
    min_domains: usize,
    selectors: Vec<Labels>,
    honor_affinity: bool,
    honor_taints: bool,
}

impl Constraint {
    fn selects(&self, class: &Class) -> bool {
        self.selectors.iter().all(|s| class.selected(s))
    }

    /// Whether the pods on this node count.
    fn includes(&self, pod: &PodInfo, node: &NodeInfo) -> bool {
        (!self.honor_affinity || node_affinity::selects(pod, Place::of(&node.node)))
            && (!self.honor_taints || untolerated(pod.tolerations(), node.taints()).is_none())
    }
}

/// The pods that a constraint counts, by domain. `None`: the domain has no node that counts.
#[derive(Clone, Debug)]
struct Spread {
    constraint: Arc<Constraint>,
    counts: Vec<Option<i64>>,
    least: i64,
}

#[derive(Clone, Debug, Default)]
struct Hard(Vec<Spread>);

#[derive(Clone, Debug)]
struct Soft {
    constraints: Vec<(Constraint, Vec<i64>, f64)>,
    /// By slot.
    ignored: Vec<bool>,
}

impl Spread {
    fn measure(&mut self) {
        let domains = self.counts.iter().flatten().count();
        self.least = match self.counts.iter().flatten().min() {
            Some(least) if domains >= self.constraint.min_domains => *least,
            _ => 0,
        };
    }
}

impl PodTopologySpread {
    /// The constraints of one sort, the pod's own or the defaults.
    fn constraints(&self, snapshot: &Snapshot, pod: &PodInfo, when: &str) -> Vec<Constraint> {
        let own = pod.spec().and_then(|s| s.topology_spread_constraints.as_deref()).unwrap_or_default();
        let (all, owner) = if own.is_empty() {
            let any = self.defaults.iter().any(|c| c.when_unsatisfiable == when);
            let owner = if any { owner_selectors(snapshot, pod) } else { Vec::new() };
            if owner.is_empty() {
                return Vec::new();
            }
            (self.defaults.as_slice(), Some(owner))
        } else {
            (own, None)
        };
        all.iter()
            .filter(|c| c.when_unsatisfiable == when)
            .map(|c| Constraint {
                key: c.topology_key.clone(),
                column: snapshot.column(&c.topology_key),
                max_skew: i64::from(c.max_skew),
                min_domains: c.min_domains.and_then(|m| usize::try_from(m).ok()).unwrap_or(1),
                selectors: owner.clone().unwrap_or_else(|| own_selectors(c, pod)),
                honor_affinity: c.node_affinity_policy.as_deref() != Some("Ignore"),
                honor_taints: c.node_taints_policy.as_deref() == Some("Honor"),
            })
            .collect()
    }

    fn has_own(pod: &PodInfo) -> bool {
        pod.spec().and_then(|s| s.topology_spread_constraints.as_ref()).is_some_and(|c| !c.is_empty())
    }
}

fn own_selectors(constraint: &TopologySpreadConstraint, pod: &PodInfo) -> Vec<Labels> {
    let mut all = vec![selector(constraint.label_selector.as_ref())];
    // Where the server has merged these keys into the selector already, it is said twice.
    let keys = constraint.match_label_keys.iter().flatten();
    let same: serde_json::Map<String, serde_json::Value> =
        keys.filter_map(|k| Some((k.clone(), pod.label(k)?.into()))).collect();
    if !same.is_empty() {
        all.push(Labels::from_map(&same.into()));
    }
    all
}

/// What selects the pods of the services and the workload that a pod belongs to. Empty where it belongs to none.
fn owner_selectors(snapshot: &Snapshot, pod: &PodInfo) -> Vec<Labels> {
    let mut merged = serde_json::Map::new();
    for (key, selector) in &snapshot.objects.services {
        let ours = key.namespace() == Some(pod.namespace()) && !selector.is_empty();
        if ours && selector.iter().all(|(k, v)| pod.label(k) == Some(v)) {
            merged.extend(selector.iter().map(|(k, v)| (k.clone(), v.as_str().into())));
        }
    }
    let mut all = Vec::new();
    if !merged.is_empty() {
        all.push(Labels::from_map(&merged.into()));
    }
    let owners = pod.pod.metadata.owner_references.as_deref().unwrap_or_default();
    if let Some(owner) = owners.iter().find(|o| o.controller == Some(true)) {
        all.extend(snapshot.objects.workloads.get(&owner.uid).filter(|l| !l.is_empty()).cloned());
    }
    all
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, snapshot: &Snapshot) -> bool {
        let constraints = self.constraints(snapshot, pod, "DoNotSchedule");
        let counted = |other: &PodInfo| {
            other.namespace() == pod.namespace() && constraints.iter().any(|c| c.selects(&other.class))
        };
        let has_all = |n: &k8s_openapi::api::core::v1::Node| {
            let labels = n.metadata.labels.as_ref();
            constraints.iter().all(|c| labels.is_some_and(|l| l.contains_key(&c.key)))
        };
        match event {
            Event::PodAssigned(p) | Event::AssignedPodDeleted(p) => counted(p),
            Event::AssignedPodUpdated { old, new } => counted(old) != counted(new),
            Event::PodUpdated { old, new } => old.class != new.class || old.spec() != new.spec(),
            Event::NodeAdded(n) | Event::NodeDeleted(n) => has_all(n),
            Event::NodeUpdated { old, new } => {
                let change = crate::framework::NodeChange::between(old, new);
                (change.labels || change.taints) && (has_all(old) || has_all(new))
            }
            _ => false,
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }

    fn pre_score(&self) -> Option<&dyn PreScore> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn Score> {
        Some(self)
    }
}

fn has_keys(constraints: &[Constraint], slot: usize) -> bool {
    constraints.iter().all(|c| c.column.of(slot).is_some())
}

impl PreFilter for PodTopologySpread {
    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        let constraints = self.constraints(cx.snapshot, pod, "DoNotSchedule");
        if constraints.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        let selective = node_affinity::has_required(pod);
        let mut hard = Hard::default();
        for constraint in &constraints {
            let mut counts = vec![None; constraint.column.len()];
            let looks = (selective && constraint.honor_affinity) || constraint.honor_taints;
            let mut counted = Vec::new();
            for &slot in cx.snapshot.slots() {
                let included = || cx.snapshot.slot(slot).is_some_and(|n| constraint.includes(pod, n));
                if !has_keys(&constraints, slot) || (looks && !included()) {
                    continue;
                }
                if counted.len() <= slot {
                    counted.resize(slot + 1, false);
                }
                counted[slot] = true;
                if let Some(domain) = constraint.column.of(slot) {
                    counts[domain].get_or_insert(0);
                }
            }
            for shared in cx.snapshot.classes_for(pod.namespace(), &constraint.selectors) {
                if !counts_class(constraint, pod, &shared.part) {
                    continue;
                }
                for (slot, n) in &shared.nodes {
                    if counted.get(*slot) == Some(&true)
                        && let Some(domain) = constraint.column.of(*slot)
                        && let Some(Some(count)) = counts.get_mut(domain)
                    {
                        *count += i64::from(*n);
                    }
                }
            }
            let mut spread = Spread { constraint: Arc::new(constraint.clone()), counts, least: 0 };
            spread.measure();
            hard.0.push(spread);
        }
        state.write(hard);
        Ok(PreFiltered::Any)
    }

    fn add_pod(
        &self,
        _: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        added: &PodInfo,
        node: &NodeInfo,
    ) {
        recount(state, pod, added, node, 1);
    }

    fn remove_pod(
        &self,
        _: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        removed: &PodInfo,
        node: &NodeInfo,
    ) {
        recount(state, pod, removed, node, -1);
    }
}

fn counts_class(constraint: &Constraint, pod: &PodInfo, class: &Class) -> bool {
    class.namespace == pod.class.namespace && !class.terminating && constraint.selects(class)
}

fn recount(state: &mut CycleState, pod: &PodInfo, other: &PodInfo, node: &NodeInfo, n: i64) {
    let Some(hard) = state.change::<Hard>() else { return };
    if !hard.0.iter().all(|s| s.constraint.column.of(node.slot).is_some()) {
        return;
    }
    for spread in &mut hard.0 {
        if !counts_class(&spread.constraint, pod, &other.class) || !spread.constraint.includes(pod, node) {
            continue;
        }
        if let Some(count) = spread.constraint.column.of(node.slot).and_then(|d| spread.counts.get_mut(d)) {
            *count = Some(count.unwrap_or(0) + n);
        }
        spread.measure();
    }
}

impl Filter for PodTopologySpread {
    fn filter(
        &self,
        _: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status> {
        let Some(Hard(spreads)) = state.read::<Hard>() else { return Ok(()) };
        for spread in spreads {
            let Some(domain) = spread.constraint.column.of(node.slot) else {
                return Err(Status::unresolvable(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                ));
            };
            let own = i64::from(spread.constraint.selects(&pod.class));
            let there = spread.counts.get(domain).copied().flatten().unwrap_or(0);
            if there + own - spread.least > spread.constraint.max_skew {
                return Err(Status::unschedulable("node(s) didn't match pod topology spread constraints"));
            }
        }
        Ok(())
    }
}

impl PreScore for PodTopologySpread {
    fn pre_score(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<Opinion, Status> {
        let constraints = self.constraints(cx.snapshot, pod, "ScheduleAnyway");
        if constraints.is_empty() {
            return Ok(Opinion::None);
        }
        let all_keys = Self::has_own(pod) || !self.system;
        let width = nodes.iter().map(|n| n.slot + 1).max().unwrap_or(0);
        let mut ignored = vec![false; width];
        for node in nodes {
            ignored[node.slot] = all_keys && !has_keys(&constraints, node.slot);
        }
        let counting: Vec<&Arc<NodeInfo>> = nodes.iter().filter(|n| !ignored[n.slot]).collect();
        let selective = node_affinity::has_required(pod);
        let mut weighed = Vec::new();
        for constraint in &constraints {
            let mut sums = vec![0; constraint.column.len()];
            let mut candidate = vec![false; constraint.column.len()];
            let mut size = 0_usize;
            for node in &counting {
                if let Some(domain) = constraint.column.of(node.slot)
                    && !std::mem::replace(&mut candidate[domain], true)
                {
                    size += 1;
                }
            }
            if constraint.key == HOSTNAME {
                size = counting.len();
            }
            let looks = (selective && constraint.honor_affinity) || constraint.honor_taints;
            for shared in cx.snapshot.classes_for(pod.namespace(), &constraint.selectors) {
                if !counts_class(constraint, pod, &shared.part) {
                    continue;
                }
                for (slot, n) in &shared.nodes {
                    let Some(domain) = constraint.column.of(*slot).filter(|d| candidate[*d]) else {
                        continue;
                    };
                    if all_keys && !has_keys(&constraints, *slot) {
                        continue;
                    }
                    // Where each node is a domain the reference counts without looking at its policies.
                    let included = !looks
                        || constraint.key == HOSTNAME
                        || cx.snapshot.slot(*slot).is_some_and(|n| constraint.includes(pod, n));
                    if included {
                        sums[domain] += i64::from(*n);
                    }
                }
            }
            weighed.push((constraint.clone(), sums, ((size + 2) as f64).ln()));
        }
        state.write(Soft { constraints: weighed, ignored });
        Ok(Opinion::Some)
    }
}

impl Score for PodTopologySpread {
    fn score(&self, _: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(soft) = state.read::<Soft>() else { return 0 };
        if soft.ignored.get(node.slot) == Some(&true) {
            return 0;
        }
        let mut score = 0.0;
        for (constraint, sums, weight) in &soft.constraints {
            if let Some(domain) = constraint.column.of(node.slot) {
                let count = sums.get(domain).copied().unwrap_or(0);
                score += count as f64 * weight + (constraint.max_skew - 1) as f64;
            }
        }
        score.round() as i64
    }

    fn normalize(
        &self,
        _: &Cycle<'_>,
        state: &CycleState,
        _: &PodInfo,
        nodes: &[Arc<NodeInfo>],
        scores: &mut [i64],
    ) {
        let Some(soft) = state.read::<Soft>() else { return };
        let ignored = |n: &NodeInfo| soft.ignored.get(n.slot) == Some(&true);
        let counting = || nodes.iter().zip(scores.iter()).filter(|(n, _)| !ignored(n)).map(|(_, s)| *s);
        let (least, most) = (counting().min().unwrap_or(0), counting().max().unwrap_or(0));
        for (node, score) in nodes.iter().zip(scores) {
            *score = match most {
                _ if ignored(node) => 0,
                0 => MAX_SCORE,
                _ => MAX_SCORE * (most + least - *score) / most,
            };
        }
    }
}
