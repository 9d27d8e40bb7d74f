//! How many replicas a measurement asks for: pure arithmetic on samples, requests and pods.
//!
//! Pods that aren't there yet, or don't say what they use, never make the answer bolder: on the way up they count as
//! idle, on the way down as fully busy, and where that turns the direction nothing changes.
//! Values are in thousandths.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_model::quantity::Quantity;
use k8s_openapi::api::core::v1::Pod;

use crate::common::pods;

/// A pod that started less than this ago may be using its processor for its own start (the reference's default).
const START: Duration = Duration::from_secs(300);
/// A pod that was unready since this soon after its start was never ready (the reference's default).
const NEVER_READY: Duration = Duration::from_secs(30);

/// What a pod was measured at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) value: i64,
    pub(super) at: Timestamp,
    pub(super) window: Duration,
}

/// Samples by the name of the pod.
pub(super) type Samples = BTreeMap<String, Sample>;

/// How far off the target is near enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tolerances {
    pub(super) down: f64,
    pub(super) up: f64,
}

impl Tolerances {
    fn cover(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// What an answer is computed from.
pub(super) struct Situation<'a> {
    /// The pods that the target's selector selects.
    pub(super) pods: &'a [Arc<Pod>],
    /// `spec.replicas` of the target.
    pub(super) current: i32,
    /// `status.replicas` of the target.
    pub(super) status: i32,
    pub(super) tolerances: Tolerances,
    pub(super) now: Timestamp,
}

/// Pods by what can be said of them.
#[derive(Debug, Default, PartialEq)]
struct Groups {
    ready: usize,
    unready: BTreeSet<String>,
    missing: BTreeSet<String>,
    /// On their way out, or failed.
    ignored: BTreeSet<String>,
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

fn group(situation: &Situation<'_>, samples: &Samples, resource: &str) -> Groups {
    let mut groups = Groups::default();
    for pod in situation.pods {
        let name = name(pod);
        if pods::is_terminating(pod) || pods::phase(pod) == "Failed" {
            groups.ignored.insert(name);
        } else if pods::phase(pod) == "Pending" {
            groups.unready.insert(name);
        } else if let Some(sample) = samples.get(&name) {
            if resource == "cpu" && !is_settled(pod, sample, situation.now) {
                groups.unready.insert(name);
            } else {
                groups.ready += 1;
            }
        } else {
            groups.missing.insert(name);
        }
    }
    groups
}

/// Whether what a pod's processor did says something about its load.
fn is_settled(pod: &Pod, sample: &Sample, now: Timestamp) -> bool {
    let started = pod.status.as_ref().and_then(|s| s.start_time.as_ref()).map(|t| t.0);
    let (Some(ready), Some(started)) = (pods::condition(pod, "Ready"), started) else { return false };
    let turned = ready.last_transition_time.as_ref().map_or(Timestamp::MIN, |t| t.0);
    let after = |t: Timestamp, d: Duration| t.checked_add(d).unwrap_or(Timestamp::MAX);
    if after(started, START) > now {
        ready.status != "False" && sample.at >= after(turned, sample.window)
    } else {
        ready.status != "False" || after(started, NEVER_READY) <= turned
    }
}

/// What each pod (or its `container`) requests.
fn requests(
    pods: &[Arc<Pod>],
    container: Option<&str>,
    resource: &str,
) -> Result<BTreeMap<String, i64>, String> {
    let mut all = BTreeMap::new();
    for pod in pods {
        let name = name(pod);
        let spec = pod.spec.as_ref();
        // A sidecar runs as long as the pod, and is measured with it.
        let sidecars = spec.into_iter().flat_map(|s| s.init_containers.iter().flatten());
        let sidecars = sidecars.filter(|c| c.restart_policy.as_deref() == Some("Always"));
        let containers = spec.into_iter().flat_map(|s| &s.containers).chain(sidecars);
        let mut sum = 0i64;
        for c in containers.filter(|c| container.is_none_or(|wanted| c.name == wanted)) {
            let request = c.resources.as_ref().and_then(|r| r.requests.as_ref()?.get(resource));
            let request = request.and_then(|q| Quantity::parse(&q.0).ok());
            let Some(request) = request else {
                return Err(format!("missing request for {resource} in container {} of Pod {name}", c.name));
            };
            sum = sum.saturating_add(clamp(request.milli()));
        }
        all.insert(name, sum);
    }
    Ok(all)
}

pub(super) fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// Rounds up to a number of replicas.
#[allow(clippy::cast_possible_truncation)] // Floats saturate.
fn ceil(value: f64) -> i32 {
    value.ceil() as i32
}

#[allow(clippy::cast_precision_loss)] // Far from 2^53, and the reference computes so.
fn float(value: i64) -> f64 {
    value as f64
}

#[allow(clippy::cast_precision_loss)]
fn count(n: usize) -> f64 {
    n as f64
}

/// An answer: replicas, and what was measured on average, as utilization in percent where there are requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) replicas: i32,
    pub(super) utilization: Option<i32>,
    pub(super) value: i64,
}

/// The ratio of what is used to what should be used, with the averages.
type Ratio<'a> = &'a dyn Fn(&Samples) -> Result<(f64, Option<i32>, i64), String>;

/// The shape that both kinds of per-pod metrics share. `busy` is what a silent pod counts as on the way down.
fn settle(
    situation: &Situation<'_>,
    mut samples: Samples,
    resource: &str,
    ratio: Ratio<'_>,
    busy: &dyn Fn(&str) -> i64,
) -> Result<Answer, String> {
    let groups = group(situation, &samples, resource);
    samples.retain(|pod, _| !groups.ignored.contains(pod) && !groups.unready.contains(pod));
    if samples.is_empty() {
        return Err("did not receive metrics for any targeted pods (pods might be unready)".into());
    }
    let (first, utilization, value) = ratio(&samples)?;
    let answer = |replicas| Ok(Answer { replicas, utilization, value });
    let current = situation.current;
    let rebalance = !groups.unready.is_empty() && first > 1.0;
    if !rebalance && groups.missing.is_empty() {
        if situation.tolerances.cover(first) {
            return answer(current);
        }
        return answer(ceil(first * count(groups.ready)));
    }
    let mut fill = |pod: &String, value: i64| {
        samples.insert(pod.clone(), Sample { value, at: situation.now, window: Duration::ZERO });
    };
    if first < 1.0 {
        groups.missing.iter().for_each(|pod| fill(pod, busy(pod)));
    } else if first > 1.0 {
        groups.missing.iter().for_each(|pod| fill(pod, 0));
    }
    if rebalance {
        groups.unready.iter().for_each(|pod| fill(pod, 0));
    }
    let (second, ..) = ratio(&samples)?;
    let turned = (first < 1.0 && second > 1.0) || (first > 1.0 && second < 1.0);
    if situation.tolerances.cover(second) || turned {
        return answer(current);
    }
    let replicas = ceil(second * count(samples.len()));
    if (second < 1.0 && replicas > current) || (second > 1.0 && replicas < current) {
        return answer(current);
    }
    answer(replicas)
}

const NO_PODS: &str = "no pods returned by selector while calculating replica count";

/// For a target in percent of what pods request.
pub(super) fn utilization(
    situation: &Situation<'_>,
    samples: Samples,
    resource: &str,
    container: Option<&str>,
    target: i32,
) -> Result<Answer, String> {
    if situation.pods.is_empty() {
        return Err(NO_PODS.into());
    }
    let requests = requests(situation.pods, container, resource)?;
    let ratio = |samples: &Samples| {
        let known = || samples.iter().filter_map(|(pod, s)| Some((s.value, *requests.get(pod)?)));
        let used: i64 = known().map(|(used, _)| used).sum();
        let asked: i64 = known().map(|(_, asked)| asked).sum();
        if asked == 0 {
            return Err("no metrics returned matched known pods".to_owned());
        }
        let percent = i32::try_from(used.saturating_mul(100) / asked).unwrap_or(i32::MAX);
        let entries = i64::try_from(known().count()).unwrap_or(1);
        Ok((f64::from(percent) / f64::from(target), Some(percent), used / entries))
    };
    let busy = |pod: &str| {
        let request = requests.get(pod).copied().unwrap_or(0);
        request.saturating_mul(i64::from(target.max(100))) / 100
    };
    settle(situation, samples, resource, &ratio, &busy)
}

/// For a target that is an average per pod. `resource` is empty where the metric is none.
pub(super) fn average(
    situation: &Situation<'_>,
    samples: Samples,
    resource: &str,
    target: i64,
) -> Result<Answer, String> {
    if situation.pods.is_empty() {
        return Err(NO_PODS.into());
    }
    let ratio = |samples: &Samples| {
        let sum: i64 = samples.values().map(|s| s.value).sum();
        let average = sum / i64::try_from(samples.len().max(1)).unwrap_or(1);
        Ok((float(average) / float(target), None, average))
    };
    settle(situation, samples, resource, &ratio, &|_| target)
}

/// For one value of the whole against a target for the whole.
pub(super) fn whole(situation: &Situation<'_>, value: i64, target: i64) -> Result<Answer, String> {
    let ratio = float(value) / float(target);
    let answer = |replicas| Ok(Answer { replicas, utilization: None, value });
    if situation.current == 0 {
        return answer(ceil(ratio));
    }
    if situation.tolerances.cover(ratio) {
        return answer(situation.current);
    }
    if situation.pods.is_empty() {
        return Err(format!("unable to calculate ready pods: {NO_PODS}"));
    }
    let ready = situation.pods.iter().filter(|p| pods::phase(p) == "Running" && pods::is_ready(p)).count();
    answer(ceil(ratio * count(ready)))
}

/// For one value of the whole against a target for each pod.
pub(super) fn share(situation: &Situation<'_>, value: i64, target: i64) -> Answer {
    let has = situation.status;
    let ratio = float(value) / (float(target) * f64::from(has));
    let replicas = if situation.tolerances.cover(ratio) { has } else { ceil(float(value) / float(target)) };
    let each = if has > 0 { value.saturating_add(i64::from(has) - 1) / i64::from(has) } else { 0 };
    Answer { replicas, utilization: None, value: each }
}
