//! Which Job is due, which ones run, and which old ones go: a pure function of the CronJob, its Jobs and the time.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::Event;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::schedule::Schedule;
use crate::job::outcome;

/// The annotation with the time that a Job is for.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// More missed times than this are worth a word.
const MANY: i64 = 100;

/// What a plan is made from.
pub(super) struct State<'a> {
    pub(super) cron: &'a CronJob,
    pub(super) spec: &'a CronJobSpec,
    /// The CronJob's own Jobs.
    pub(super) jobs: &'a [Arc<Job>],
    /// `None` where it can't be parsed.
    pub(super) schedule: Option<&'a Schedule>,
    pub(super) now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The Job that is due, and the time that it is for.
    pub(super) create: Option<(Timestamp, Job)>,
    pub(super) delete: Vec<Arc<Job>>,
    pub(super) status: CronJobStatus,
    pub(super) events: Vec<Event>,
    pub(super) again: Option<Duration>,
}

pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".into()),
        kind: Some("Job".into()),
        name: job.metadata.name.clone(),
        namespace: job.metadata.namespace.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

pub(super) fn plan(state: &State<'_>) -> Plan {
    let mut plan = Plan { status: state.cron.status.clone().unwrap_or_default(), ..Plan::default() };
    plan.observe(state);
    plan.forget(state);
    if state.spec.suspend != Some(true)
        && let Some(schedule) = state.schedule
    {
        plan.schedule(state, schedule);
    }
    plan
}

impl Plan {
    /// Which of the Jobs that were started here run, and when one last succeeded.
    ///
    /// Others that belong to the CronJob (`kubectl create job --from`) are told of and count for nothing else.
    fn observe(&mut self, state: &State<'_>) {
        let mut active = self.status.active.take().unwrap_or_default();
        for job in state.jobs {
            let name = job.metadata.name.as_deref().unwrap_or_default();
            let known = active.iter().position(|r| r.uid == job.metadata.uid);
            match (known, outcome(job)) {
                (None, None) => {
                    let text = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.events.push(Event::warning("UnexpectedJob", text));
                }
                (Some(i), Some(well)) => {
                    active.remove(i);
                    let condition = if well { "Complete" } else { "Failed" };
                    let text = format!("Saw completed job: {name}, condition: {condition}");
                    self.events.push(Event::normal("SawCompletedJob", text));
                }
                _ => {}
            }
        }
        active.retain(|was| {
            let there = state.jobs.iter().any(|j| j.metadata.uid == was.uid);
            if !there {
                let name = was.name.as_deref().unwrap_or_default();
                self.events.push(Event::normal("MissingJob", format!("Active job went missing: {name}")));
            }
            there
        });
        self.status.active = Some(active).filter(|a| !a.is_empty());
        let ended = |j: &Arc<Job>| j.status.as_ref().and_then(|s| s.completion_time.clone());
        let last =
            state.jobs.iter().filter(|j| outcome(j) == Some(true)).filter_map(ended).map(|t| t.0).max();
        let known = self.status.last_successful_time.as_ref().map(|t| t.0);
        self.status.last_successful_time = last.max(known).map(Time);
    }

    /// Old Jobs beyond the limits, oldest first.
    fn forget(&mut self, state: &State<'_>) {
        let limits = [
            (true, state.spec.successful_jobs_history_limit.unwrap_or(3)),
            (false, state.spec.failed_jobs_history_limit.unwrap_or(1)),
        ];
        for (well, limit) in limits {
            let mut ended: Vec<&Arc<Job>> = state.jobs.iter().filter(|j| outcome(j) == Some(well)).collect();
            ended.sort_by_key(|j| {
                let started = j.status.as_ref().and_then(|s| s.start_time.as_ref()).map(|t| t.0);
                (started, j.metadata.name.clone())
            });
            let surplus = ended.len().saturating_sub(usize::try_from(limit.max(0)).unwrap_or(0));
            self.delete.extend(ended.into_iter().take(surplus).filter(|j| is_there(j)).cloned());
        }
    }

    fn schedule(&mut self, state: &State<'_>, schedule: &Schedule) {
        let created = state.cron.metadata.creation_timestamp.as_ref().map_or(state.now, |t| t.0);
        let last = self.status.last_schedule_time.as_ref().map(|t| t.0);
        let since = last.unwrap_or(created);
        let deadline =
            state.spec.starting_deadline_seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs);
        let next = schedule.next(schedule.latest(since, state.now).unwrap_or(match schedule {
            Schedule::Every(_) => since,
            Schedule::Cron(..) => state.now,
        }));
        self.again = next.map(|n| {
            // A moment later: it must not be too early.
            Duration::try_from(n.duration_since(state.now)).unwrap_or_default() + Duration::from_millis(100)
        });
        // What is too late isn't even looked at.
        let horizon = deadline.and_then(|d| state.now.checked_sub(d).ok());
        let since = horizon.map_or(since, |h| h.max(since));
        let Some(due) = schedule.latest(since, state.now) else { return };
        self.tell_missed(schedule, since, state.now);
        let late = Duration::try_from(state.now.duration_since(due)).unwrap_or_default();
        if deadline.is_some_and(|d| late > d) {
            let due = due.strftime("%a, %d %b %Y %H:%M:%S +0000");
            let text = format!("Missed scheduled time to start a job: {due}");
            self.events.push(Event::warning("MissSchedule", text));
            return;
        }
        let active = self.status.active.clone().unwrap_or_default();
        let name = job_name(state.cron, due);
        if active.iter().any(|r| r.name.as_deref() == Some(&name)) || last == Some(due) {
            return;
        }
        if let Some(job) = state.jobs.iter().find(|j| j.metadata.name.as_deref() == Some(&name)) {
            // It was started, and its start not written down.
            if outcome(job).is_none() {
                self.status.active.get_or_insert_default().push(reference(job));
            }
            self.status.last_schedule_time = Some(Time(due));
            return;
        }
        match state.spec.concurrency_policy.as_deref() {
            Some("Forbid") if !active.is_empty() => {
                let text =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.events.push(Event::normal("JobAlreadyActive", text));
                return;
            }
            Some("Replace") => {
                let is_active = |j: &&Arc<Job>| active.iter().any(|r| r.uid == j.metadata.uid);
                self.delete.extend(state.jobs.iter().filter(is_active).filter(|j| is_there(j)).cloned());
                self.status.active = None;
            }
            _ => {}
        }
        self.create = Some((due, new_job(state, schedule, due, name)));
    }

    /// More than a hundred missed times are worth a word. As the reference counts, the first distance between two
    /// stands for all.
    fn tell_missed(&mut self, schedule: &Schedule, since: Timestamp, now: Timestamp) {
        let Some(first) = schedule.next(since) else { return };
        let Some(second) = schedule.next(first).filter(|t| *t <= now) else { return };
        let distance = second.duration_since(first).as_secs().max(1);
        if now.duration_since(first).as_secs() / distance + 1 > MANY {
            let text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.events.push(Event::warning("TooManyMissedTimes", text));
        }
    }
}

fn is_there(job: &Job) -> bool {
    job.metadata.deletion_timestamp.is_none()
}

/// The Job for a time has a name that follows from it, to the minute.
fn job_name(cron: &CronJob, due: Timestamp) -> String {
    format!("{}-{}", cron.metadata.name.as_deref().unwrap_or_default(), due.as_second() / 60)
}

fn new_job(state: &State<'_>, schedule: &Schedule, due: Timestamp, name: String) -> Job {
    let template = &state.spec.job_template;
    let meta = template.metadata.clone().unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    let told = due.to_zoned(schedule.zone());
    // RFC 3339, in the schedule's zone; UTC is `Z`.
    let told = if told.offset().is_zero() {
        due.to_string()
    } else {
        told.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    };
    annotations.insert(SCHEDULED.into(), told);
    Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: state.cron.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
