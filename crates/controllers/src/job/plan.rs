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
use super::{ended, indexes, is_tracked, template};
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
    /// New pods, by index where they have one.
    pub(super) create: Vec<Option<i32>>,
    /// Pods to be deleted because the Job ends: they still count.
    pub(super) stop: Vec<Arc<Pod>>,
    /// Pods to be deleted that don't count: too many, or suspended.
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

pub(super) fn plan(state: &State<'_>) -> Plan {
    let mut plan = Plan { status: state.job.status.clone().unwrap_or_default(), ..Plan::default() };
    if outcome(state.job).is_some() {
        plan.counted = state.pods.iter().filter(|p| is_tracked(p)).cloned().collect();
        return plan;
    }
    let active: Vec<&Arc<Pod>> = state.pods.iter().filter(|p| pods::is_active(p)).collect();
    let terminating = state.pods.iter().filter(|p| pods::is_terminating(p) && !pods::is_over(p)).count();
    plan.begin(state);
    let ends = plan.count(state);
    let uncounted = plan.uncounted();
    let succeeded = plan.status.succeeded.unwrap_or(0) + uncounted.0;
    let failed = plan.status.failed.unwrap_or(0) + uncounted.1;
    plan.status.active = i32::try_from(active.len()).ok().filter(|n| *n > 0);
    plan.status.ready = Some(i32::try_from(active.iter().filter(|p| pods::is_ready(p)).count()).unwrap_or(0));
    plan.status.terminating = Some(i32::try_from(terminating).unwrap_or(0));

    if !holds(&plan.status, TARGET) && !holds(&plan.status, MET) {
        plan.target(state, ends, succeeded, failed, &active);
    }
    if holds(&plan.status, TARGET) || holds(&plan.status, MET) {
        plan.stop = active.iter().map(|p| (*p).clone()).collect();
        if active.is_empty() && terminating == 0 && uncounted == (0, 0) && plan.counted.is_empty() {
            plan.finish(state);
        }
        return plan;
    }
    if state.spec.suspend == Some(true) {
        plan.take_back = active.iter().map(|p| (*p).clone()).collect();
        plan.suspend(state);
        return plan;
    }
    plan.resume(state);
    plan.size(state, &active, terminating, succeeded);
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

    /// Counts pods that ended; returns why the Job ends with one of them, where it does.
    fn count(&mut self, state: &State<'_>) -> Option<String> {
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
        let mut done =
            indexes::parse(self.status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let mut ends = None;
        for pod in state.pods.iter().filter(|p| is_tracked(p)) {
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            if pods::phase(pod) == "Succeeded" {
                if indexed {
                    done.extend(template::index(pod).filter(|i| *i < completions));
                } else if !succeeded.contains(&uid) {
                    succeeded.push(uid);
                }
            } else if state.is_failed(pod) {
                match failure::meaning(state.spec, pod) {
                    Meaning::Ignored => {}
                    Meaning::Ends(why) => {
                        ends.get_or_insert(why);
                        if !failed.contains(&uid) {
                            failed.push(uid);
                        }
                    }
                    Meaning::Counts if !failed.contains(&uid) => failed.push(uid),
                    Meaning::Counts => {}
                }
            } else {
                continue;
            }
            self.counted.push(pod.clone());
        }
        if indexed {
            self.status.succeeded = Some(i32::try_from(done.len()).unwrap_or(i32::MAX)).filter(|n| *n > 0);
            self.status.completed_indexes = Some(indexes::format(&done)).filter(|t| !t.is_empty());
        }
        let some = |l: Vec<String>| Some(l).filter(|l| !l.is_empty());
        self.status.uncounted_terminated_pods =
            Some(UncountedTerminatedPods { succeeded: some(succeeded), failed: some(failed) });
        ends
    }

    /// Sets what the Job is going to be, where that is decided.
    fn target(
        &mut self,
        state: &State<'_>,
        ends: Option<String>,
        succeeded: i32,
        failed: i32,
        active: &[&Arc<Pod>],
    ) {
        if let Some(why) = ends {
            self.set(state, TARGET, "True", "PodFailurePolicy", &why);
            return;
        }
        if failure::exceeds_limit(state.spec, failed, active) {
            let text = "Job has reached the specified backoff limit";
            self.set(state, TARGET, "True", "BackoffLimitExceeded", text);
            return;
        }
        let complete = match state.spec.completions {
            Some(n) => succeeded >= n,
            // A work queue is done when one pod says so and the others have ended.
            None => succeeded > 0 && active.is_empty(),
        };
        if complete {
            let text = "Reached expected number of succeeded pods";
            self.set(state, MET, "True", "CompletionsReached", text);
            return;
        }
        let suspended = state.spec.suspend == Some(true);
        let start = self.status.start_time.as_ref().filter(|_| !suspended);
        if let Some((limit, start)) = state.spec.active_deadline_seconds.zip(start) {
            let limit = Duration::from_secs(u64::try_from(limit).unwrap_or(0));
            let passed = Duration::try_from(state.now.duration_since(start.0)).unwrap_or_default();
            if passed >= limit {
                let text = "Job was active longer than specified deadline";
                self.set(state, TARGET, "True", "DeadlineExceeded", text);
            } else {
                self.again = Some(limit - passed);
            }
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

    /// As many pods as should run now.
    fn size(&mut self, state: &State<'_>, active: &[&Arc<Pod>], terminating: usize, succeeded: i32) {
        let parallelism = state.spec.parallelism.unwrap_or(1).max(0);
        let count = |n: i32| usize::try_from(n.max(0)).unwrap_or(0);
        let wanted = match state.spec.completions {
            Some(n) => count(parallelism.min(n - succeeded)),
            None if succeeded > 0 => active.len().min(count(parallelism)),
            None => count(parallelism),
        };
        if active.len() > wanted {
            let mut all = active.to_vec();
            all.sort_by_cached_key(|p| pods::deletion_order(p, 0, state.now));
            self.take_back = all.into_iter().take(active.len() - wanted).cloned().collect();
            return;
        }
        let there = active.len() + if state.only_replaces_failed() { terminating } else { 0 };
        let missing = wanted.saturating_sub(there).min(pod_control::BURST);
        if missing == 0 {
            return;
        }
        let ended = |phase: &str| -> Vec<&Arc<Pod>> {
            state
                .pods
                .iter()
                .filter(|p| if phase == "Failed" { state.is_failed(p) } else { pods::phase(p) == phase })
                .collect()
        };
        let wait = failure::backoff(&ended("Failed"), &ended("Succeeded"), state.now);
        if !wait.is_zero() {
            self.again = [self.again, Some(wait)].into_iter().flatten().min();
            return;
        }
        self.create = if template::is_indexed(state.spec) {
            let completions = state.completions();
            let done =
                indexes::parse(self.status.completed_indexes.as_deref().unwrap_or_default(), completions);
            let mut taken: BTreeSet<i32> = active.iter().filter_map(|p| template::index(p)).collect();
            if state.only_replaces_failed() {
                taken.extend(
                    state.pods.iter().filter(|p| pods::is_terminating(p)).filter_map(|p| template::index(p)),
                );
            }
            (0..completions)
                .filter(|i| !done.contains(i) && !taken.contains(i))
                .take(missing)
                .map(Some)
                .collect()
        } else {
            vec![None; missing]
        };
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
