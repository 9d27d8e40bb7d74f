//! What each kind of metric says: from what was fetched to a number of replicas, a status, or the reference's words for
//! why there is none. Pure.

use homeostat_model::quantity::{Format, Quantity};
use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricStatus, MetricIdentifier, MetricSpec, MetricStatus,
    MetricTarget, MetricValueStatus, ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::calc::{self, Answer, Samples, Situation, clamp};

/// What a metric's API said.
#[derive(Clone, Debug)]
pub(super) enum Fetched {
    /// A value for each pod.
    Pods(Samples),
    /// One value, or several that are summed up.
    Sum(i64),
}

/// What one metric proposes.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// How the metric is called in reasons.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// Why there is no proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The reason of the event and the condition.
    pub(super) reason: &'static str,
    /// What event and condition say.
    pub(super) cause: String,
    /// What the event about all metrics says.
    pub(super) whole: String,
}

fn milli(amount: &Amount) -> i64 {
    Quantity::parse(&amount.0).map_or(0, |q| clamp(q.milli()))
}

fn amount(milli: i64) -> Amount {
    Amount(Quantity::from_milli(milli.into(), Format::DecimalSi).to_string())
}

fn averaged(answer: Answer) -> MetricValueStatus {
    MetricValueStatus {
        average_utilization: answer.utilization,
        average_value: Some(amount(answer.value)),
        ..MetricValueStatus::default()
    }
}

/// What a metric proposes.
pub(super) fn propose(
    spec: &MetricSpec,
    namespace: &str,
    fetched: Result<Fetched, String>,
    situation: &Situation<'_>,
) -> Result<Proposal, Failure> {
    let status = |kind: &str| MetricStatus { type_: kind.into(), ..MetricStatus::default() };
    match (spec.type_.as_str(), spec) {
        ("Resource", MetricSpec { resource: Some(source), .. }) => {
            let outcome = resource(&source.name, None, &source.target, fetched, situation);
            let (answer, name) = outcome.map_err(|cause| Failure {
                reason: "FailedGetResourceMetric",
                whole: format!("failed to get {} resource metric value: {cause}", source.name),
                cause,
            })?;
            let current = averaged(answer);
            let resource = Some(ResourceMetricStatus { name: source.name.clone(), current });
            let status = MetricStatus { resource, ..status("Resource") };
            Ok(Proposal { replicas: answer.replicas, name, status })
        }
        ("ContainerResource", MetricSpec { container_resource: Some(source), .. }) => {
            let container = Some(source.container.as_str());
            let outcome = resource(&source.name, container, &source.target, fetched, situation);
            let (answer, name) = outcome.map_err(|cause| Failure {
                reason: "FailedGetContainerResourceMetric",
                whole: format!("failed to get {} container metric value: {cause}", source.container),
                cause,
            })?;
            let container_resource = Some(ContainerResourceMetricStatus {
                container: source.container.clone(),
                name: source.name.clone(),
                current: averaged(answer),
            });
            let status = MetricStatus { container_resource, ..status("ContainerResource") };
            Ok(Proposal { replicas: answer.replicas, name, status })
        }
        ("Pods", MetricSpec { pods: Some(source), .. }) => {
            let target = source.target.average_value.as_ref().map_or(0, milli);
            let name = &source.metric.name;
            let fetched = fetched.map_err(|e| format!("unable to get metric {name}: {e}"));
            let answer = fetched.and_then(|f| calc::average(situation, samples(f), "", target));
            let answer = answer.map_err(|cause| Failure {
                reason: "FailedGetPodsMetric",
                whole: format!("failed to get pods metric value: {cause}"),
                cause,
            })?;
            let pods = Some(PodsMetricStatus { metric: source.metric.clone(), current: averaged(answer) });
            let status = MetricStatus { pods, ..status("Pods") };
            Ok(Proposal { replicas: answer.replicas, name: format!("pods metric {name}"), status })
        }
        ("Object", MetricSpec { object: Some(source), .. }) => {
            let (metric, of) = (&source.metric, &source.described_object);
            // The reference's order of words.
            let explain = |e| {
                format!("unable to get metric {}: {} on {namespace} {}/{e}", metric.name, of.kind, of.name)
            };
            let wrap = |e: &str| format!("failed to get {} object metric: {e}", metric.name);
            let (answer, current) =
                single(&source.target, fetched.map_err(explain), situation, "object", &wrap).map_err(
                    |(cause, outer)| Failure {
                        reason: "FailedGetObjectMetric",
                        whole: format!("failed to get object metric value: {outer}"),
                        cause,
                    },
                )?;
            let name = match source.target.type_.as_str() {
                "Value" => format!("{} metric {}", of.kind, metric.name),
                _ => named(metric),
            };
            let object = ObjectMetricStatus { described_object: of.clone(), metric: metric.clone(), current };
            let status = MetricStatus { object: Some(object), ..status("Object") };
            Ok(Proposal { replicas: answer.replicas, name, status })
        }
        ("External", MetricSpec { external: Some(source), .. }) => {
            let metric = &source.metric;
            let explain = |e| {
                let selector = selector(metric.selector.as_ref());
                format!("unable to get external metric {namespace}/{}/{selector}: {e}", metric.name)
            };
            let average = source.target.average_value.is_some();
            let wrap = |e: &str| {
                if average {
                    format!("failed to get {} external metric: {e}", metric.name)
                } else {
                    format!("failed to get external metric {}: {e}", metric.name)
                }
            };
            let (answer, current) =
                single(&source.target, fetched.map_err(explain), situation, "external", &wrap).map_err(
                    |(cause, outer)| Failure {
                        reason: "FailedGetExternalMetric",
                        whole: format!("failed to get {} external metric value: {outer}", metric.name),
                        cause,
                    },
                )?;
            let external = Some(ExternalMetricStatus { metric: metric.clone(), current });
            let status = MetricStatus { external, ..status("External") };
            Ok(Proposal { replicas: answer.replicas, name: named(metric), status })
        }
        (kind, _) => {
            let cause = format!("unknown metric source type {kind:?}");
            Err(Failure { reason: "InvalidMetricSourceType", whole: cause.clone(), cause })
        }
    }
}

fn samples(fetched: Fetched) -> Samples {
    match fetched {
        Fetched::Pods(samples) => samples,
        Fetched::Sum(_) => Samples::new(),
    }
}

fn resource(
    resource: &str,
    container: Option<&str>,
    target: &MetricTarget,
    fetched: Result<Fetched, String>,
    situation: &Situation<'_>,
) -> Result<(Answer, String), String> {
    let fetched = fetched.map_err(|e| format!("unable to get metrics for resource {resource}: {e}"));
    if let Some(target) = &target.average_value {
        let answer = fetched.and_then(|f| calc::average(situation, samples(f), resource, milli(target)));
        let answer = answer.map_err(|e| format!("failed to get {resource} usage: {e}"))?;
        return Ok((answer, format!("{resource} resource")));
    }
    let Some(target) = target.average_utilization else {
        let text = "invalid resource metric source: neither an average utilization target nor an average value \
                    (usage) target was set";
        return Err(text.into());
    };
    let answer = fetched.and_then(|f| calc::utilization(situation, samples(f), resource, container, target));
    let answer = answer.map_err(|e| format!("failed to get {resource} utilization: {e}"))?;
    let of = if container.is_some() { "container resource" } else { "resource" };
    Ok((answer, format!("{resource} {of} utilization (percentage of request)")))
}

/// A metric that is one value: against a target for the whole, or for each pod. The error is the cause, and the cause
/// as the event about all metrics has it.
fn single(
    target: &MetricTarget,
    fetched: Result<Fetched, String>,
    situation: &Situation<'_>,
    what: &str,
    wrap: &dyn Fn(&str) -> String,
) -> Result<(Answer, MetricValueStatus), (String, String)> {
    let value = fetched.map(|f| match f {
        Fetched::Sum(value) => value,
        Fetched::Pods(samples) => samples.values().map(|s| s.value).sum(),
    });
    // Both may be set in theory; an external metric's average wins, an object's type decides.
    let average =
        target.average_value.as_ref().filter(|_| what == "external" || target.type_ == "AverageValue");
    let outcome = match (average, &target.value) {
        (Some(average), _) => value.map(|value| {
            let answer = calc::share(situation, value, milli(average));
            (answer, averaged(answer))
        }),
        (None, Some(target)) => value.and_then(|value| {
            let answer = calc::whole(situation, value, milli(target))?;
            Ok((answer, MetricValueStatus { value: Some(amount(value)), ..MetricValueStatus::default() }))
        }),
        (None, None) => {
            let text = format!(
                "invalid {what} metric source: neither a value target nor an average value target was set"
            );
            return Err((text.clone(), text));
        }
    };
    outcome.map_err(|cause| {
        let plain = what == "object" && average.is_none();
        let outer = if plain { cause.clone() } else { wrap(&cause) };
        (cause, outer)
    })
}

fn named(metric: &MetricIdentifier) -> String {
    format!("external metric {}({})", metric.name, selector(metric.selector.as_ref()))
}

/// A selector as Go prints it.
fn selector(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return "nil".into() };
    let labels: String = selector.match_labels.iter().flatten().map(|(k, v)| format!("{k}: {v},")).collect();
    let one = |r: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement| {
        let values = r.values.as_deref().unwrap_or_default().join(" ");
        format!("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},", r.key, r.operator)
    };
    let expressions: String = selector.match_expressions.iter().flatten().map(one).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
