//! The plugin API: one small trait for each extension point of the scheduling framework, in the reference's order.
//!
//! A plugin implements [`Plugin`] and the points that it extends, and says so with the accessors. Everything up to
//! [`Permit`] is a pure function of the snapshot and the cycle's state; only [`PreBind`] and [`Bind`] do I/O.
//! Invariant: a plugin keeps nothing about pods itself. What it must remember between cycles is on the objects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use homeostat_model::{Clock, Timestamp};
use homeostat_sdk::{Caches, Writer};

use super::diagnosis::Diagnosis;
use super::event::Event;
use super::profile::Framework;
use super::state::CycleState;
use super::status::Status;
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The least and the most that a node can be worth to a plugin, after normalising.
pub const MAX_SCORE: i64 = 100;

/// A pod that has a place and waits for a [`Permit`].
#[derive(Clone, Debug)]
pub struct WaitingPod {
    /// The pod.
    pub pod: Arc<PodInfo>,
    /// Its node.
    pub node: Arc<str>,
}

/// What all plugins see in a cycle.
#[derive(Clone, Copy)]
pub struct Cycle<'a> {
    /// Nodes, pods and the rest, at one moment.
    pub snapshot: &'a Snapshot,
    /// Pods that wait for their permit.
    pub waiting: &'a [WaitingPod],
    /// The present time.
    pub now: Timestamp,
}

/// A plugin.
pub trait Plugin: Send + Sync {
    /// Its name in configurations and messages.
    fn name(&self) -> &'static str;

    /// Whether `event` may have removed this plugin's objection to `pod`. Yes, where a plugin doesn't say.
    fn helps(&self, event: &Event, pod: &PodInfo, snapshot: &Snapshot) -> bool {
        let _ = (event, pod, snapshot);
        true
    }

    /// Whether two pods give their places back together, so that the place of the one is no help to the other.
    fn shares_fate(&self, a: &PodInfo, b: &PodInfo) -> bool {
        let _ = (a, b);
        false
    }

    /// The plugin at this extension point, where it extends it.
    fn queue_sort(&self) -> Option<&dyn QueueSort> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn pre_enqueue(&self) -> Option<&dyn PreEnqueue> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn filter(&self) -> Option<&dyn Filter> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn post_filter(&self) -> Option<&dyn PostFilter> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn pre_score(&self) -> Option<&dyn PreScore> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn score(&self) -> Option<&dyn Score> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn reserve(&self) -> Option<&dyn Reserve> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn permit(&self) -> Option<&dyn Permit> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn pre_bind(&self) -> Option<&dyn PreBind> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn bind(&self) -> Option<&dyn Bind> {
        None
    }
    /// The plugin at this extension point, where it extends it.
    fn post_bind(&self) -> Option<&dyn PostBind> {
        None
    }
}

/// Orders the queue. Exactly one plugin does, the same in all profiles.
pub trait QueueSort: Send + Sync {
    /// Who goes first: the higher rank, and of equal ranks who came first.
    fn rank(&self, pod: &PodInfo) -> i64;
}

/// Says whether a pod may be tried at all.
pub trait PreEnqueue: Send + Sync {
    /// A refusal keeps the pod out of the queue until an event that [`Plugin::helps`].
    fn pre_enqueue(&self, pod: &PodInfo) -> Result<(), Status>;
}

/// What a plugin finds out before it looks at nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFiltered {
    /// Any node may do.
    Any,
    /// Only these nodes can do, by name.
    Only(BTreeSet<String>),
    /// The plugin's filter has nothing to say about this pod.
    Skip,
}

/// Looks at the pod and the whole cluster once, before nodes are filtered.
pub trait PreFilter: Send + Sync {
    /// Refuses the pod altogether, or narrows the nodes; keeps what the filter needs in `state`.
    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status>;

    /// Brings the state up to date as if `added` were on `node` too.
    fn add_pod(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        added: &PodInfo,
        node: &NodeInfo,
    ) {
        let _ = (cx, state, pod, added, node);
    }

    /// Brings the state up to date as if `removed` were not on `node`.
    fn remove_pod(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        removed: &PodInfo,
        node: &NodeInfo,
    ) {
        let _ = (cx, state, pod, removed, node);
    }
}

/// Says whether a pod can run on a node.
pub trait Filter: Send + Sync {
    /// `Err` with the reasons, in the words of events and conditions (`Insufficient cpu`).
    fn filter(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status>;
}

/// A node that would do if some pods were not there.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The node.
    pub node: Arc<str>,
    /// Who would have to go, the most important first.
    pub victims: Vec<Arc<PodInfo>>,
    /// How many of them a disruption budget protects.
    pub violations: i64,
}

/// What can be done about a pod that no node takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Nodes to choose from; none where nothing helps.
    pub candidates: Vec<Candidate>,
    /// Why nothing helps.
    pub refusal: Option<Status>,
    /// Whether a nomination that the pod has from before is void.
    pub clear_nomination: bool,
    /// Pods that wait for their permit and shall wait no longer, by uid.
    pub reject: Vec<Arc<str>>,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        let names = |c: &Self| c.victims.iter().map(|v| v.uid.clone()).collect::<Vec<_>>();
        self.node == other.node && self.violations == other.violations && names(self) == names(other)
    }
}

/// Asked where no node takes the pod; the first plugin with candidates ends the asking.
pub trait PostFilter: Send + Sync {
    /// What could be done. `framework` is the profile that filtered, to ask it again about changed nodes.
    fn post_filter(
        &self,
        cx: &Cycle<'_>,
        framework: &Framework,
        state: &CycleState,
        pod: &PodInfo,
        diagnosis: &Diagnosis,
    ) -> Proposal;
}

/// Whether a plugin has an opinion about where this pod runs best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// It has.
    Some,
    /// All nodes are alike to it.
    None,
}

/// Looks at the nodes that passed, before they are scored.
pub trait PreScore: Send + Sync {
    /// Keeps what the score needs in `state`.
    fn pre_score(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<Opinion, Status>;
}

/// Says how well a pod runs on a node that passed the filters.
pub trait Score: Send + Sync {
    /// More is better; 0 to [`MAX_SCORE`] once normalised.
    fn score(&self, cx: &Cycle<'_>, state: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64;

    /// Brings all nodes' scores into their range. `nodes` and `scores` go together.
    fn normalize(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        nodes: &[Arc<NodeInfo>],
        scores: &mut [i64],
    ) {
        let _ = (cx, state, pod, nodes, scores);
    }
}

/// The reference's `DefaultNormalizeScore`: the highest becomes 100, or 0 where `reverse` is set.
pub fn normalize(scores: &mut [i64], reverse: bool) {
    let most = scores.iter().copied().max().unwrap_or(0);
    for score in scores {
        *score = match most {
            0 if reverse => MAX_SCORE,
            0 => 0,
            _ if reverse => MAX_SCORE - MAX_SCORE * *score / most,
            _ => MAX_SCORE * *score / most,
        };
    }
}

/// Chooses what the pod gets on its node, before the next pod is looked at.
pub trait Reserve: Send + Sync {
    /// May put annotations into `state` that the pod gets with its binding.
    fn reserve(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status>;

    /// The pod won't be bound. Returns waiting pods, by uid, that shall not be bound either.
    fn unreserve(&self, cx: &Cycle<'_>, pod: &PodInfo) -> Vec<Arc<str>> {
        let _ = (cx, pod);
        Vec::new()
    }
}

/// What becomes of a pod that has its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Permission {
    /// It is bound. Waiting pods of these uids are let through too.
    Allow(Vec<Arc<str>>),
    /// It keeps its place and waits, at most this long.
    Wait(Duration),
    /// It is not bound.
    Reject(Status),
}

/// Says when a pod that has its place may be bound.
pub trait Permit: Send + Sync {
    /// `cx.waiting` has the pods that wait already; their places, and this pod's, count in `cx.snapshot`.
    fn permit(&self, cx: &Cycle<'_>, state: &CycleState, pod: &PodInfo, node: &str) -> Permission;
}

/// What I/O is done with.
#[derive(Clone, Debug)]
pub struct Io {
    /// Writes, under the profile's name.
    pub writer: Writer,
    /// Caches, which know this process' writes.
    pub caches: Caches,
    /// The time.
    pub clock: Clock,
    /// The scheduler's name.
    pub scheduler: Arc<str>,
}

/// Does what has to be done before a pod can be bound.
pub trait PreBind: Send + Sync {
    /// Whether there is anything to do, so that binding will take its time: where the pod will go is told meanwhile.
    fn has_work(&self, state: &CycleState, pod: &PodInfo, node: &str) -> bool {
        let _ = (state, pod, node);
        true
    }

    /// A refusal gives the place back.
    fn pre_bind<'a>(
        &'a self,
        io: &'a Io,
        state: &'a CycleState,
        pod: &'a PodInfo,
        node: &'a str,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

/// Binds a pod.
pub trait Bind: Send + Sync {
    /// `Ok(false)` leaves the pod to the next binder.
    fn bind<'a>(
        &'a self,
        io: &'a Io,
        state: &'a CycleState,
        pod: &'a PodInfo,
        node: &'a str,
    ) -> BoxFuture<'a, Result<bool, Status>>;
}

/// Is told of a pod that was bound.
pub trait PostBind: Send + Sync {
    /// The pod is on its node.
    fn post_bind(&self, state: &CycleState, pod: &PodInfo, node: &str);
}
