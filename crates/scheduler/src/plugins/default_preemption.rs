//! DefaultPreemption: where a pod finds no room, who less important would have to go so that it does.
//!
//! It only proposes. A node's victims are as few and as unimportant as can be, and those that a disruption budget
//! protects are spared where others will do. Invariant: a victim is always less important than the pod.

use std::sync::Arc;

use homeostat_model::Entropy;

use crate::framework::{
    Candidate, Code, Cycle, CycleState, Diagnosis, Event, Framework, Plugin, PostFilter, Proposal, Status,
    start,
};
use crate::snapshot::{Budget, NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Clone, Debug)]
pub struct DefaultPreemption {
    /// Of the nodes where it may help, this percentage is tried.
    pub percentage: usize,
    /// But at least so many.
    pub least: usize,
    /// Where the trying begins.
    pub entropy: Option<Entropy>,
}

impl Default for DefaultPreemption {
    fn default() -> Self {
        Self { percentage: 10, least: 100, entropy: None }
    }
}

impl Plugin for DefaultPreemption {
    fn name(&self) -> &'static str {
        "DefaultPreemption"
    }

    fn helps(&self, _: &Event, _: &PodInfo, _: &Snapshot) -> bool {
        // Those whose objections preemption removes say so themselves.
        false
    }

    fn post_filter(&self) -> Option<&dyn PostFilter> {
        Some(self)
    }
}

/// Whether a pod is going because of a preemption.
fn is_going(pod: &PodInfo) -> bool {
    let conditions = pod.pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let told = conditions.iter().find(|c| c.type_ == "DisruptionTarget");
    pod.class.terminating
        && told.is_some_and(|c| c.status == "True" && c.reason.as_deref() == Some("PreemptionByScheduler"))
}

impl DefaultPreemption {
    /// Why the pod may not make others go; `None` where it may.
    fn ineligible(cx: &Cycle<'_>, pod: &PodInfo, diagnosis: &Diagnosis) -> Option<&'static str> {
        if pod.spec().and_then(|s| s.preemption_policy.as_deref()) == Some("Never") {
            return Some("not eligible due to preemptionPolicy=Never.");
        }
        let nominated = pod.nominated()?;
        if diagnosis.code(nominated) == Some(Code::UnschedulableAndUnresolvable) {
            return None;
        }
        let mut there = cx.snapshot.node(nominated)?.pods.iter();
        let going = there.any(|p| p.priority < pod.priority && is_going(p));
        going.then_some("not eligible due to a terminating pod on the nominated node.")
    }

    /// Who would have to go from a node.
    fn victims(
        cx: &Cycle<'_>,
        framework: &Framework,
        state: &CycleState,
        pod: &PodInfo,
        node: &Arc<NodeInfo>,
    ) -> Result<Candidate, Status> {
        let mut potential: Vec<Arc<PodInfo>> =
            node.pods.iter().filter(|p| p.priority < pod.priority).cloned().collect();
        if potential.is_empty() {
            return Err(Status::unresolvable("No preemption victims found for incoming pod"));
        }
        let mut state = state.clone();
        let mut copy = Arc::new(NodeInfo::clone(node));
        let remove = |state: &mut CycleState, copy: &mut Arc<NodeInfo>, p: &Arc<PodInfo>| {
            Arc::make_mut(copy).remove(&p.uid);
            framework.remove_pod(cx, state, pod, p, copy);
        };
        for p in &potential {
            remove(&mut state, &mut copy, p);
        }
        framework.filter_nominated(cx, &state, pod, &copy)?;
        // The most important are spared first, and first of all those that are protected.
        potential.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| start(a).cmp(&start(b))));
        let (protected, others) = protect(&potential, cx.snapshot.objects.budgets.values());
        let mut victims = Vec::new();
        let mut spare = |list: Vec<Arc<PodInfo>>| {
            let before = victims.len();
            for p in list {
                Arc::make_mut(&mut copy).add(p.clone());
                framework.add_pod(cx, &mut state, pod, &p, &copy);
                if framework.filter_nominated(cx, &state, pod, &copy).is_err() {
                    remove(&mut state, &mut copy, &p);
                    victims.push(p);
                }
            }
            victims.len() - before
        };
        let violations = spare(protected);
        spare(others);
        victims.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| start(a).cmp(&start(b))));
        Ok(Candidate {
            node: node.name.clone(),
            victims,
            violations: i64::try_from(violations).unwrap_or(i64::MAX),
        })
    }
}

/// Pods whose going would violate a budget, and the others. The order stays.
fn protect<'b>(
    pods: &[Arc<PodInfo>],
    budgets: impl Iterator<Item = &'b Budget>,
) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
    let mut budgets: Vec<(&Budget, i32)> = budgets.map(|b| (b, b.allowed)).collect();
    pods.iter().cloned().partition(|pod| {
        let mut violated = false;
        for (budget, allowed) in &mut budgets {
            let protects = *budget.namespace == *pod.namespace()
                && !pod.class.labels.is_empty()
                && !budget.selector.is_empty()
                && pod.class.selected(&budget.selector)
                && !budget.disrupted.contains(pod.key.name());
            if protects {
                *allowed -= 1;
                violated |= *allowed < 0;
            }
        }
        violated
    })
}

fn refusal(text: &str) -> Option<Status> {
    Some(Status::unschedulable(format!("preemption: {text}")))
}

impl PostFilter for DefaultPreemption {
    fn post_filter(
        &self,
        cx: &Cycle<'_>,
        framework: &Framework,
        state: &CycleState,
        pod: &PodInfo,
        diagnosis: &Diagnosis,
    ) -> Proposal {
        let mut proposal =
            Proposal { candidates: Vec::new(), refusal: None, clear_nomination: false, reject: Vec::new() };
        if let Some(why) = Self::ineligible(cx, pod, diagnosis) {
            proposal.refusal = refusal(why);
            return proposal;
        }
        let hopeful: Vec<&Arc<NodeInfo>> =
            cx.snapshot.nodes().filter(|n| diagnosis.code(&n.name) == Some(Code::Unschedulable)).collect();
        let enough = (hopeful.len() * self.percentage / 100).max(self.least).min(hopeful.len());
        let offset = self.entropy.as_ref().map_or(0, |e| e.below(hopeful.len() as u64));
        let offset = usize::try_from(offset).unwrap_or(0);
        let mut said = Diagnosis::new(cx.snapshot.len());
        said.absent = Some(Status::unresolvable("Preemption is not helpful for scheduling"));
        let mut spotless = false;
        for i in 0..hopeful.len() {
            let Some(node) = hopeful.get((offset + i) % hopeful.len()) else { break };
            match Self::victims(cx, framework, state, pod, node) {
                // It fits without anybody going: the next attempt finds that out.
                Ok(candidate) if candidate.victims.is_empty() => {}
                Ok(candidate) => {
                    spotless |= candidate.violations == 0;
                    proposal.candidates.push(candidate);
                    if spotless && proposal.candidates.len() >= enough {
                        break;
                    }
                }
                Err(status) => said.refuse(node.name.clone(), status),
            }
        }
        if proposal.candidates.is_empty() {
            proposal.refusal = refusal(&said.text());
            proposal.clear_nomination = true;
        }
        proposal
    }
}
