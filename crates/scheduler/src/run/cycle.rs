//! One pod's attempt: filter, score, reserve, permit; and what follows where it fails, now or while it is bound.

use std::sync::Arc;

use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::Instant;

use super::bind::{Placement, denominate, evict, nominate};
use super::report::{self, Nomination};
use super::{Done, Held, Scheduler};
use crate::framework::{
    Candidate, Code, Cycle, CycleState, Diagnosis, Framework, Permission, Proposal, Status, pick,
};
use crate::plugins::Decisions;
use crate::queue::Failure;
use crate::snapshot::{NodeInfo, PodInfo};

/// How an attempt failed.
enum Failed {
    /// No node does.
    Fit(Box<Diagnosis>, Box<Proposal>),
    /// Something else.
    Other(Status),
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        Self::Other(status)
    }
}

impl Scheduler {
    /// Tries to give a pod a place.
    pub(super) async fn attempt(&mut self, pod: Arc<PodInfo>, framework: Arc<Framework>, now: Instant) {
        let mut state = CycleState::default();
        match self.find(&pod, &framework, &mut state).await {
            Ok(node) => self.settle(pod, framework, state, &node, now).await,
            Err(Failed::Fit(diagnosis, proposal)) => {
                self.unfit(&pod, &framework, *diagnosis, *proposal, now).await;
            }
            Err(Failed::Other(status)) => {
                self.fail(&pod, &framework, &status, &Nomination::Keep, now).await;
            }
        }
    }

    /// The best node, after plugins and extenders.
    async fn find(
        &mut self,
        pod: &Arc<PodInfo>,
        framework: &Arc<Framework>,
        state: &mut CycleState,
    ) -> Result<Arc<NodeInfo>, Failed> {
        let waiting = self.waiting();
        let extenders = self.extenders.clone();
        let cx = Cycle { snapshot: &self.world.snapshot, waiting: &waiting, now: self.clock.now() };
        let all = extenders.look_at_nodes();
        let feasible = framework.feasible(&cx, state, pod, &mut self.start, all)?;
        let mut diagnosis = feasible.diagnosis;
        let nodes = extenders.filter(pod, feasible.nodes, &mut diagnosis).await?;
        match &nodes[..] {
            [] => {
                let none = Proposal {
                    candidates: Vec::new(),
                    refusal: None,
                    clear_nomination: false,
                    reject: Vec::new(),
                };
                let mut proposal = if diagnosis.nodes == 0 {
                    none
                } else {
                    framework.post_filter(&cx, state, pod, &mut diagnosis)
                };
                if !proposal.candidates.is_empty() {
                    let candidates = std::mem::take(&mut proposal.candidates);
                    proposal.candidates = extenders.candidates(pod, candidates, cx.snapshot).await?;
                }
                Err(Failed::Fit(Box::new(diagnosis), Box::new(proposal)))
            }
            [one] => Ok(one.clone()),
            nodes => {
                let mut scores = framework.scores(&cx, state, pod, nodes)?;
                extenders.score(pod, nodes, &mut scores).await;
                let best = Framework::select(nodes, &scores, &self.entropy).cloned();
                best.ok_or_else(|| Failed::Other(Status::error("no node was selected")))
            }
        }
    }

    /// Reserves a pod's place, and binds it or holds it back.
    async fn settle(
        &mut self,
        pod: Arc<PodInfo>,
        framework: Arc<Framework>,
        mut state: CycleState,
        node: &Arc<NodeInfo>,
        now: Instant,
    ) {
        let waiting = self.waiting();
        let time = self.clock.now();
        let cx = Cycle { snapshot: &self.world.snapshot, waiting: &waiting, now: time };
        let reserved = framework.reserve(&cx, &mut state, &pod, node);
        if let Err(status) = reserved {
            let reject = framework.unreserve(&cx, &pod);
            let why = on_node(&node.name, &status);
            self.fail(&pod, &framework, &why, &Nomination::Keep, now).await;
            self.reject_all(reject, now).await;
            return;
        }
        let assumed = self.world.assume(&pod, &node.name, &state.annotations);
        if let Some(decisions) = state.read::<Decisions>().filter(|d| !d.volumes.is_empty()) {
            let volumes = decisions.volumes.iter().map(|(v, _)| v.clone()).collect();
            self.world.snapshot.objects.promised.insert(pod.uid.clone(), volumes);
        }
        let cx = Cycle { snapshot: &self.world.snapshot, waiting: &waiting, now: time };
        let (permission, plugin) = framework.permit(&cx, &state, &assumed, &node.name);
        let placement = Placement { framework, state, pod: assumed, node: node.name.clone() };
        match permission {
            Permission::Allow(others) => {
                self.send(placement);
                for uid in others {
                    if let Some(held) = self.held.remove(&uid) {
                        self.send(held.placement);
                    }
                }
            }
            Permission::Wait(wait) => {
                let pod = placement.pod.clone();
                if let Some(voice) = self.voice(&placement.framework) {
                    nominate(&voice.io, &pod, &placement.node).await;
                }
                self.held.insert(pod.uid.clone(), Held { placement, since: now, wait, plugin });
                self.world.waits(pod, now);
            }
            Permission::Reject(status) => {
                let current = self.current(&placement.pod.key);
                let why = on_node(&placement.node, &status);
                self.undo(&placement, current.as_ref(), &why, now).await;
            }
        }
    }

    /// No node does: says so, and makes room where that helps.
    async fn unfit(
        &mut self,
        pod: &Arc<PodInfo>,
        framework: &Arc<Framework>,
        diagnosis: Diagnosis,
        proposal: Proposal,
        now: Instant,
    ) {
        let nomination = match pick(proposal.candidates) {
            Some(chosen) => {
                let node = chosen.node.to_string();
                self.make_room(pod, framework, chosen, now).await;
                Nomination::Set(Some(node))
            }
            None if proposal.clear_nomination => {
                self.world.snapshot.denominate(&pod.uid);
                Nomination::Set(None)
            }
            None => Nomination::Keep,
        };
        let failure =
            Failure { refused_by: diagnosis.plugins.clone(), pending: diagnosis.pending, error: false };
        self.world.queue.failed(&pod.uid, failure, &self.world.snapshot, now);
        self.tell(pod, framework, "Unschedulable", &diagnosis.text(), &nomination).await;
        self.reject_all(proposal.reject, now).await;
    }

    async fn make_room(
        &mut self,
        pod: &Arc<PodInfo>,
        framework: &Arc<Framework>,
        chosen: Candidate,
        now: Instant,
    ) {
        let Some(voice) = self.voice(framework) else { return };
        let node = chosen.node.clone();
        // Less important pods that count on room there look elsewhere.
        let below: Vec<Arc<PodInfo>> =
            self.world.snapshot.nominated(&node).filter(|p| p.priority < pod.priority).cloned().collect();
        for other in &below {
            self.world.snapshot.denominate(&other.uid);
        }
        self.world.snapshot.nominate(node.clone(), pod.clone());
        let mut victims = Vec::new();
        for victim in chosen.victims {
            if self.held.contains_key(&victim.uid) {
                let why = Status::unschedulable("preempted");
                self.reject(&victim.uid, &why, now).await;
            } else {
                victims.push(victim);
            }
        }
        let pod = pod.clone();
        self.beside.spawn(async move {
            for other in below {
                denominate(&voice.io, &other).await;
            }
            for victim in victims {
                if let Err(error) = evict(&voice, &victim, &pod, &node).await {
                    tracing::warn!(victim = %victim.key, pod = %pod.key, %error, "cannot preempt");
                }
            }
        });
    }

    /// An attempt ended with one status.
    async fn fail(
        &mut self,
        pod: &Arc<PodInfo>,
        framework: &Arc<Framework>,
        status: &Status,
        nomination: &Nomination,
        now: Instant,
    ) {
        let rejected = status.is_rejected();
        let mut failure = Failure { error: !rejected, ..Failure::default() };
        if rejected && !status.plugin.is_empty() {
            failure.refused_by.insert(status.plugin);
        }
        failure.pending = status.code == Code::Pending;
        self.world.queue.failed(&pod.uid, failure, &self.world.snapshot, now);
        let reason = if rejected { "Unschedulable" } else { "SchedulerError" };
        self.tell(pod, framework, reason, &status.message(), nomination).await;
    }

    async fn tell(
        &mut self,
        pod: &Arc<PodInfo>,
        framework: &Arc<Framework>,
        reason: &str,
        text: &str,
        nomination: &Nomination,
    ) {
        let Some(voice) = self.voice(framework) else { return };
        // In order with what follows for this pod; the event needs no order.
        report::explain(&voice.io, pod, reason, text, nomination).await;
        let (pod, text) = (pod.clone(), text.to_owned());
        self.beside.spawn(async move { report::failed(&voice.recorder, &pod, &text).await });
    }

    /// A binding is over.
    pub(super) async fn bound(&mut self, done: Done, now: Instant) {
        let Done { placement, result } = done;
        let uid = placement.pod.uid.clone();
        match result {
            Ok(()) => {
                self.world.snapshot.objects.promised.remove(&uid);
                self.world.queue.remove(&uid);
            }
            Err(status) => {
                // Bound or deleted by somebody else meanwhile: then there is nothing to say.
                let current = match self.voice(&placement.framework) {
                    Some(voice) => voice.io.writer.get::<Pod>(&placement.pod.key).await,
                    None => Ok(None),
                };
                let current = match current {
                    Ok(pod) => pod.map(Arc::new),
                    Err(_) => self.current(&placement.pod.key),
                };
                self.undo(&placement, current.as_ref(), &status, now).await;
            }
        }
    }

    /// The pod as the API server has it.
    fn current(&self, key: &Key) -> Option<Arc<Pod>> {
        self.pods.get(key)
    }

    /// Takes a place back, and tells the pod why.
    async fn undo(&mut self, placement: &Placement, current: Option<&Arc<Pod>>, why: &Status, now: Instant) {
        let reject = self.release(placement);
        if let Some(pod) = self.world.give_back(&placement.pod.uid, current, now) {
            self.fail_bound(&pod, placement, why, now).await;
        }
        self.reject_all(reject, now).await;
    }

    /// A pod that is gone leaves its place.
    pub(super) async fn abandon(&mut self, placement: &Placement, now: Instant) {
        let reject = self.release(placement);
        self.world.give_back(&placement.pod.uid, None, now);
        self.reject_all(reject, now).await;
    }

    fn release(&self, placement: &Placement) -> Vec<Arc<str>> {
        let waiting = self.waiting();
        let cx = Cycle { snapshot: &self.world.snapshot, waiting: &waiting, now: self.clock.now() };
        placement.framework.unreserve(&cx, &placement.pod)
    }

    /// A pod that waits for its permit doesn't get it, nor do those that it takes along.
    pub(super) async fn reject(&mut self, uid: &Arc<str>, why: &Status, now: Instant) {
        let mut list = vec![uid.clone()];
        while let Some(uid) = list.pop() {
            let Some(Held { placement, plugin, .. }) = self.held.remove(&uid) else { continue };
            list.extend(self.release(&placement));
            let current = self.current(&placement.pod.key);
            if let Some(pod) = self.world.give_back(&uid, current.as_ref(), now) {
                let why = on_node(&placement.node, &why.clone().by(plugin));
                self.fail_bound(&pod, &placement, &why, now).await;
            }
        }
    }

    /// A pod that had its place doesn't get there: it doesn't count on that node any more, and nor shall others.
    async fn fail_bound(&mut self, pod: &Arc<PodInfo>, placement: &Placement, why: &Status, now: Instant) {
        self.world.snapshot.denominate(&pod.uid);
        self.fail(pod, &placement.framework, why, &Nomination::Clear, now).await;
    }

    async fn reject_all(&mut self, uids: Vec<Arc<str>>, now: Instant) {
        let why = Status::unschedulable("another pod of its group has no place");
        for uid in uids {
            self.reject(&uid, &why, now).await;
        }
    }
}

/// A refusal that came after the node was chosen, in the words of one about all nodes: there was only this one.
fn on_node(node: &Arc<str>, status: &Status) -> Status {
    if !status.is_rejected() {
        return status.clone();
    }
    let mut diagnosis = Diagnosis::new(1);
    diagnosis.refuse(node.clone(), status.clone());
    Status { reasons: vec![diagnosis.text().into()], ..status.clone() }
}
