//! What may happen to a set's pods now: a pure function of the set, its pods and its two revisions.
//!
//! An ordered set does one thing at a time and stops at the first pod that isn't where it should be; a parallel one
//! does all at once. Updates begin only when nothing is missing and nothing is too much.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::Pod;

use super::{identity, is_running_and_ready};
use crate::common::{pods, scaled};

/// What a plan is made from.
pub(super) struct State<'a> {
    pub(super) set: &'a StatefulSet,
    pub(super) spec: &'a StatefulSetSpec,
    /// The set's own pods.
    pub(super) pods: &'a [Arc<Pod>],
    /// The name of the revision that the set comes from.
    pub(super) current: &'a str,
    /// The name of the revision that it goes to.
    pub(super) update: &'a str,
    pub(super) collisions: i32,
    /// Ordinals whose claims are about to be collected: no pod is made for them yet.
    pub(super) stale: &'a BTreeSet<i32>,
    pub(super) now: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Current,
    Update,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Make the pod with this ordinal from a revision.
    Create(i32, Which),
    /// Make the claims that the pod with this ordinal lacks.
    Claims(i32),
    /// Give the pod the labels of its place.
    Mend(Arc<Pod>),
    Delete(Arc<Pod>),
}

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    /// One action after the other, or side by side.
    pub(super) ordered: bool,
    pub(super) status: StatefulSetStatus,
    /// When a pod becomes available without any change.
    pub(super) again: Option<Duration>,
}

/// The ordinals that the set should have.
pub(super) fn ordinals(spec: &StatefulSetSpec) -> Range<i32> {
    let start = spec.ordinals.as_ref().and_then(|o| o.start).unwrap_or(0);
    start..start.saturating_add(spec.replicas.unwrap_or(1).max(0))
}

/// A place in the set: the pod that is there, or the one to be made.
enum Place<'a> {
    Pod(&'a Arc<Pod>),
    Missing(i32),
}

/// What an update strategy allows.
struct Strategy {
    rolling: bool,
    partition: i32,
    max_unavailable: usize,
}

impl Strategy {
    fn of(spec: &StatefulSetSpec) -> Self {
        let strategy = spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|s| s.rolling_update.as_ref());
        let replicas = spec.replicas.unwrap_or(1);
        let max =
            rolling.and_then(|r| r.max_unavailable.as_ref()).and_then(|m| scaled::of(m, replicas, false));
        Self {
            rolling: strategy.and_then(|s| s.type_.as_deref()) != Some("OnDelete"),
            partition: rolling.and_then(|r| r.partition).unwrap_or(0).max(0),
            max_unavailable: usize::try_from(max.unwrap_or(1).max(1)).unwrap_or(1),
        }
    }
}

pub(super) fn plan(state: &State<'_>) -> Plan {
    let min_ready = state.spec.min_ready_seconds.unwrap_or(0);
    let ordered = state.spec.pod_management_policy.as_deref() != Some("Parallel");
    let mut plan = Plan {
        actions: Vec::new(),
        ordered,
        status: status(state),
        again: pods::next_available(state.pods.iter().map(|p| &**p), min_ready, state.now),
    };
    if state.set.metadata.deletion_timestamp.is_none() {
        plan.fill(state);
    }
    finish_update(state.spec, &mut plan.status);
    plan
}

impl State<'_> {
    fn is_available(&self, pod: &Pod) -> bool {
        let min_ready = self.spec.min_ready_seconds.unwrap_or(0);
        is_running_and_ready(pod) && pods::is_available(pod, min_ready, self.now)
    }

    /// Missing, not available, or on its way out.
    fn is_unavailable(&self, place: &Place<'_>) -> bool {
        match place {
            Place::Pod(pod) => !self.is_available(pod) || pods::is_terminating(pod),
            Place::Missing(_) => true,
        }
    }

    /// Of another revision than the wanted one, and not on its way out already.
    fn is_replaceable(&self, place: &Place<'_>) -> bool {
        let Place::Pod(pod) = place else { return false };
        identity::revision(pod) != Some(self.update) && !pods::is_terminating(pod) && !pods::is_over(pod)
    }

    /// The revision that a missing pod is made from: pods below the partition stay with the current one.
    fn revision_of(&self, ordinal: i32) -> Which {
        let strategy = Strategy::of(self.spec);
        let has_rolling = self.spec.update_strategy.as_ref().is_some_and(|s| s.rolling_update.is_some());
        let kept = if !strategy.rolling {
            0
        } else if has_rolling {
            strategy.partition
        } else {
            self.set.status.as_ref().and_then(|s| s.current_replicas).unwrap_or(0)
        };
        if ordinal < ordinals(self.spec).start.saturating_add(kept) { Which::Current } else { Which::Update }
    }
}

impl Plan {
    fn fill(&mut self, state: &State<'_>) {
        let wanted = ordinals(state.spec);
        let mut places: Vec<Place<'_>> = wanted.clone().map(Place::Missing).collect();
        let mut condemned = Vec::new();
        for pod in state.pods {
            let Some((_, ordinal)) = identity::parent_and_ordinal(pod) else { continue };
            let index = ordinal.checked_sub(wanted.start).and_then(|i| usize::try_from(i).ok());
            match index.and_then(|i| places.get_mut(i)) {
                Some(place) => *place = Place::Pod(pod),
                None => condemned.push((ordinal, pod)),
            }
        }
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        let condemned: Vec<&Arc<Pod>> = condemned.into_iter().map(|(_, pod)| pod).collect();

        for place in &places {
            if self.keep(state, place) && self.ordered {
                return;
            }
        }
        if self.scale_down(state, &places, &condemned) {
            return;
        }
        if Strategy::of(state.spec).rolling {
            self.roll(state, &places);
        }
    }

    /// One place; whether an ordered set has to wait here.
    fn keep(&mut self, state: &State<'_>, place: &Place<'_>) -> bool {
        let pod = match place {
            Place::Missing(ordinal) => {
                if !state.stale.contains(ordinal) {
                    self.actions.push(Action::Create(*ordinal, state.revision_of(*ordinal)));
                }
                return true;
            }
            Place::Pod(pod) => *pod,
        };
        if pods::is_over(pod) {
            if !pods::is_terminating(pod) {
                self.actions.push(Action::Delete(pod.clone()));
            }
            return true;
        }
        if pods::phase(pod) == "Pending"
            && let Some((_, ordinal)) = identity::parent_and_ordinal(pod)
            && state.spec.volume_claim_templates.as_ref().is_some_and(|t| !t.is_empty())
        {
            self.actions.push(Action::Claims(ordinal));
        }
        if self.ordered && (pods::is_terminating(pod) || !state.is_available(pod)) {
            return true;
        }
        // What is on its way out isn't worth a write.
        if !pods::is_terminating(pod)
            && !identity::matches(state.set, state.spec, pod)
            && self.can_mend(state, pod)
        {
            self.actions.push(Action::Mend(pod.clone()));
        }
        false
    }

    /// Labels can be mended; the volumes of a pod never change.
    fn can_mend(&self, state: &State<'_>, pod: &Pod) -> bool {
        let Some((_, ordinal)) = identity::parent_and_ordinal(pod) else { return false };
        let has = pod.metadata.labels.as_ref();
        identity::labels(state.set, ordinal).iter().any(|(k, v)| has.and_then(|l| l.get(k)) != Some(v))
    }

    /// Deletes pods beyond the wanted ordinals, from the highest; whether that isn't finished.
    fn scale_down(&mut self, state: &State<'_>, places: &[Place<'_>], condemned: &[&Arc<Pod>]) -> bool {
        let unavailable = |p: &&Arc<Pod>| state.is_unavailable(&Place::Pod(p));
        // The one pod that may be deleted though it isn't healthy: the first unhealthy one of all.
        let first = if places.iter().any(|p| state.is_unavailable(p)) {
            None
        } else {
            condemned.iter().rev().copied().find(unavailable)
        };
        for pod in condemned {
            if pods::is_terminating(pod) {
                if self.ordered {
                    return true;
                }
                continue;
            }
            let is_first = first.is_some_and(|f| Arc::ptr_eq(f, pod));
            if self.ordered && !state.is_available(pod) && !is_first {
                return true;
            }
            self.actions.push(Action::Delete((*pod).clone()));
            if self.ordered {
                return true;
            }
        }
        false
    }

    /// Leaves the pods that are too many for now.
    pub(super) fn spare_condemned(&mut self, spec: &StatefulSetSpec) {
        let stays =
            |pod: &Pod| identity::parent_and_ordinal(pod).is_none_or(|(_, n)| ordinals(spec).contains(&n));
        self.actions.retain(|action| !matches!(action, Action::Delete(pod) if !stays(pod)));
    }

    /// Deletes pods of another revision from the highest, as many at a time as may be unavailable.
    ///
    /// An old pod that is broken holds nothing up: only its successor can be better. What an update waits for are
    /// pods of the new revision that aren't available, and those on their way. As in the reference, one at a time goes
    /// by order, healthy or not, and waits for those above it; several at a time begin with the broken ones, and leave
    /// as many available as should be.
    fn roll(&mut self, state: &State<'_>, places: &[Place<'_>]) {
        let strategy = Strategy::of(state.spec);
        let waits = |p: &Place<'_>| state.is_unavailable(p) && !state.is_replaceable(p);
        let rolled = places.iter().skip(usize::try_from(strategy.partition).unwrap_or(0)).rev();
        if strategy.max_unavailable == 1 {
            let next = rolled.take_while(|p| !waits(p)).find(|p| state.is_replaceable(p));
            next.into_iter().for_each(|p| self.replace(p));
            return;
        }
        let may = |unavailable: usize| strategy.max_unavailable.saturating_sub(unavailable);
        let broken = |p: &&Place<'_>| state.is_replaceable(p) && state.is_unavailable(p);
        let well = |p: &&Place<'_>| state.is_replaceable(p) && !state.is_unavailable(p);
        let left = may(places.iter().filter(|p| waits(p)).count());
        rolled.clone().filter(broken).take(left).for_each(|p| self.replace(p));
        let left = may(places.iter().filter(|p| state.is_unavailable(p)).count());
        rolled.filter(well).take(left).for_each(|p| self.replace(p));
    }

    /// Deletes a pod, for one of the new revision to take its place.
    fn replace(&mut self, place: &Place<'_>) {
        let Place::Pod(pod) = place else { return };
        self.actions.push(Action::Delete((*pod).clone()));
        if let Some(n) = self.status.current_replicas.filter(|n| *n > 0) {
            self.status.current_replicas = Some(n - 1).filter(|n| *n > 0);
        }
    }
}

fn status(state: &State<'_>) -> StatefulSetStatus {
    let count = |f: &dyn Fn(&Pod) -> bool| {
        i32::try_from(state.pods.iter().filter(|p| f(p)).count()).unwrap_or(i32::MAX)
    };
    // Counts of zero are absent in the API, but for these two.
    let some = |n: i32| Some(n).filter(|n| *n != 0);
    let of = |revision: &str| count(&|p| !pods::is_terminating(p) && identity::revision(p) == Some(revision));
    StatefulSetStatus {
        replicas: count(&|_| true),
        available_replicas: Some(count(&|p| state.is_available(p))),
        ready_replicas: some(count(&is_running_and_ready)),
        current_replicas: some(of(state.current)),
        updated_replicas: some(of(state.update)),
        current_revision: Some(state.current.to_owned()),
        update_revision: Some(state.update.to_owned()),
        collision_count: Some(state.collisions),
        observed_generation: state.set.metadata.generation,
        conditions: None,
    }
}

/// When all pods are of the new revision and ready, it becomes the current one.
fn finish_update(spec: &StatefulSetSpec, status: &mut StatefulSetStatus) {
    let wanted = Some(spec.replicas.unwrap_or(1));
    let all = |n: Option<i32>| Some(n.unwrap_or(0)) == wanted;
    if Strategy::of(spec).rolling
        && all(status.updated_replicas)
        && all(Some(status.replicas))
        && all(status.ready_replicas)
    {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
}
