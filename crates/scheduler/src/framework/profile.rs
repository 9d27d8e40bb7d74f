//! A profile: the plugins in force for pods that name one scheduler, asked point by point.
//!
//! Pure but for its atomic start: the same pod, snapshot, state and start give the same answers. Which node of those
//! that are equally good is chosen is for [`select`](Framework::select) and its entropy.
//! Invariant: a node is never chosen that a filter refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use homeostat_model::Entropy;

use super::diagnosis::{Diagnosis, EXTENDER};
use super::event::Event;
use super::plugin::{
    Candidate, Cycle, Filter, Opinion, Permission, Plugin, PostFilter, PreFilter, PreFiltered, Proposal,
};
use super::state::CycleState;
use super::status::{Code, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// Fewer nodes than this are all looked at.
const MIN_FEASIBLE: usize = 100;
/// Of many nodes at least this percentage is looked for.
const MIN_PERCENTAGE: usize = 5;
/// What a set of 64 bits holds.
pub(crate) const MAX_PLUGINS: usize = 64;

/// What is extended, by a plugin's place in the profile. Every list is in the order of asking.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// Which plugin sorts the queue.
    pub queue_sort: Vec<usize>,
    /// Plugins of this point.
    pub pre_enqueue: Vec<usize>,
    /// Plugins of this point.
    pub pre_filter: Vec<usize>,
    /// Plugins of this point.
    pub filter: Vec<usize>,
    /// Plugins of this point.
    pub post_filter: Vec<usize>,
    /// Plugins of this point.
    pub pre_score: Vec<usize>,
    /// Plugins of this point, with their weights.
    pub score: Vec<(usize, i64)>,
    /// Plugins of this point.
    pub reserve: Vec<usize>,
    /// Plugins of this point.
    pub permit: Vec<usize>,
    /// Plugins of this point.
    pub pre_bind: Vec<usize>,
    /// Plugins of this point.
    pub bind: Vec<usize>,
    /// Plugins of this point.
    pub post_bind: Vec<usize>,
}

/// The plugins in force under one scheduler's name.
pub struct Framework {
    /// The name that pods choose it by.
    pub name: Arc<str>,
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
    pub(crate) points: Points,
    /// Of how many nodes the filters' yes is enough, in percent; 0 adapts to the number of nodes.
    pub percentage: u32,
}

impl std::fmt::Debug for Framework {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.plugins.iter().map(|p| p.name()).collect();
        f.debug_struct("Framework").field("name", &self.name).field("plugins", &names).finish_non_exhaustive()
    }
}

/// The nodes that passed, and why the others did not.
#[derive(Debug)]
pub struct Feasible {
    /// Nodes that passed, in the order in which they were looked at.
    pub nodes: Vec<Arc<NodeInfo>>,
    /// Why the others did not.
    pub diagnosis: Diagnosis,
}

fn union(text: &[&str]) -> String {
    format!("node(s) didn't satisfy plugin(s) [{}]", text.join(" "))
}

impl Framework {
    /// Plugins in the order in which all of them are asked at every point that they extend, each with its weight. For
    /// tests and programs; configurations have more to say.
    pub fn new(name: &str, plugins: Vec<(Arc<dyn Plugin>, i64)>) -> Self {
        let mut points = Points::default();
        for (i, (plugin, weight)) in plugins.iter().enumerate() {
            let join = |list: &mut Vec<usize>, extends: bool| {
                if extends {
                    list.push(i);
                }
            };
            join(&mut points.queue_sort, plugin.queue_sort().is_some());
            join(&mut points.pre_enqueue, plugin.pre_enqueue().is_some());
            join(&mut points.pre_filter, plugin.pre_filter().is_some());
            join(&mut points.filter, plugin.filter().is_some());
            join(&mut points.post_filter, plugin.post_filter().is_some());
            join(&mut points.pre_score, plugin.pre_score().is_some());
            join(&mut points.reserve, plugin.reserve().is_some());
            join(&mut points.permit, plugin.permit().is_some());
            join(&mut points.pre_bind, plugin.pre_bind().is_some());
            join(&mut points.bind, plugin.bind().is_some());
            join(&mut points.post_bind, plugin.post_bind().is_some());
            if plugin.score().is_some() {
                points.score.push((i, *weight));
            }
        }
        let plugins = plugins.into_iter().map(|(p, _)| p).collect();
        Self { name: name.into(), plugins, points, percentage: 0 }
    }

    fn at<'a, T: ?Sized + 'a>(
        &'a self,
        list: &'a [usize],
        of: impl Fn(&'a dyn Plugin) -> Option<&'a T> + 'a,
    ) -> impl Iterator<Item = (usize, &'static str, &'a T)> + 'a {
        list.iter().filter_map(move |i| {
            let plugin = &**self.plugins.get(*i)?;
            Some((*i, plugin.name(), of(plugin)?))
        })
    }

    /// A pod's rank in the queue.
    pub fn rank(&self, pod: &PodInfo) -> i64 {
        let mut sorts = self.at(&self.points.queue_sort, |p| p.queue_sort());
        sorts.next().map_or(i64::from(pod.priority), |(_, _, sort)| sort.rank(pod))
    }

    /// Whether a pod may be tried.
    pub fn pre_enqueue(&self, pod: &PodInfo) -> Result<(), Status> {
        for (_, name, plugin) in self.at(&self.points.pre_enqueue, |p| p.pre_enqueue()) {
            plugin.pre_enqueue(pod).map_err(|s| s.by(name))?;
        }
        Ok(())
    }

    /// Whether an event may have removed the objection of one of these plugins.
    pub fn helps(
        &self,
        event: &Event,
        pod: &PodInfo,
        refused_by: &BTreeSet<&'static str>,
        snapshot: &Snapshot,
    ) -> bool {
        if matches!(event, Event::Flush) {
            return true;
        }
        let deleted;
        let event = match event {
            Event::PlaceGivenBack(other) => {
                if other.uid == pod.uid || self.plugins.iter().any(|p| p.shares_fate(other, pod)) {
                    return false;
                }
                deleted = Event::AssignedPodDeleted(other.clone());
                &deleted
            }
            event => event,
        };
        if refused_by.is_empty() || refused_by.contains(EXTENDER) {
            return true;
        }
        self.plugins.iter().filter(|p| refused_by.contains(p.name())).any(|p| p.helps(event, pod, snapshot))
    }

    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<(Option<BTreeSet<String>>, Vec<&'static str>), Status> {
        let (mut only, mut narrowed): (Option<BTreeSet<String>>, Vec<&str>) = (None, Vec::new());
        for (i, name, plugin) in self.at(&self.points.pre_filter, |p| p.pre_filter()) {
            match plugin.pre_filter(cx, state, pod).map_err(|s| s.at("PreFilter", name))? {
                PreFiltered::Any => {}
                PreFiltered::Skip => state.skip_filter |= 1 << i,
                PreFiltered::Only(names) => {
                    narrowed.push(name);
                    only = Some(match only {
                        Some(so_far) => so_far.intersection(&names).cloned().collect(),
                        None => names,
                    });
                    if only.as_ref().is_some_and(BTreeSet::is_empty) {
                        let text = match narrowed[..] {
                            [one] => format!("node(s) didn't satisfy plugin {one}"),
                            _ => format!(
                                "node(s) didn't satisfy plugin(s) [{}] simultaneously",
                                narrowed.join(" ")
                            ),
                        };
                        return Err(Status::unresolvable(text).by(name));
                    }
                }
            }
        }
        narrowed.sort_unstable();
        Ok((only, narrowed))
    }

    /// What the filters say about a node. The first that refuses speaks for it.
    pub fn filter(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status> {
        for (i, name, plugin) in
            self.at(&self.points.filter, |p: &dyn Plugin| -> Option<&dyn Filter> { p.filter() })
        {
            if state.skip_filter & (1 << i) == 0 {
                plugin.filter(cx, state, pod, node).map_err(|s| s.by(name))?;
            }
        }
        Ok(())
    }

    /// As [`filter`](Self::filter), with the pods counted that made room on the node and are as important.
    ///
    /// The node must do with them and without: they may come, and they may not.
    pub fn filter_nominated(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        node: &Arc<NodeInfo>,
    ) -> Result<(), Status> {
        if cx.snapshot.has_nominated() {
            let first = |n: &&Arc<PodInfo>| n.priority >= pod.priority && n.uid != pod.uid;
            let mut nominated = cx.snapshot.nominated(&node.name).filter(first).peekable();
            if nominated.peek().is_some() {
                let (mut state, mut with) = (state.clone(), NodeInfo::clone(node));
                for other in nominated {
                    with.add(other.clone());
                    self.add_pod(cx, &mut state, pod, other, &with);
                }
                self.filter(cx, &state, pod, &with)?;
            }
        }
        self.filter(cx, state, pod, node)
    }

    /// Brings the state up to date as if `added` were on `node`.
    pub fn add_pod(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        added: &PodInfo,
        node: &NodeInfo,
    ) {
        for (i, _, plugin) in
            self.at(&self.points.pre_filter, |p: &dyn Plugin| -> Option<&dyn PreFilter> { p.pre_filter() })
        {
            if state.skip_filter & (1 << i) == 0 {
                plugin.add_pod(cx, state, pod, added, node);
            }
        }
    }

    /// Brings the state up to date as if `removed` were not on `node`.
    pub fn remove_pod(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        removed: &PodInfo,
        node: &NodeInfo,
    ) {
        for (i, _, plugin) in
            self.at(&self.points.pre_filter, |p: &dyn Plugin| -> Option<&dyn PreFilter> { p.pre_filter() })
        {
            if state.skip_filter & (1 << i) == 0 {
                plugin.remove_pod(cx, state, pod, removed, node);
            }
        }
    }

    /// How many nodes that do are enough.
    pub fn enough(&self, nodes: usize) -> usize {
        if nodes < MIN_FEASIBLE {
            return nodes;
        }
        let percentage = match self.percentage {
            0 => 50_usize.saturating_sub(nodes / 125).max(MIN_PERCENTAGE),
            p => p as usize,
        };
        (nodes * percentage / 100).clamp(MIN_FEASIBLE, nodes)
    }

    /// The nodes that can run a pod: as many as are enough, from `start` on, which is moved behind the last one that
    /// was looked at. `all`: extenders filter or score too, so one node is not enough even where nothing scores.
    ///
    /// `Err` where something broke.
    pub fn feasible(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        start: &mut usize,
        all: bool,
    ) -> Result<Feasible, Status> {
        let total = cx.snapshot.len();
        let mut diagnosis = Diagnosis::new(total);
        if total == 0 {
            return Ok(Feasible { nodes: Vec::new(), diagnosis });
        }
        let (only, narrowed) = match self.pre_filter(cx, state, pod) {
            Ok(found) => found,
            Err(status) if status.is_rejected() => {
                diagnosis.pre_filter = status.message();
                diagnosis.note(&status);
                diagnosis.absent = Some(status);
                return Ok(Feasible { nodes: Vec::new(), diagnosis });
            }
            Err(status) => return Err(status),
        };
        // A pod that made room goes there if it still can.
        if let Some(node) = pod.nominated().and_then(|n| cx.snapshot.node(n))
            && only.as_ref().is_none_or(|o| o.contains(&*node.name))
            && self.filter_nominated(cx, state, pod, node).is_ok()
        {
            return Ok(Feasible { nodes: vec![node.clone()], diagnosis });
        }
        if let Some(only) = only {
            diagnosis.absent = Some(Status::unresolvable(union(&narrowed)));
            diagnosis.plugins.extend(narrowed.iter().copied());
            let nodes = only.iter().filter_map(|n| cx.snapshot.node(n));
            let nodes = self.pass(cx, state, pod, nodes, usize::MAX, &mut diagnosis)?.0;
            return Ok(Feasible { nodes, diagnosis });
        }
        let enough = if all || !self.points.score.is_empty() { self.enough(total) } else { 1 };
        let from = *start % total;
        let around = (0..total).filter_map(|i| cx.snapshot.at((from + i) % total));
        let (nodes, looked) = self.pass(cx, state, pod, around, enough, &mut diagnosis)?;
        *start = (from + looked) % total;
        Ok(Feasible { nodes, diagnosis })
    }

    fn pass<'a>(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        nodes: impl Iterator<Item = &'a Arc<NodeInfo>>,
        enough: usize,
        diagnosis: &mut Diagnosis,
    ) -> Result<(Vec<Arc<NodeInfo>>, usize), Status> {
        let (mut passed, mut looked) = (Vec::new(), 0);
        for node in nodes {
            looked += 1;
            match self.filter_nominated(cx, state, pod, node) {
                Ok(()) => {
                    passed.push(node.clone());
                    if passed.len() >= enough {
                        break;
                    }
                }
                Err(status) if status.code == Code::Error => return Err(status),
                Err(status) => diagnosis.refuse(node.name.clone(), status),
            }
        }
        Ok((passed, looked))
    }

    /// How good each of the nodes is, all plugins' opinions together.
    pub fn scores(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<Vec<i64>, Status> {
        for (i, name, plugin) in self.at(&self.points.pre_score, |p| p.pre_score()) {
            if plugin.pre_score(cx, state, pod, nodes).map_err(|s| s.at("PreScore", name))? == Opinion::None {
                state.skip_score |= 1 << i;
            }
        }
        let mut total = vec![0_i64; nodes.len()];
        let mut own = vec![0_i64; nodes.len()];
        for (i, weight) in &self.points.score {
            if state.skip_score & (1 << i) != 0 {
                continue;
            }
            let Some(plugin) = self.plugins.get(*i).and_then(|p| p.score()) else { continue };
            for (score, node) in own.iter_mut().zip(nodes) {
                *score = plugin.score(cx, state, pod, node);
            }
            plugin.normalize(cx, state, pod, nodes, &mut own);
            for (sum, score) in total.iter_mut().zip(&own) {
                *sum += weight * score;
            }
        }
        Ok(total)
    }

    /// The best of the nodes; of equally good ones, any.
    pub fn select<'n>(
        nodes: &'n [Arc<NodeInfo>],
        scores: &[i64],
        entropy: &Entropy,
    ) -> Option<&'n Arc<NodeInfo>> {
        let most = scores.iter().max()?;
        let best: Vec<&Arc<NodeInfo>> =
            nodes.iter().zip(scores).filter(|(_, s)| *s == most).map(|(n, _)| n).collect();
        let pick = if best.len() > 1 { entropy.below(best.len() as u64) } else { 0 };
        best.get(usize::try_from(pick).unwrap_or(0)).copied()
    }

    /// The best node for a pod, without extenders. `Err` with the diagnosis where there is none.
    pub fn schedule(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        start: &mut usize,
        entropy: &Entropy,
    ) -> Result<Result<Arc<NodeInfo>, Diagnosis>, Status> {
        let feasible = self.feasible(cx, state, pod, start, false)?;
        match &feasible.nodes[..] {
            [] => Ok(Err(feasible.diagnosis)),
            [one] => Ok(Ok(one.clone())),
            nodes => {
                let scores = self.scores(cx, state, pod, nodes)?;
                Ok(Self::select(nodes, &scores, entropy).cloned().ok_or(feasible.diagnosis))
            }
        }
    }

    /// What can be done about a pod that no node takes. Puts what was said into the diagnosis.
    pub fn post_filter(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        diagnosis: &mut Diagnosis,
    ) -> Proposal {
        let mut all =
            Proposal { candidates: Vec::new(), refusal: None, clear_nomination: false, reject: Vec::new() };
        let mut said = Vec::new();
        for (_, name, plugin) in
            self.at(&self.points.post_filter, |p: &dyn Plugin| -> Option<&dyn PostFilter> { p.post_filter() })
        {
            let proposal = plugin.post_filter(cx, self, state, pod, diagnosis);
            all.reject.extend(proposal.reject);
            all.clear_nomination |= proposal.clear_nomination;
            if let Some(status) = proposal.refusal {
                said.push(status.message());
                all.refusal = Some(status.by(name));
            }
            if !proposal.candidates.is_empty() {
                all.candidates = proposal.candidates;
                break;
            }
        }
        said.retain(|s| !s.is_empty());
        diagnosis.post_filter = said.join(", ");
        all
    }

    /// Chooses what the pod gets on its node.
    pub fn reserve(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status> {
        for (_, name, plugin) in self.at(&self.points.reserve, |p| p.reserve()) {
            plugin.reserve(cx, state, pod, node).map_err(|s| s.at("Reserve", name))?;
        }
        Ok(())
    }

    /// Gives back what was reserved, the last plugin first. Returns waiting pods that shall not be bound either.
    pub fn unreserve(&self, cx: &Cycle<'_>, pod: &PodInfo) -> Vec<Arc<str>> {
        let list: Vec<usize> = self.points.reserve.iter().rev().copied().collect();
        self.at(&list, |p| p.reserve()).flat_map(|(_, _, plugin)| plugin.unreserve(cx, pod)).collect()
    }

    /// Whether the pod may be bound now, and which plugin it waits for. The longest wait counts; one refusal is enough.
    pub fn permit(
        &self,
        cx: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        node: &str,
    ) -> (Permission, &'static str) {
        let (mut wait, mut through) = (None, Vec::new());
        for (_, name, plugin) in self.at(&self.points.permit, |p| p.permit()) {
            match plugin.permit(cx, state, pod, node) {
                Permission::Allow(others) => through.extend(others),
                Permission::Wait(time) => wait = wait.max(Some((time, name))),
                Permission::Reject(status) => {
                    return (Permission::Reject(status.at("Permit", name)), name);
                }
            }
        }
        wait.map_or((Permission::Allow(through), ""), |(time, name)| (Permission::Wait(time), name))
    }

    /// Whether something has to be done before the pod can be bound.
    pub fn has_work(&self, state: &CycleState, pod: &PodInfo, node: &str) -> bool {
        self.at(&self.points.pre_bind, |p| p.pre_bind())
            .any(|(_, _, plugin)| plugin.has_work(state, pod, node))
    }
}

/// The best of several nodes to make room on: the fewest protected victims, then the least important ones, then the
/// least sum of importance, then the fewest, then those that started last.
pub fn pick(candidates: Vec<Candidate>) -> Option<Candidate> {
    let sum = |c: &Candidate| {
        c.victims.iter().map(|v| i64::from(v.priority) + i64::from(i32::MAX) + 1).sum::<i64>()
    };
    let earliest = |c: &Candidate| {
        // Of the most important victims, when the first started: later is better.
        let most = c.victims.iter().map(|v| v.priority).max();
        let started = c.victims.iter().filter(|v| Some(v.priority) == most).filter_map(|v| start(v)).min();
        std::cmp::Reverse(started)
    };
    let key = |c: &Candidate| {
        let highest = c.victims.iter().map(|v| v.priority).max();
        (c.violations, highest, sum(c), c.victims.len(), earliest(c))
    };
    candidates.into_iter().reduce(|best, c| if key(&c) < key(&best) { c } else { best })
}

/// When a pod started.
pub(crate) fn start(pod: &PodInfo) -> Option<homeostat_model::Timestamp> {
    let started = pod.pod.status.as_ref().and_then(|s| s.start_time.as_ref());
    started.or(pod.pod.metadata.creation_timestamp.as_ref()).map(|t| t.0)
}
