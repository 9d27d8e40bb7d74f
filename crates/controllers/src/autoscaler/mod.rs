//! HorizontalPodAutoscalers: as many replicas as the metrics ask for, within bounds and not too fast.
//!
//! Every 15 seconds [`metrics`] asks, [`source`] and [`calc`] make proposals of the answers, the largest wins, and
//! [`history`] damps it. The target is any kind with a `scale` subresource.
//! Invariant: the target's size is only ever changed on the condition that nobody else changed it since it was read.

mod calc;
mod history;
mod metrics;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_model::quantity::Quantity;
use homeostat_sdk::selector::Labels;
use homeostat_sdk::{Context, Event, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition,
    HorizontalPodAutoscalerStatus, MetricStatus,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::common::scale::{self, Scale};
use crate::common::served::{Discovery, Served};
use calc::{Situation, Tolerances};
use history::{Bounds, History};
use source::{Failure, Proposal};

/// How often an autoscaler is looked at (the reference's default).
const PERIOD: Duration = Duration::from_secs(15);
/// How far off the target is near enough where nothing is said (the reference's default).
const TOLERANCE: f64 = 0.1;

/// The controller.
#[derive(Default)]
pub(crate) struct Autoscalers {
    memory: Mutex<Memory>,
}

/// What is remembered; each entry goes with its autoscaler.
#[derive(Default)]
struct Memory {
    histories: BTreeMap<Key, History>,
    /// What the targets select, to find pods that two autoscalers want.
    selectors: BTreeMap<Key, Labels>,
    discovery: Option<Arc<Discovery>>,
}

/// The status as it becomes, and what is told about it.
struct Report {
    status: HorizontalPodAutoscalerStatus,
    events: Vec<Event>,
    now: Timestamp,
}

impl Report {
    fn condition(&mut self, kind: &str, status: &str, reason: &str, message: impl Into<String>) {
        let all = self.status.conditions.get_or_insert_default();
        let now = Timestamp::from_second(self.now.as_second()).ok().map(Time);
        let has = all.iter().find(|c| c.type_ == kind && c.status == status);
        let since = has.and_then(|c| c.last_transition_time.clone()).or(now);
        let new = HorizontalPodAutoscalerCondition {
            type_: kind.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_transition_time: since,
        };
        match all.iter_mut().find(|c| c.type_ == kind) {
            Some(place) => *place = new,
            None => all.push(new),
        }
    }

    fn warn(&mut self, reason: &str, note: impl Into<String>) {
        self.events.push(Event::warning(reason, note));
    }

    /// The target's size can't be learned.
    fn no_scale(&mut self, why: &str) {
        self.warn("FailedGetScale", why);
        let text = format!("the HPA controller was unable to get the target's current scale: {why}");
        self.condition("AbleToScale", "False", "FailedGetScale", text);
    }
}

impl Autoscalers {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resource of the target's kind, in the version that the server prefers; asks again where it isn't known.
    async fn target(
        &self,
        hpa: &HorizontalPodAutoscaler,
        cx: &Context<Self>,
    ) -> Result<(Arc<Discovery>, Arc<Served>), String> {
        let to = &hpa.spec.scale_target_ref;
        let version = to.api_version.as_deref().unwrap_or_default();
        let (group, _) = version.split_once('/').unwrap_or(("", version));
        let find = |d: &Discovery| d.preferred().find(|r| r.group == group && r.kind == to.kind).cloned();
        let known = self.memory().discovery.clone();
        if let Some(discovery) = known
            && let Some(served) = find(&discovery)
        {
            return Ok((discovery, served));
        }
        let discovery = Arc::new(Discovery::ask(cx.client()).await.map_err(|e| e.to_string())?);
        self.memory().discovery = Some(discovery.clone());
        let served = find(&discovery);
        served
            .map(|s| (discovery, s))
            .ok_or_else(|| format!("no matches for kind {:?} in group {group:?}", to.kind))
    }

    /// The pods of the target, unless another autoscaler wants some of them.
    fn pods(&self, scale: &Scale, report: &mut Report, cx: &Context<Self>) -> Result<Vec<Arc<Pod>>, String> {
        let text = &scale.status.selector;
        let inactive = |report: &mut Report, reason, event: &str, message: &str| {
            report.warn(reason, event);
            let reason = if reason == "SelectorRequired" { "InvalidSelector" } else { reason };
            report.condition("ScalingActive", "False", reason, message);
            Err(event.to_owned())
        };
        if text.is_empty() {
            let message = "the HPA target's scale is missing a selector";
            return inactive(report, "SelectorRequired", "selector is required", message);
        }
        let selector = match Labels::parse(text) {
            Ok(selector) => selector,
            Err(e) => {
                let why =
                    format!("couldn't convert selector into a corresponding internal selector object: {e}");
                return inactive(report, "InvalidSelector", &why, &why);
            }
        };
        let namespace = cx.namespace().unwrap_or_default();
        let pods = cx.cache::<Pod, _>().select(Some(namespace), &selector);
        let mut memory = self.memory();
        memory.selectors.insert(cx.key().clone(), selector);
        let selects = |labels: &Labels| {
            pods.iter().any(|p| {
                let has = p.metadata.labels.as_ref();
                labels.matches(|k| has.and_then(|l| l.get(k)).map(String::as_str))
            })
        };
        let others = memory.selectors.iter().filter(|(k, _)| k.namespace() == Some(namespace));
        let wanting: Vec<String> =
            others.filter(|(_, l)| selects(l)).map(|(k, _)| format!("{namespace}/{}", k.name())).collect();
        drop(memory);
        if wanting.len() > 1 {
            let why =
                format!("pods by selector {text} are controlled by multiple HPAs: [{}]", wanting.join(" "));
            return inactive(report, "AmbiguousSelector", &why, &why);
        }
        Ok(pods)
    }
}

fn tolerance(rules: Option<&HPAScalingRules>) -> f64 {
    let text = rules.and_then(|r| r.tolerance.as_ref());
    let milli = text.and_then(|t| Quantity::parse(&t.0).ok()).map(|q| calc::clamp(q.milli()));
    milli.and_then(|m| i32::try_from(m).ok()).map_or(TOLERANCE, |m| f64::from(m) / 1000.0)
}

/// What all metrics say together.
struct Verdict {
    /// The largest proposal with the metric's name, or the first failure with what to say about all.
    result: Result<(i32, String), (Failure, String)>,
    statuses: Vec<MetricStatus>,
    failures: Vec<Failure>,
}

/// The largest proposal, or why there is none that can be followed: where a metric fails, nothing gets smaller.
fn largest(outcomes: Vec<Result<Proposal, Failure>>, current: i32) -> Verdict {
    let count = outcomes.len();
    let (mut statuses, mut failures) = (Vec::new(), Vec::new());
    let mut best: Option<(i32, String)> = None;
    for outcome in outcomes {
        match outcome {
            Ok(proposal) => {
                if best.as_ref().is_none_or(|(n, _)| proposal.replicas > *n) {
                    best = Some((proposal.replicas, proposal.name));
                }
                statuses.push(proposal.status);
            }
            Err(failure) => failures.push(failure),
        }
    }
    let shrinks = best.as_ref().is_none_or(|(n, _)| *n < current);
    let result = match (best, failures.first()) {
        (Some(best), None) => Ok(best),
        (Some(best), Some(_)) if !shrinks => Ok(best),
        (_, Some(first)) => {
            let failed = failures.len();
            let text =
                format!("invalid metrics ({failed} invalid out of {count}), first error is: {}", first.whole);
            Err((first.clone(), text))
        }
        (None, None) => Ok((0, String::new())),
    };
    Verdict { result, statuses, failures }
}

impl Operator for Autoscalers {
    type Resource = HorizontalPodAutoscaler;
    type Owns = ();
    type Reads = (Pod,);

    fn name() -> &'static str {
        "horizontal-pod-autoscaler-controller"
    }

    async fn reconcile(&self, hpa: &HorizontalPodAutoscaler, cx: &Context<Self>) -> Result<Next> {
        // As in the reference, one that is new is looked at after a period, not at once.
        let known = self.memory().histories.contains_key(cx.key());
        if !known {
            self.memory().histories.insert(cx.key().clone(), History::default());
            return Ok(Next::after(PERIOD));
        }
        let mut report = Report {
            status: hpa.status.clone().unwrap_or_default(),
            events: Vec::new(),
            now: cx.clock().now(),
        };
        self.judge(hpa, &mut report, cx).await;
        let Report { status, events, .. } = report;
        for event in events {
            cx.event(event).await;
        }
        cx.status(&status).await?;
        Ok(Next::after(PERIOD))
    }

    async fn absent(&self, key: &Key, _: &Context<Self>) -> Result<Next> {
        let mut memory = self.memory();
        memory.histories.remove(key);
        memory.selectors.remove(key);
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // What was changed is seen at the next turn.
        watches.filter(|change| change.old.is_none() || change.new.is_none());
    }
}

impl Autoscalers {
    async fn judge(&self, hpa: &HorizontalPodAutoscaler, report: &mut Report, cx: &Context<Self>) {
        let namespace = cx.namespace().unwrap_or_default();
        let (discovery, served) = match self.target(hpa, cx).await {
            Ok(found) => found,
            Err(why) => return report.no_scale(&why),
        };
        let name = &hpa.spec.scale_target_ref.name;
        let scale = match scale::of(cx.client(), &served, namespace, name).await {
            Ok(scale) => scale,
            Err(why) => return report.no_scale(&why),
        };
        let text = "the HPA controller was able to get the target's current scale";
        report.condition("AbleToScale", "True", "SucceededGetScale", text);
        let (current, max) = (scale.spec.replicas, hpa.spec.max_replicas);
        let min = hpa.spec.min_replicas.unwrap_or(1);
        let now = report.now;
        self.memory().histories.entry(cx.key().clone()).or_default().begin(current, now);
        report.status.current_replicas = Some(current);
        let (wanted, reason) = if current == 0 && min != 0 {
            let text = "scaling is disabled since the replica count of the target is zero";
            report.condition("ScalingActive", "False", "ScalingDisabled", text);
            report.status.current_metrics = None;
            report.status.desired_replicas = 0;
            return;
        } else if current > max {
            report.status.current_metrics = None;
            (max, "Current number of replicas above Spec.MaxReplicas".to_owned())
        } else if current < min {
            report.status.current_metrics = None;
            (min, "Current number of replicas below Spec.MinReplicas".to_owned())
        } else {
            let Some((wanted, metric)) = self.measure(hpa, &discovery, &scale, report, cx).await else {
                return;
            };
            let reason = if wanted > current {
                format!("{metric} above target")
            } else {
                "All metrics below target".to_owned()
            };
            let bounds = Bounds { current, min, max, now };
            let behavior = hpa.spec.behavior.as_ref();
            let mut memory = self.memory();
            let history = memory.histories.entry(cx.key().clone()).or_default();
            let normal = history.normalize(behavior, bounds, wanted);
            drop(memory);
            report.condition("AbleToScale", "True", normal.able.0, normal.able.1);
            let (limited, why) = normal.limited;
            report.condition("ScalingLimited", if limited { "True" } else { "False" }, why.0, why.1);
            (normal.replicas, reason)
        };
        if wanted == current {
            report.status.desired_replicas = current;
            return;
        }
        if let Err(why) = scale::set(cx.client(), &served, namespace, &scale, wanted).await {
            report.warn("FailedRescale", format!("New size: {wanted}; reason: {reason}; error: {why}"));
            let text = format!("the HPA controller was unable to update the target scale: {why}");
            report.condition("AbleToScale", "False", "FailedUpdateScale", text);
            return;
        }
        let text = format!("the HPA controller was able to update the target scale to {wanted}");
        report.condition("AbleToScale", "True", "SucceededRescale", text);
        let text = format!("New size: {wanted}; reason: {reason}");
        report.events.push(Event::normal("SuccessfulRescale", text));
        let behavior = hpa.spec.behavior.as_ref();
        if let Some(history) = self.memory().histories.get_mut(cx.key()) {
            history.changed(behavior, current, wanted, now);
        }
        report.status.desired_replicas = wanted;
        report.status.last_scale_time = Timestamp::from_second(now.as_second()).ok().map(Time);
    }

    /// Asks all metrics. `None` where nothing can be done about the answers; the report says why.
    async fn measure(
        &self,
        hpa: &HorizontalPodAutoscaler,
        discovery: &Discovery,
        scale: &Scale,
        report: &mut Report,
        cx: &Context<Self>,
    ) -> Option<(i32, String)> {
        let pods = match self.pods(scale, report, cx) {
            Ok(pods) => pods,
            Err(why) => {
                report.warn("FailedComputeMetricsReplicas", why);
                return None;
            }
        };
        let namespace = cx.namespace().unwrap_or_default();
        let behavior = hpa.spec.behavior.as_ref();
        let tolerances = Tolerances {
            down: tolerance(behavior.and_then(|b| b.scale_down.as_ref())),
            up: tolerance(behavior.and_then(|b| b.scale_up.as_ref())),
        };
        let situation = Situation {
            pods: &pods,
            current: scale.spec.replicas,
            status: scale.status.replicas,
            tolerances,
            now: report.now,
        };
        let mut outcomes = Vec::new();
        for spec in hpa.spec.metrics.iter().flatten() {
            let selector = &scale.status.selector;
            let fetched = metrics::fetch(cx.client(), discovery, namespace, selector, spec).await;
            outcomes.push(source::propose(spec, namespace, fetched, &situation));
        }
        let Verdict { result, statuses, failures } = largest(outcomes, situation.current);
        for failure in failures {
            report.warn(failure.reason, failure.cause);
        }
        report.status.current_metrics = Some(statuses).filter(|s| !s.is_empty());
        match result {
            Ok((wanted, name)) => {
                let text = format!("the HPA was able to successfully calculate a replica count from {name}");
                report.condition("ScalingActive", "True", "ValidMetricFound", text);
                Some((wanted, name))
            }
            Err((first, text)) => {
                let message = format!("the HPA was unable to compute the replica count: {}", first.cause);
                report.condition("ScalingActive", "False", first.reason, message);
                report.warn("FailedComputeMetricsReplicas", text);
                None
            }
        }
    }
}
