//! What a Job needs now: a pure function of the Job, its pods and the time.
//!
//! A Job ends in two steps: first a condition says what it is going to be (`SuccessCriteriaMet`, `FailureTarget`) and
//! its pods are stopped; when none is left and all are counted, the final condition follows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::Event;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::failure::{self, Meaning};
use super::index::{self, Indexes};
use super::template::{self, New};
use super::{ended, indexes, is_tracked};
use crate::common::{pod_control, pods};

const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";
const MET: &str = "SuccessCriteriaMet";
const TARGET: &str = "FailureTarget";
const SUSPENDED: &str = "Suspended";

/// What a plan is made from.
pub(super) struct State<'a> {
    pub(super) job: &'a Job,
    pub(super) spec: &'a JobSpec,
    /// The Job's own pods.
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<New>,
    /// Pods to be deleted because the Job fails: they count as failed.
    pub(super) stop: Vec<Arc<Pod>>,
    /// Pods to be deleted that don't count: too many, suspended, or not needed for success.
    pub(super) take_back: Vec<Arc<Pod>>,
    /// Pods whose end the status counts: their finalizers go once it is written.
    pub(super) counted: Vec<Arc<Pod>>,
    pub(super) status: JobStatus,
    pub(super) events: Vec<Event>,
    pub(super) again: Option<Duration>,
}

/// Whether a condition holds.
fn holds(status: &JobStatus, kind: &str) -> bool {
    find(status, kind).is_some_and(|c| c.status == "True")
}

fn find<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    status.conditions.iter().flatten().find(|c| c.type_ == kind)
}

/// Whether a Job has ended, and whether well.
pub(crate) fn outcome(job: &Job) -> Option<bool> {
    let status = job.status.as_ref()?;
    if holds(status, COMPLETE) { Some(true) } else { holds(status, FAILED).then_some(false) }
}

/// What the pods tell, before anything is decided.
struct Facts<'a> {
    active: Vec<&'a Arc<Pod>>,
    terminating: usize,
    indexes: Indexes,
    /// All that have succeeded and failed, those that the status doesn't count yet among them.
    succeeded: i32,
    failed: i32,
    /// Why a failed pod ends the Job, where one does.
    ends: Option<String>,
}

pub(super) fn plan(state: &State<'_>) -> Plan {
    let mut plan = Plan { status: state.job.status.clone().unwrap_or_default(), ..Plan::default() };
    if outcome(state.job).is_some() {
        plan.counted = state.pods.iter().filter(|p| is_tracked(p)).cloned().collect();
        return plan;
    }
    let facts = state.facts(&plan.status);
    plan.begin(state);
    if !holds(&plan.status, TARGET) && !holds(&plan.status, MET) {
        plan.target(state, &facts);
    }
    plan.count(state, &facts);
    plan.status.active = i32::try_from(facts.active.len()).ok().filter(|n| *n > 0);
    let ready = facts.active.iter().filter(|p| pods::is_ready(p)).count();
    plan.status.ready = Some(i32::try_from(ready).unwrap_or(0));
    plan.status.terminating = Some(i32::try_from(facts.terminating).unwrap_or(0));
    let (fails, succeeds) = (holds(&plan.status, TARGET), holds(&plan.status, MET));
    if fails || succeeds {
        let active = facts.active.iter().map(|p| (*p).clone()).collect();
        *(if fails { &mut plan.stop } else { &mut plan.take_back }) = active;
        let counted = plan.uncounted() == (0, 0) && plan.counted.is_empty();
        if counted && facts.active.is_empty() && facts.terminating == 0 {
            plan.finish(state);
        }
        return plan;
    }
    if state.spec.suspend == Some(true) {
        plan.take_back = facts.active.iter().map(|p| (*p).clone()).collect();
        plan.suspend(state);
        return plan;
    }
    plan.resume(state);
    plan.size(state, &facts);
    plan
}

impl State<'_> {
    fn completions(&self) -> i32 {
        self.spec.completions.unwrap_or(i32::MAX)
    }

    fn only_replaces_failed(&self) -> bool {
        self.spec.pod_replacement_policy.as_deref() == Some("Failed")
            || self.spec.pod_failure_policy.is_some()
    }

    /// A pod that will not succeed any more.
    fn is_failed(&self, pod: &Pod) -> bool {
        match pods::phase(pod) {
            "Failed" => true,
            "Succeeded" => false,
            // A pod on its way out may never get to say how it ended.
            _ => pods::is_terminating(pod) && !self.only_replaces_failed(),
        }
    }

    fn time(&self) -> Option<Time> {
        Timestamp::from_second(self.now.as_second()).ok().map(Time)
    }

    fn facts(&self, status: &JobStatus) -> Facts<'_> {
        let indexes = if template::is_indexed(self.spec) {
            index::observe(self.spec, status, self.pods, &|p| self.is_failed(p))
        } else {
            Indexes::default()
        };
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let known_good: BTreeSet<String> = uncounted.succeeded.into_iter().flatten().collect();
        let known_bad: BTreeSet<String> = uncounted.failed.into_iter().flatten().collect();
        let size = |set: &BTreeSet<String>| i32::try_from(set.len()).unwrap_or(i32::MAX);
        let mut succeeded = status.succeeded.unwrap_or(0).saturating_add(size(&known_good));
        let mut failed = status.failed.unwrap_or(0).saturating_add(size(&known_bad));
        let mut ends = None;
        let is_known =
            |set: &BTreeSet<String>, p: &Pod| p.metadata.uid.as_ref().is_some_and(|u| set.contains(u));
        for pod in self.pods.iter().filter(|p| is_tracked(p)) {
            if pods::phase(pod) == "Succeeded" {
                succeeded += i32::from(!is_known(&known_good, pod) && !is_known(&known_bad, pod));
            } else if self.is_failed(pod) {
                let meaning = failure::meaning(self.spec, pod);
                failed += i32::from(meaning.counts() && !is_known(&known_bad, pod));
                if let Meaning::Ends(why) = meaning {
                    ends.get_or_insert(why);
                }
            }
        }
        if template::is_indexed(self.spec) {
            succeeded = i32::try_from(indexes.done.len()).unwrap_or(i32::MAX);
        }
        let terminating = self.pods.iter().filter(|p| pods::is_terminating(p) && !pods::is_over(p)).count();
        let active = self.pods.iter().filter(|p| pods::is_active(p)).collect();
        Facts { active, terminating, indexes, succeeded, failed, ends }
    }
}

impl Plan {
    fn begin(&mut self, state: &State<'_>) {
        if self.status.start_time.is_none() && state.spec.suspend != Some(true) {
            self.status.start_time = state.time();
        }
    }

    /// Pods in the status that aren't in its counts yet: succeeded and failed ones.
    fn uncounted(&self) -> (i32, i32) {
        let n = |l: Option<&Vec<String>>| i32::try_from(l.map_or(0, Vec::len)).unwrap_or(i32::MAX);
        let uncounted = self.status.uncounted_terminated_pods.as_ref();
        (n(uncounted.and_then(|u| u.succeeded.as_ref())), n(uncounted.and_then(|u| u.failed.as_ref())))
    }

    /// Counts pods that ended, and where the Job fails all others too.
    fn count(&mut self, state: &State<'_>, facts: &Facts<'_>) {
        let tracked: BTreeSet<&str> =
            state.pods.iter().filter(|p| is_tracked(p)).filter_map(|p| p.metadata.uid.as_deref()).collect();
        let uncounted = self.status.uncounted_terminated_pods.take().unwrap_or_default();
        // Those whose finalizer is off become part of the counts.
        let settle = |uids: Option<Vec<String>>, count: &mut Option<i32>| -> Vec<String> {
            let (open, settled): (Vec<String>, Vec<String>) =
                uids.unwrap_or_default().into_iter().partition(|u| tracked.contains(u.as_str()));
            let n = count.unwrap_or(0).saturating_add(i32::try_from(settled.len()).unwrap_or(i32::MAX));
            *count = Some(n).filter(|n| *n > 0);
            open
        };
        let mut succeeded = settle(uncounted.succeeded, &mut self.status.succeeded);
        let mut failed = settle(uncounted.failed, &mut self.status.failed);
        let indexed = template::is_indexed(state.spec);
        let completions = state.completions();
        let (fails, succeeds) = (holds(&self.status, TARGET), holds(&self.status, MET));
        let leaving = state.job.metadata.deletion_timestamp.is_some();
        for pod in state.pods.iter().filter(|p| is_tracked(p)) {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            let has_failed = state.is_failed(pod);
            if pods::phase(pod) == "Succeeded" {
                if !indexed && !succeeded.contains(&uid) {
                    succeeded.push(uid);
                }
            } else if has_failed || fails {
                if !fails && !succeeds && !leaving && facts.indexes.needs(pod) {
                    continue;
                }
                let placed = !indexed || template::index(pod).is_some_and(|i| i < completions);
                let counts = !has_failed || failure::meaning(state.spec, pod).counts();
                if placed && counts && !failed.contains(&uid) {
                    failed.push(uid);
                }
            } else if !(leaving || succeeds && pods::is_terminating(pod)) {
                continue;
            }
            self.counted.push(pod.clone());
        }
        if indexed {
            let done = &facts.indexes.done;
            self.status.succeeded = Some(i32::try_from(done.len()).unwrap_or(i32::MAX)).filter(|n| *n > 0);
            self.status.completed_indexes = Some(indexes::format(done)).filter(|t| !t.is_empty());
            self.status.failed_indexes = facts.indexes.failed.as_ref().map(indexes::format);
        }
        let some = |l: Vec<String>| Some(l).filter(|l| !l.is_empty());
        self.status.uncounted_terminated_pods =
            Some(UncountedTerminatedPods { succeeded: some(succeeded), failed: some(failed) });
    }

    /// Sets what the Job is going to be, where that is decided.
    fn target(&mut self, state: &State<'_>, facts: &Facts<'_>) {
        let spec = state.spec;
        if let Some(why) = &facts.ends {
            self.set(state, TARGET, "True", "PodFailurePolicy", why);
            return;
        }
        if failure::exceeds_limit(spec, facts.failed, &facts.active) {
            let text = "Job has reached the specified backoff limit";
            self.set(state, TARGET, "True", "BackoffLimitExceeded", text);
            return;
        }
        let suspended = spec.suspend == Some(true);
        let start = self.status.start_time.as_ref().filter(|_| !suspended);
        if let Some((limit, start)) = spec.active_deadline_seconds.zip(start) {
            let limit = Duration::from_secs(u64::try_from(limit).unwrap_or(0));
            let passed = Duration::try_from(state.now.duration_since(start.0)).unwrap_or_default();
            if passed >= limit {
                let text = "Job was active longer than specified deadline";
                self.set(state, TARGET, "True", "DeadlineExceeded", text);
                return;
            }
            self.again = Some(limit - passed);
        }
        let completions = state.completions();
        if let Some(failed) = &facts.indexes.failed {
            let lost = i32::try_from(failed.len()).unwrap_or(i32::MAX);
            if spec.max_failed_indexes.is_some_and(|most| lost > most) {
                let text = "Job has exceeded the specified maximal number of failed indexes";
                self.set(state, TARGET, "True", "MaxFailedIndexesExceeded", text);
                return;
            }
            if lost > 0 && lost.saturating_add(facts.succeeded) >= completions {
                self.set(state, TARGET, "True", "FailedIndexes", "Job has failed indexes");
                return;
            }
        }
        let policy = spec.success_policy.as_ref().filter(|_| template::is_indexed(spec));
        if let Some(text) = policy.and_then(|p| index::suffices(p, completions, &facts.indexes.done)) {
            self.set(state, MET, "True", "SuccessPolicy", &text);
            return;
        }
        let complete = match spec.completions {
            Some(n) => facts.succeeded >= n,
            // A work queue is done when one pod says so and the others have ended.
            None => facts.succeeded > 0 && facts.active.is_empty(),
        };
        if complete {
            let text = "Reached expected number of succeeded pods";
            self.set(state, MET, "True", "CompletionsReached", text);
        }
    }

    fn finish(&mut self, state: &State<'_>) {
        let complete = holds(&self.status, MET);
        let target = find(&self.status, if complete { MET } else { TARGET });
        let text =
            |f: fn(&JobCondition) -> &Option<String>| target.and_then(|c| f(c).clone()).unwrap_or_default();
        let (reason, message) = (text(|c| &c.reason), text(|c| &c.message));
        self.set(state, if complete { COMPLETE } else { FAILED }, "True", &reason, &message);
        if complete {
            self.status.completion_time = state.time();
        }
        if complete && self.status.succeeded.unwrap_or(0) > state.completions() {
            let text = "Too many succeeded pods running after completion count reached";
            self.events.push(Event::warning("TooManySucceededPods", text));
        }
        self.events.push(ended(complete, &reason, &message));
    }

    fn suspend(&mut self, state: &State<'_>) {
        if !holds(&self.status, SUSPENDED) {
            self.set(state, SUSPENDED, "True", "JobSuspended", "Job suspended");
            self.events.push(Event::normal("Suspended", "Job suspended"));
        }
        self.status.start_time = None;
    }

    fn resume(&mut self, state: &State<'_>) {
        if holds(&self.status, SUSPENDED) {
            self.set(state, SUSPENDED, "False", "JobResumed", "Job resumed");
            self.events.push(Event::normal("Resumed", "Job resumed"));
            self.status.start_time = state.time();
        }
    }

    /// As many pods as should run now. Where some are too many, none are made.
    fn size(&mut self, state: &State<'_>, facts: &Facts<'_>) {
        let active = &facts.active;
        let parallelism = state.spec.parallelism.unwrap_or(1).max(0);
        let count = |n: i32| usize::try_from(n.max(0)).unwrap_or(0);
        let wanted = match state.spec.completions {
            Some(n) => count(parallelism.min(n - facts.succeeded)),
            None if facts.succeeded > 0 => active.len(),
            None => count(parallelism),
        };
        let indexed = template::is_indexed(state.spec);
        let mut surplus =
            if indexed { index::duplicates(active, state.completions(), state.now) } else { Vec::new() };
        let missing = active.len().saturating_sub(wanted).saturating_sub(surplus.len());
        if missing > 0 {
            let is_surplus = |p: &Arc<Pod>| surplus.iter().any(|s| s.metadata.uid == p.metadata.uid);
            let mut rest: Vec<&Arc<Pod>> = active.iter().copied().filter(|p| !is_surplus(p)).collect();
            rest.sort_by_cached_key(|p| pods::deletion_order(p, 0, state.now));
            surplus.extend(rest.into_iter().take(missing));
        }
        if !surplus.is_empty() {
            self.take_back = surplus.into_iter().take(pod_control::BURST).cloned().collect();
            return;
        }
        let there = active.len() + if state.only_replaces_failed() { facts.terminating } else { 0 };
        let missing = wanted.saturating_sub(there).min(pod_control::BURST);
        if missing == 0 {
            return;
        }
        if facts.indexes.failed.is_none() {
            let ended =
                |f: &dyn Fn(&Pod) -> bool| -> Vec<&Arc<Pod>> { state.pods.iter().filter(|p| f(p)).collect() };
            let failed = ended(&|p| state.is_failed(p));
            let succeeded = ended(&|p| pods::phase(p) == "Succeeded");
            let wait = failure::backoff(&failed, &succeeded, state.now);
            if !wait.is_zero() {
                self.wait(wait);
                return;
            }
        }
        if !indexed {
            self.create = vec![New::default(); missing];
            return;
        }
        let mut taken = facts.indexes.done.clone();
        taken.extend(facts.indexes.failed.iter().flatten());
        taken.extend(active.iter().filter_map(|p| template::index(p)));
        if state.only_replaces_failed() {
            let leaving = state.pods.iter().filter(|p| pods::is_terminating(p) && !pods::is_over(p));
            taken.extend(leaving.filter_map(|p| template::index(p)));
        }
        for i in (0..state.completions()).filter(|i| !taken.contains(i)).take(missing) {
            match facts.indexes.next(state.spec, i, state.now) {
                Ok(new) => self.create.push(new),
                Err(wait) => self.wait(wait),
            }
        }
    }

    fn wait(&mut self, wait: Duration) {
        self.again = [self.again, Some(wait)].into_iter().flatten().min();
    }

    fn set(&mut self, state: &State<'_>, kind: &str, status: &str, reason: &str, message: &str) {
        let new = JobCondition {
            type_: kind.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_probe_time: state.time(),
            last_transition_time: state.time(),
        };
        let all = self.status.conditions.get_or_insert_default();
        match all.iter_mut().find(|c| c.type_ == kind) {
            Some(old) => *old = new,
            None => all.push(new),
        }
    }
}
