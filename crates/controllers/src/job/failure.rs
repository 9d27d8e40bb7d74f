//! When a failed pod is more than a failed pod: the Job's pod failure policy, its backoff limit and its deadline. Pure.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicyRule};
use k8s_openapi::api::core::v1::Pod;

use crate::common::pods;

/// The delays between failures (the reference's).
const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);

/// What a pod's failure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It counts towards the backoff limit.
    Counts,
    /// It is made good without being counted.
    Ignored,
    /// It counts, and its index fails without another try.
    FailsIndex,
    /// It ends the Job, for this reason.
    Ends(String),
}

impl Meaning {
    /// Whether it is among the failures that the status counts.
    pub(super) fn counts(&self) -> bool {
        *self != Self::Ignored
    }
}

/// What the failure policy makes of a failed pod.
pub(super) fn meaning(spec: &JobSpec, pod: &Pod) -> Meaning {
    let rules = spec.pod_failure_policy.iter().flat_map(|p| &p.rules).enumerate();
    for (i, rule) in rules {
        let Some(what) = matching(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Meaning::Ignored,
            "FailIndex" => Meaning::FailsIndex,
            "FailJob" => {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                Meaning::Ends(format!("{} matching FailJob rule at index {i}", what(namespace, name)))
            }
            _ => Meaning::Counts,
        };
    }
    Meaning::Counts
}

type Describe = Box<dyn Fn(&str, &str) -> String>;

/// Whether a rule matches, and how to say so.
fn matching(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<Describe> {
    if let Some(on) = &rule.on_exit_codes {
        let status = pod.status.as_ref()?;
        let all =
            status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
        let asked = all.filter(|c| on.container_name.as_ref().is_none_or(|n| *n == c.name));
        for container in asked {
            let code = container.state.as_ref().and_then(|s| s.terminated.as_ref()).map(|t| t.exit_code);
            let Some(code) = code.filter(|c| *c != 0) else { continue };
            if on.values.contains(&code) == (on.operator == "In") {
                let container = container.name.clone();
                return Some(Box::new(move |ns, pod| {
                    format!("Container {container} for pod {ns}/{pod} failed with exit code {code}")
                }));
            }
        }
        return None;
    }
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let wanted = rule.on_pod_conditions.iter().flatten();
    for pattern in wanted {
        let status = pattern.status.as_deref().unwrap_or("True");
        if conditions.iter().any(|c| c.type_ == pattern.type_ && c.status == status) {
            let kind = pattern.type_.clone();
            return Some(Box::new(move |ns, pod| format!("Pod {ns}/{pod} has condition {kind}")));
        }
    }
    None
}

/// Whether failed pods, or restarts where pods restart by themselves, are too many.
pub(super) fn exceeds_limit(spec: &JobSpec, failed: i32, active: &[&Arc<Pod>]) -> bool {
    let limit = spec.backoff_limit.unwrap_or(6);
    if failed > limit {
        return true;
    }
    if spec.template.spec.as_ref().and_then(|s| s.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let restarts = active.iter().flat_map(|p| &p.status).flat_map(|s| {
        let init = s.init_container_statuses.iter().flatten();
        init.chain(s.container_statuses.iter().flatten()).map(|c| c.restart_count)
    });
    let restarts = restarts.fold(0i32, i32::saturating_add);
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

/// When a pod ended, as well as is known: its last container, else since when it isn't ready, else its deletion.
pub(super) fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let containers = pod.status.as_ref().and_then(|s| s.container_statuses.as_deref()).unwrap_or_default();
    let ends =
        containers.iter().map(|c| Some(c.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()?.0));
    let last = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
    let unready = pods::condition(pod, "Ready").filter(|c| c.status == "False");
    let unready = unready.and_then(|c| c.last_transition_time.as_ref()).map(|t| t.0);
    let grace = pod.metadata.deletion_grace_period_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0);
    let deleted = pod.metadata.deletion_timestamp.as_ref();
    let deleted = deleted.and_then(|t| t.0.checked_sub(Duration::from_secs(grace)).ok());
    last.or(unready).or(deleted).or(pod.metadata.creation_timestamp.as_ref().map(|t| t.0))
}

/// How long after its last failure what failed so often may be tried again: 10 s, 20 s … up to 10 min.
pub(super) fn wait(failures: usize, last: Timestamp, now: Timestamp) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return Duration::ZERO };
    let doublings = u32::try_from(doublings).unwrap_or(u32::MAX).min(16);
    let delay = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    delay.saturating_sub(Duration::try_from(now.duration_since(last)).unwrap_or_default())
}

/// How long new pods wait after failures in a row since the last success.
pub(super) fn backoff(failed: &[&Arc<Pod>], succeeded: &[&Arc<Pod>], now: Timestamp) -> Duration {
    let last_success = succeeded.iter().filter_map(|p| ended_at(p)).max();
    let times: Vec<Timestamp> =
        failed.iter().filter_map(|p| ended_at(p)).filter(|t| last_success.is_none_or(|s| *t > s)).collect();
    times.iter().max().map_or(Duration::ZERO, |last| wait(times.len(), *last, now))
}
