//! What becomes of the indexes of an Indexed Job: which are done, which have failed for good, which wait for another
//! try, and whether those that are done suffice. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus, SuccessPolicy};
use k8s_openapi::api::core::v1::Pod;

use super::failure::{self, Meaning};
use super::template::{self, Failures, New};
use super::{indexes, is_tracked};
use crate::common::pods;

/// The indexes of a Job.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// Those with a pod that succeeded.
    pub(super) done: BTreeSet<i32>,
    /// Those that get no further try; `None` where failures aren't limited for each index.
    pub(super) failed: Option<BTreeSet<i32>>,
    /// The last failed pod of each index that waits for its next one, which has to know how often it failed.
    pub(super) waiting: BTreeMap<i32, Arc<Pod>>,
}

/// The indexes after what is known by now. `failed` says of a pod whether it failed.
pub(super) fn observe(
    spec: &JobSpec,
    status: &JobStatus,
    all: &[Arc<Pod>],
    failed: &dyn Fn(&Pod) -> bool,
) -> Indexes {
    let completions = spec.completions.unwrap_or(0);
    let read = |text: Option<&String>| indexes::parse(text.map_or("", String::as_str), completions);
    let index = |p: &Pod| template::index(p).filter(|i| (0..completions).contains(i));
    let tracked = || all.iter().filter(|p| is_tracked(p));
    let mut done = read(status.completed_indexes.as_ref());
    done.extend(tracked().filter(|p| pods::phase(p) == "Succeeded").filter_map(|p| index(p)));
    let Some(limit) = spec.backoff_limit_per_index else { return Indexes { done, ..Indexes::default() } };

    let is_last = |p: &Pod| match failure::meaning(spec, p) {
        Meaning::FailsIndex => true,
        Meaning::Ignored => false,
        Meaning::Counts | Meaning::Ends(_) => Failures::before(p).counted >= limit,
    };
    let mut lost = read(status.failed_indexes.as_ref());
    lost.extend(tracked().filter(|p| failed(p) && is_last(p)).filter_map(|p| index(p)));

    let active: BTreeSet<i32> = all.iter().filter(|p| pods::is_active(p)).filter_map(|p| index(p)).collect();
    let counted = status.uncounted_terminated_pods.as_ref();
    let counted: BTreeSet<&String> = counted.and_then(|u| u.failed.as_ref()).into_iter().flatten().collect();
    let mut waiting: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
    for pod in tracked().filter(|p| failed(p)) {
        let Some(i) = index(pod) else { continue };
        let known = pod.metadata.uid.as_ref().is_some_and(|uid| counted.contains(uid));
        if known || done.contains(&i) || lost.contains(&i) || active.contains(&i) {
            continue;
        }
        let rank = |p: &Pod| (Failures::before(p).all(), failure::ended_at(p));
        if waiting.get(&i).is_none_or(|last| rank(last) <= rank(pod)) {
            waiting.insert(i, pod.clone());
        }
    }
    Indexes { done, failed: Some(lost), waiting }
}

impl Indexes {
    /// Whether a pod's end may not be counted yet, because its index still needs it.
    pub(super) fn needs(&self, pod: &Pod) -> bool {
        template::index(pod)
            .and_then(|i| self.waiting.get(&i))
            .is_some_and(|p| p.metadata.uid == pod.metadata.uid)
    }

    /// The next pod for an index, or how long it still waits.
    pub(super) fn next(&self, spec: &JobSpec, index: i32, now: Timestamp) -> Result<New, Duration> {
        if self.failed.is_none() {
            return Ok(New { index: Some(index), failures: None });
        }
        let Some(last) = self.waiting.get(&index) else {
            return Ok(New { index: Some(index), failures: Some(Failures::default()) });
        };
        let mut failures = Failures::before(last);
        if failure::meaning(spec, last).counts() {
            failures.counted += 1;
        } else {
            failures.ignored += 1;
        }
        let ended = failure::ended_at(last).unwrap_or(Timestamp::MIN);
        let wait = failure::wait(usize::try_from(failures.all()).unwrap_or(0), ended, now);
        if wait.is_zero() { Ok(New { index: Some(index), failures: Some(failures) }) } else { Err(wait) }
    }
}

/// The first rule of a success policy that holds, as the reference says it.
pub(super) fn suffices(policy: &SuccessPolicy, completions: i32, done: &BTreeSet<i32>) -> Option<String> {
    let holds = |rule: &k8s_openapi::api::batch::v1::SuccessPolicyRule| {
        let wanted = rule.succeeded_indexes.as_deref().map(|text| indexes::parse(text, completions));
        let has = match &wanted {
            Some(wanted) => done.intersection(wanted).count(),
            None => done.len(),
        };
        let needs = match (rule.succeeded_count, &wanted) {
            (Some(count), _) => usize::try_from(count).unwrap_or(0),
            (None, Some(wanted)) => wanted.len(),
            (None, None) => return false,
        };
        has >= needs
    };
    policy.rules.iter().position(holds).map(|i| format!("Matched rules at index {i}"))
}

/// Active pods that an Indexed Job has too many of: without a place, or for a place that has a better one.
pub(super) fn duplicates<'a>(active: &[&'a Arc<Pod>], completions: i32, now: Timestamp) -> Vec<&'a Arc<Pod>> {
    let mut sorted = active.to_vec();
    sorted.sort_by_cached_key(|p| pods::deletion_order(p, 0, now));
    let mut seen = BTreeSet::new();
    // From the one that would be missed most.
    let surplus = |p: &&&Arc<Pod>| {
        let index = template::index(p).filter(|i| (0..completions).contains(i));
        index.is_none_or(|i| !seen.insert(i))
    };
    sorted.iter().rev().filter(surplus).copied().collect()
}
