//! InterPodAffinity: pods that want to be near others, or far from them.
//!
//! Rules are matched once for each class of pods and each affinity in the snapshot, and counted by domain; a node is
//! then a look at its domains' sums.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::domains::Tally;
use crate::framework::{
    Cycle, CycleState, Event, Filter, MAX_SCORE, Opinion, Plugin, PreFilter, PreFiltered, PreScore, Score,
    Status,
};
use crate::snapshot::{Affinity, Class, NodeInfo, PodInfo, Snapshot, Term};

/// The plugin.
#[derive(Clone, Copy, Debug)]
pub struct InterPodAffinity {
    /// What being the target of others' required affinity is worth.
    pub hard_weight: i64,
    /// Leave out what pods on nodes prefer.
    pub ignore_others: bool,
}

impl Default for InterPodAffinity {
    fn default() -> Self {
        Self { hard_weight: 1, ignore_others: false }
    }
}

type Namespaces = BTreeMap<String, BTreeMap<String, String>>;

#[derive(Clone, Debug, Default)]
struct Found {
    /// Pods on nodes that don't want this pod.
    unwelcome: Tally,
    /// Pods that match all terms of its required affinity.
    near: Tally,
    /// Pods that match a term of its required anti-affinity.
    far: Tally,
}

#[derive(Clone, Debug, Default)]
struct Worth(Tally);

fn required(pod: &PodInfo) -> &[Term] {
    pod.affinity.as_ref().map_or(&[], |a| &a.required)
}

fn anti(pod: &PodInfo) -> &[Term] {
    pod.affinity.as_ref().map_or(&[], |a| &a.anti)
}

/// Whether a class has everything that the terms want. No terms want nothing, and match nothing.
fn matches_all(terms: &[Term], class: &Class, namespaces: &Namespaces) -> bool {
    !terms.is_empty() && terms.iter().all(|t| t.matches(class, namespaces))
}

impl Found {
    /// Counts another pod, `n` times, that is on a node.
    fn count(&mut self, cx: &Cycle<'_>, pod: &PodInfo, other: &PodInfo, slot: usize, n: i64) {
        let namespaces = &cx.snapshot.objects.namespaces;
        for term in anti(other).iter().filter(|t| t.matches(&pod.class, namespaces)) {
            self.unwelcome.add(cx.snapshot, &term.topology, slot, n);
        }
        if matches_all(required(pod), &other.class, namespaces) {
            for term in required(pod) {
                self.near.add(cx.snapshot, &term.topology, slot, n);
            }
        }
        for term in anti(pod).iter().filter(|t| t.matches(&other.class, namespaces)) {
            self.far.add(cx.snapshot, &term.topology, slot, n);
        }
    }
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, snapshot: &Snapshot) -> bool {
        let namespaces = &snapshot.objects.namespaces;
        let wanted = |c: &PodInfo| matches_all(required(pod), &c.class, namespaces);
        let avoided = |c: &PodInfo| anti(pod).iter().any(|t| t.matches(&c.class, namespaces));
        let unwelcome = |c: &PodInfo| anti(c).iter().any(|t| t.matches(&pod.class, namespaces));
        match event {
            Event::PodAssigned(other) => wanted(other),
            Event::AssignedPodDeleted(other) => avoided(other) || unwelcome(other),
            Event::AssignedPodUpdated { old, new } => {
                (!wanted(old) && wanted(new))
                    || (avoided(old) && !avoided(new))
                    || (unwelcome(old) && !unwelcome(new))
            }
            Event::PodUpdated { old, new } => old.class != new.class,
            Event::Namespace => true,
            _ => event.node(|c| c.labels).is_some_and(|n| {
                let has = |t: &Term| n.metadata.labels.as_ref().is_some_and(|l| l.contains_key(&t.topology));
                // A node without the label of an anti-affinity is free of it; that of an affinity must be there.
                required(pod).iter().all(has)
            }),
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

fn times(nodes: &BTreeMap<usize, u32>, by: i64) -> impl Iterator<Item = (usize, i64)> {
    nodes.iter().map(move |(slot, n)| (*slot, i64::from(*n) * by))
}

impl PreFilter for InterPodAffinity {
    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        let namespaces = &cx.snapshot.objects.namespaces;
        let mut found = Found::default();
        for shared in cx.snapshot.affinities() {
            for term in shared.part.anti.iter().filter(|t| t.matches(&pod.class, namespaces)) {
                found.unwelcome.add_all(cx.snapshot, &term.topology, times(&shared.nodes, 1));
            }
        }
        if required(pod).is_empty() && anti(pod).is_empty() && found.unwelcome.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        if !required(pod).is_empty() || !anti(pod).is_empty() {
            for shared in cx.snapshot.classes() {
                if matches_all(required(pod), &shared.part, namespaces) {
                    for term in required(pod) {
                        found.near.add_all(cx.snapshot, &term.topology, times(&shared.nodes, 1));
                    }
                }
                for term in anti(pod).iter().filter(|t| t.matches(&shared.part, namespaces)) {
                    found.far.add_all(cx.snapshot, &term.topology, times(&shared.nodes, 1));
                }
            }
        }
        state.write(found);
        Ok(PreFiltered::Any)
    }

    fn add_pod(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        added: &PodInfo,
        node: &NodeInfo,
    ) {
        if let Some(found) = state.change::<Found>() {
            found.count(cx, pod, added, node.slot, 1);
        }
    }

    fn remove_pod(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        removed: &PodInfo,
        node: &NodeInfo,
    ) {
        if let Some(found) = state.change::<Found>() {
            found.count(cx, pod, removed, node.slot, -1);
        }
    }
}

impl Filter for InterPodAffinity {
    fn filter(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status> {
        let Some(found) = state.read::<Found>() else { return Ok(()) };
        let mut near = true;
        for term in required(pod) {
            match found.near.get(cx.snapshot, &term.topology, node.slot) {
                // All domains must be there.
                None => return Err(Status::unresolvable("node(s) didn't match pod affinity rules")),
                Some(n) => near &= n > 0,
            }
        }
        if !near {
            // The first of a group that wants to be together may go anywhere.
            let namespaces = &cx.snapshot.objects.namespaces;
            let first = found.near.is_empty() && matches_all(required(pod), &pod.class, namespaces);
            if !first {
                return Err(Status::unresolvable("node(s) didn't match pod affinity rules"));
            }
        }
        if found.far.hits(node.slot) {
            return Err(Status::unschedulable("node(s) didn't match pod anti-affinity rules"));
        }
        if found.unwelcome.hits(node.slot) {
            return Err(Status::unschedulable("node(s) didn't satisfy existing pods anti-affinity rules"));
        }
        Ok(())
    }
}

impl InterPodAffinity {
    /// What those with an affinity think of this pod, by label and weight.
    fn opinions<'t>(
        &self,
        affinity: &'t Affinity,
        pod: &PodInfo,
        namespaces: &Namespaces,
    ) -> Vec<(&'t str, i64)> {
        let of = |t: &Term| t.matches(&pod.class, namespaces);
        let hard = affinity.required.iter().filter(|t| self.hard_weight > 0 && of(t));
        let liked = affinity.preferred.iter().filter(|(_, t)| of(t));
        let avoided = affinity.avoided.iter().filter(|(_, t)| of(t));
        hard.map(|t| (t.topology.as_str(), self.hard_weight))
            .chain(liked.map(|(w, t)| (t.topology.as_str(), *w)))
            .chain(avoided.map(|(w, t)| (t.topology.as_str(), -w)))
            .collect()
    }
}

impl PreScore for InterPodAffinity {
    fn pre_score(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &[Arc<NodeInfo>],
    ) -> Result<Opinion, Status> {
        let namespaces = &cx.snapshot.objects.namespaces;
        let mut worth = Tally::default();
        let own = pod.affinity.as_deref();
        let prefers = own.is_some_and(|a| !a.preferred.is_empty() || !a.avoided.is_empty());
        if let Some(own) = own.filter(|_| prefers) {
            for shared in cx.snapshot.classes() {
                let liked = own.preferred.iter().map(|(w, t)| (*w, t));
                let avoided = own.avoided.iter().map(|(w, t)| (-*w, t));
                for (w, term) in liked.chain(avoided).filter(|(_, t)| t.matches(&shared.part, namespaces)) {
                    worth.add_all(cx.snapshot, &term.topology, times(&shared.nodes, w));
                }
            }
        }
        if prefers || !self.ignore_others {
            for shared in cx.snapshot.affinities() {
                for (key, w) in self.opinions(&shared.part, pod, namespaces) {
                    worth.add_all(cx.snapshot, key, times(&shared.nodes, w));
                }
            }
        }
        if worth.is_empty() {
            return Ok(Opinion::None);
        }
        state.write(Worth(worth));
        Ok(Opinion::Some)
    }
}

impl Score for InterPodAffinity {
    fn score(&self, _: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> i64 {
        state.read::<Worth>().map_or(0, |w| w.0.total(node.slot))
    }

    fn normalize(&self, _: &Cycle<'_>, _: &CycleState, _: &PodInfo, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        let most = scores.iter().copied().max().unwrap_or(0);
        let least = scores.iter().copied().min().unwrap_or(0);
        for score in scores {
            let share = if most > least { (*score - least) as f64 / (most - least) as f64 } else { 0.0 };
            *score = (MAX_SCORE as f64 * share) as i64;
        }
    }
}
