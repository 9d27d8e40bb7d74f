//! What a Deployment tells: counts, and whether it is available and gets on. Pure.
//!
//! The deadline of a rollout runs from the last progress, which is the `lastUpdateTime` of condition `Progressing`.

use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::rollout::Sets;
use super::sets::Set;

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const FAILURE: &str = "ReplicaFailure";
const DONE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// Conditions by type, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions {
    list: Vec<DeploymentCondition>,
    now: Option<Time>,
}

impl Conditions {
    pub(super) fn of(deployment: &Deployment, now: Timestamp) -> Self {
        let list = deployment.status.as_ref().and_then(|s| s.conditions.clone()).unwrap_or_default();
        // Whole seconds, as the API keeps them.
        let now = Timestamp::from_second(now.as_second()).ok().map(Time);
        Self { list, now }
    }

    fn get(&self, kind: &str) -> Option<&DeploymentCondition> {
        self.list.iter().find(|c| c.type_ == kind)
    }

    /// Sets a condition, unless it has this status and reason already.
    fn set(&mut self, kind: &str, status: &str, reason: &str, message: String) {
        let same = |c: &DeploymentCondition| c.status == status && c.reason.as_deref() == Some(reason);
        if !self.get(kind).is_some_and(same) {
            self.put(kind, status, reason, message);
        }
    }

    /// Sets a condition and the time of its update, even where it says nothing new.
    fn put(&mut self, kind: &str, status: &str, reason: &str, message: String) {
        let since =
            self.get(kind).filter(|c| c.status == status).and_then(|c| c.last_transition_time.clone());
        let new = DeploymentCondition {
            type_: kind.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message),
            last_update_time: self.now.clone(),
            last_transition_time: since.or_else(|| self.now.clone()),
        };
        match self.list.iter_mut().find(|c| c.type_ == kind) {
            Some(place) => *place = new,
            None => self.list.push(new),
        }
    }

    fn remove(&mut self, kind: &str) {
        self.list.retain(|c| c.type_ != kind);
    }

    /// A pause stops the clock, and going on starts it again.
    pub(super) fn pause(&mut self, spec: &DeploymentSpec) {
        if deadline(spec).is_none() {
            return;
        }
        let reason = self.get(PROGRESSING).and_then(|c| c.reason.as_deref());
        if reason == Some(TIMED_OUT) {
            return;
        }
        match (spec.paused == Some(true), reason == Some(PAUSED)) {
            (true, false) => self.set(PROGRESSING, "Unknown", PAUSED, "Deployment is paused".into()),
            (false, true) => {
                self.set(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed".into());
            }
            _ => {}
        }
    }

    /// A new set was made.
    pub(super) fn created(&mut self, spec: &DeploymentSpec, set: &str) {
        if deadline(spec).is_some() {
            let text = format!("Created new replica set \"{set}\"");
            self.set(PROGRESSING, "True", "NewReplicaSetCreated", text);
        }
    }

    /// A new set could not be made.
    pub(super) fn not_created(&mut self, spec: &DeploymentSpec, set: &str, why: &str) {
        if deadline(spec).is_some() {
            let text = format!("Failed to create new replica set \"{set}\": {why}");
            self.set(PROGRESSING, "False", "ReplicaSetCreateError", text);
        }
    }

    /// A set is the new one of which nothing was said before.
    pub(super) fn found(&mut self, spec: &DeploymentSpec, set: &str) {
        if deadline(spec).is_some() && self.get(PROGRESSING).is_none() {
            let text = format!("Found new replica set \"{set}\"");
            self.set(PROGRESSING, "True", "FoundNewReplicaSet", text);
        }
    }

    /// When the deadline of the rollout passes, where it still runs.
    pub(super) fn deadline_in(
        &self,
        spec: &DeploymentSpec,
        complete: bool,
        now: Timestamp,
    ) -> Option<Duration> {
        let limit = deadline(spec)?;
        let progressing = self.get(PROGRESSING)?;
        if complete || matches!(progressing.reason.as_deref(), Some(TIMED_OUT | DONE | PAUSED)) {
            return None;
        }
        let from = progressing.last_update_time.as_ref()?.0;
        let passed = Duration::try_from(now.duration_since(from)).unwrap_or_default();
        // A second more: times are kept in whole seconds.
        Some(limit.saturating_sub(passed) + Duration::from_secs(1))
    }
}

/// `progressDeadlineSeconds`; `None` where there is no deadline.
fn deadline(spec: &DeploymentSpec) -> Option<Duration> {
    let seconds = spec.progress_deadline_seconds.filter(|s| *s != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// All pods are of the new set, and available.
pub(super) fn is_complete(deployment: &Deployment, spec: &DeploymentSpec, status: &DeploymentStatus) -> bool {
    let all = Some(spec.replicas.unwrap_or(1));
    let n = |v: Option<i32>| Some(v.unwrap_or(0));
    n(status.updated_replicas) == all
        && n(status.replicas) == all
        && n(status.available_replicas) == all
        && status.observed_generation >= deployment.metadata.generation
}

/// The status without conditions.
pub(super) fn counts(deployment: &Deployment, sets: &Sets<'_>, collisions: Option<i32>) -> DeploymentStatus {
    // Counts of zero are absent in the API.
    let sum = |f: fn(&ReplicaSet) -> i32| {
        Some(sets.old.iter().copied().chain(sets.new).map(f).sum::<i32>()).filter(|n| *n > 0)
    };
    let terminating: i32 = sets
        .old
        .iter()
        .copied()
        .chain(sets.new)
        .filter_map(|s| s.status.as_ref()?.terminating_replicas)
        .sum();
    let available = sum(ReplicaSet::available);
    let unavailable = sum(ReplicaSet::size).unwrap_or(0) - available.unwrap_or(0);
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: sum(ReplicaSet::pods),
        updated_replicas: sets.new.map(Set::pods).filter(|n| *n > 0),
        ready_replicas: sum(ReplicaSet::ready),
        available_replicas: available,
        unavailable_replicas: Some(unavailable).filter(|n| *n > 0),
        terminating_replicas: Some(terminating),
        collision_count: collisions,
        conditions: None,
    }
}

/// The conditions that follow from the counts. `rollout` says that an update is looked after, not only a size.
pub(super) fn conditions(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets<'_>,
    status: &DeploymentStatus,
    mut conditions: Conditions,
    rollout: bool,
    now: Timestamp,
) -> Conditions {
    if status.available_replicas.unwrap_or(0) >= sets.limits.least_available() {
        let text = "Deployment has minimum availability.";
        conditions.set(AVAILABLE, "True", "MinimumReplicasAvailable", text.into());
    } else {
        let text = "Deployment does not have minimum availability.";
        conditions.set(AVAILABLE, "False", "MinimumReplicasUnavailable", text.into());
    }
    if !rollout {
        return conditions;
    }
    progress(deployment, spec, sets, status, &mut conditions, now);
    let failure = |s: &ReplicaSet| {
        let list = s.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
        list.iter().find(|c| c.type_ == FAILURE).cloned()
    };
    match sets.new.into_iter().chain(sets.old.iter().copied()).find_map(failure) {
        Some(f) => {
            let (reason, message) = (f.reason.unwrap_or_default(), f.message.unwrap_or_default());
            conditions.set(FAILURE, &f.status, &reason, message);
        }
        None => conditions.remove(FAILURE),
    }
    conditions
}

fn progress(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets<'_>,
    status: &DeploymentStatus,
    conditions: &mut Conditions,
    now: Timestamp,
) {
    let Some(limit) = deadline(spec) else {
        conditions.remove(PROGRESSING);
        return;
    };
    let n = |v: Option<i32>| v.unwrap_or(0);
    let current = conditions.get(PROGRESSING);
    let done = current.is_some_and(|c| c.reason.as_deref() == Some(DONE));
    if done && n(status.replicas) == n(status.updated_replicas) {
        return;
    }
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let subject = match sets.new {
        Some(new) => format!("ReplicaSet \"{}\"", new.name()),
        None => format!("Deployment \"{name}\""),
    };
    let before = deployment.status.clone().unwrap_or_default();
    let old_pods = |s: &DeploymentStatus| n(s.replicas) - n(s.updated_replicas);
    let got_on = n(status.updated_replicas) > n(before.updated_replicas)
        || old_pods(status) < old_pods(&before)
        || n(status.ready_replicas) > n(before.ready_replicas)
        || n(status.available_replicas) > n(before.available_replicas);
    if is_complete(deployment, spec, status) {
        conditions.set(PROGRESSING, "True", DONE, format!("{subject} has successfully progressed."));
    } else if got_on {
        conditions.put(PROGRESSING, "True", "ReplicaSetUpdated", format!("{subject} is progressing."));
    } else if let Some(current) = current
        && !matches!(current.reason.as_deref(), Some(DONE | TIMED_OUT))
    {
        let from = current.last_update_time.as_ref().map_or(now, |t| t.0);
        if Duration::try_from(now.duration_since(from)).unwrap_or_default() > limit {
            conditions.set(PROGRESSING, "False", TIMED_OUT, format!("{subject} has timed out progressing."));
        }
    }
}

/// The status with its conditions.
pub(super) fn with(mut status: DeploymentStatus, conditions: &Conditions) -> DeploymentStatus {
    status.conditions = Some(conditions.list.clone()).filter(|l| !l.is_empty());
    status
}
