//! The arithmetic, the damping and the words, in tables.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscalerBehavior, MetricSpec};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::calc::{self, Sample, Samples, Situation, Tolerances};
use super::history::{Bounds, History};
use super::source::{Fetched, Proposal, propose};
use super::{largest, tolerance};

const NOW: i64 = 1_000_000;

fn at(offset: i64) -> Timestamp {
    Timestamp::from_second(NOW + offset).unwrap()
}

/// Pods that request 1000m each: `r` ready for long, `s` ready but just started, `u` unready for long after it was
/// ready, `n` never ready, `p` pending, `f` failed, `t` on its way out. They are named by their place.
fn pods(kinds: &str) -> Vec<Arc<Pod>> {
    let one = |(i, kind): (usize, char)| {
        let phase = match kind {
            'p' => "Pending",
            'f' => "Failed",
            _ => "Running",
        };
        let (started, ready, turned) = match kind {
            's' => (-60, "True", -10),
            'u' => (-3600, "False", -600),
            'n' => (-3600, "False", -3590),
            _ => (-3600, "True", -3500),
        };
        let deleted = (kind == 't').then(|| at(0).to_string());
        let pod = json!({"metadata": {"name": format!("p{i}"), "deletionTimestamp": deleted},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": phase, "startTime": at(started).to_string(), "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": at(turned).to_string()}]}});
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    kinds.chars().enumerate().map(one).collect()
}

fn samples(values: &[i64]) -> Samples {
    let one = |(i, value): (usize, &i64)| {
        let sample = Sample { value: *value, at: at(-5), window: Duration::from_secs(30) };
        (format!("p{i}"), sample)
    };
    values.iter().enumerate().filter(|(_, v)| **v >= 0).map(one).collect()
}

fn situation(pods: &[Arc<Pod>], current: i32) -> Situation<'_> {
    let tolerances = Tolerances { down: 0.1, up: 0.1 };
    Situation { pods, current, status: current, tolerances, now: at(0) }
}

/// -1 stands for a pod without a sample. The answer is `replicas utilization% average`.
#[track_caller]
fn check(kinds: &str, values: &[i64], current: i32, target: i32, want: &str) {
    let pods = pods(kinds);
    let answer = calc::utilization(&situation(&pods, current), samples(values), "cpu", None, target);
    let got = match answer {
        Ok(a) => format!("{} {}% {}", a.replicas, a.utilization.unwrap_or(-1), a.value),
        Err(e) => e,
    };
    assert_eq!(got, want, "{kinds} {values:?}");
}

#[test]
fn utilization_asks_for_replicas() {
    check("rrr", &[300, 500, 700], 3, 30, "5 50% 500");
    check("rrr", &[300, 500, 700], 3, 50, "3 50% 500");
    check("rrr", &[300, 500, 700], 3, 47, "3 50% 500");
    check("rrrrr", &[100, 300, 500, 250, 250], 5, 50, "3 28% 280");
    check("r", &[8000], 1, 80, "10 800% 8000");
    check("rrr", &[0, 0, 0], 3, 50, "0 0% 0");
    let none = "did not receive metrics for any targeted pods (pods might be unready)";
    check("pp", &[], 2, 50, none);
    check("rr", &[], 2, 50, none);
    check("", &[], 2, 50, "no pods returned by selector while calculating replica count");
}

#[test]
fn doubtful_pods_damp() {
    // Unready ones are idle on the way up …
    check("rrn", &[900, 900, 900], 3, 50, "4 90% 900");
    check("rrp", &[900, 900], 3, 50, "4 90% 900");
    check("rrs", &[900, 900, 900], 3, 50, "4 90% 900");
    // … and don't count on the way down.
    check("rrn", &[100, 100, 900], 3, 50, "1 10% 100");
    // One that was ready before counts, failed and leaving ones never do.
    check("rru", &[900, 900, 900], 3, 50, "6 90% 900");
    check("rrft", &[900, 900, 900, 900], 4, 50, "4 90% 900");
    // Silent ones are idle on the way up and busy on the way down.
    check("rrr", &[900, 900, -1], 3, 50, "4 90% 900");
    check("rrr", &[100, 100, -1], 3, 50, "3 10% 100");
    check("rrrr", &[100, 100, 100, -1], 4, 50, "3 10% 100");
    // What would turn the direction changes nothing.
    check("rpp", &[600], 3, 50, "3 60% 600");
    // A target above the request: so busy is a silent pod.
    check("rr", &[1000, -1], 2, 200, "2 100% 1000");
}

#[test]
fn requests_are_needed() {
    let mut pod = Pod::clone(&pods("r")[0]);
    pod.spec.as_mut().unwrap().containers[0].resources = None;
    let pods = [Arc::new(pod)];
    let answer = calc::utilization(&situation(&pods, 1), samples(&[100]), "cpu", None, 50);
    assert_eq!(answer.unwrap_err(), "missing request for cpu in container c of Pod p0");
}

#[test]
fn averages_and_wholes() {
    let all = pods("rrr");
    let average = |values: &[i64], target| {
        calc::average(&situation(&all, 3), samples(values), "", target).map(|a| (a.replicas, a.value))
    };
    assert_eq!(average(&[20_000, 10_000, 30_000], 15_000), Ok((4, 20_000)));
    assert_eq!(average(&[10_000, 10_000, -1], 15_000), Ok((3, 10_000)));
    let whole =
        |current, value, target| calc::whole(&situation(&all, current), value, target).unwrap().replicas;
    assert_eq!(whole(3, 20_000, 15_000), 4);
    assert_eq!(whole(3, 15_500, 15_000), 3);
    // From nothing to something: the ratio alone counts.
    assert_eq!(whole(0, 3_000, 1_000), 3);
    let share = |status, value, target| {
        let answer = calc::share(&situation(&all, status), value, target);
        (answer.replicas, answer.value)
    };
    assert_eq!(share(3, 90_000, 10_000), (9, 30_000));
    assert_eq!(share(3, 31_000, 10_000), (3, 10_334));
    assert_eq!(share(0, 31_000, 10_000), (4, 0));
}

fn behavior(value: Value) -> HorizontalPodAutoscalerBehavior {
    serde_json::from_value(value).unwrap()
}

/// A walk: at each second a wish, and what is set, with what limits it. Each answer becomes the current size.
#[track_caller]
fn walk(behavior: Option<Value>, start: i32, max: i32, steps: &[(i64, i32, i32, &str)]) {
    let behavior = behavior.map(self::behavior);
    let mut history = History::default();
    let mut current = start;
    history.begin(current, at(0));
    for &(second, wanted, want, why) in steps {
        let bounds = Bounds { current, min: 1, max, now: at(second) };
        let normal = history.normalize(behavior.as_ref(), bounds, wanted);
        let reason = if normal.limited.0 { normal.limited.1.0 } else { normal.able.0 };
        assert_eq!((normal.replicas, reason), (want, why), "after {second} s");
        if normal.replicas != current {
            history.changed(behavior.as_ref(), current, normal.replicas, at(second));
        }
        current = normal.replicas;
    }
}

#[test]
fn without_a_behavior_shrinking_waits_and_growing_doubles() {
    walk(
        None,
        5,
        100,
        &[
            (0, 30, 10, "ScaleUpLimit"),
            (15, 30, 20, "ScaleUpLimit"),
            (30, 30, 30, "ReadyForNewScale"),
            (45, 3, 30, "ScaleDownStabilized"),
            (200, 4, 30, "ScaleDownStabilized"),
            (331, 2, 4, "ScaleDownStabilized"),
            (801, 0, 1, "TooFewReplicas"),
            (816, 400, 4, "ScaleUpLimit"),
        ],
    );
    walk(None, 5, 8, &[(0, 30, 8, "TooManyReplicas")]);
}

#[test]
fn behaviors_limit_the_rate() {
    let slow = json!({"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]},
        "scaleDown": {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}});
    walk(
        Some(slow),
        4,
        100,
        &[
            (0, 20, 6, "ScaleUpLimit"),
            (30, 20, 6, "ScaleUpLimit"),
            (61, 20, 8, "ScaleUpLimit"),
            (130, 1, 4, "ScaleDownLimit"),
            (150, 1, 4, "ScaleDownLimit"),
            (191, 1, 2, "ScaleDownLimit"),
            (252, 1, 1, "ReadyForNewScale"),
        ],
    );
    let both = |select: &str| {
        json!({"scaleUp": {"selectPolicy": select, "policies": [
            {"type": "Pods", "value": 1, "periodSeconds": 60}, {"type": "Percent", "value": 100, "periodSeconds": 60}]}})
    };
    walk(Some(both("Max")), 10, 100, &[(0, 50, 20, "ScaleUpLimit")]);
    walk(Some(both("Min")), 10, 100, &[(0, 50, 11, "ScaleUpLimit")]);
    walk(Some(both("Disabled")), 10, 100, &[(0, 50, 10, "ScaleUpLimit")]);
    walk(Some(json!({})), 10, 15, &[(0, 50, 15, "TooManyReplicas")]);
}

#[test]
fn behaviors_stabilize_both_ways() {
    let patient = json!({"scaleUp": {"stabilizationWindowSeconds": 60}, "scaleDown": {"stabilizationWindowSeconds": 30}});
    walk(
        Some(patient),
        10,
        100,
        &[
            (0, 20, 10, "ScaleUpStabilized"),
            (30, 18, 10, "ScaleUpStabilized"),
            (61, 19, 18, "ScaleUpStabilized"),
            (75, 5, 18, "ScaleDownStabilized"),
            (106, 6, 6, "ReadyForNewScale"),
        ],
    );
}

#[test]
fn tolerances_are_quantities() {
    let of = |value: Value| tolerance(behavior(json!({"scaleUp": {"tolerance": value}})).scale_up.as_ref());
    assert!((of(json!("50m")) - 0.05).abs() < 1e-9);
    assert!((of(json!("0")) - 0.0).abs() < 1e-9);
    assert!((tolerance(None) - 0.1).abs() < 1e-9);
}

fn proposal(spec: Value, fetched: Result<Fetched, &str>) -> Result<Proposal, super::Failure> {
    let all = pods("rrr");
    let spec: MetricSpec = serde_json::from_value(spec).unwrap();
    propose(&spec, "ns", fetched.map_err(str::to_owned), &situation(&all, 3))
}

#[test]
fn metrics_have_names_and_statuses() {
    let check = |spec: Value, fetched: Fetched, replicas: i32, name: &str, status: Value| {
        let got = proposal(spec, Ok(fetched)).unwrap();
        assert_eq!((got.replicas, got.name.as_str()), (replicas, name));
        assert_eq!(json!(got.status), status);
    };
    check(
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 30}}}),
        Fetched::Pods(samples(&[300, 500, 700])),
        5,
        "cpu resource utilization (percentage of request)",
        json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50, "averageValue": "500m"}}}),
    );
    check(
        json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
            "target": {"type": "AverageValue", "averageValue": "1"}}}),
        Fetched::Pods(samples(&[2000, 2000, 2000])),
        6,
        "cpu resource",
        json!({"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "current": {"averageValue": "2"}}}),
    );
    check(
        json!({"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}}}),
        Fetched::Pods(samples(&[20_000, 20_000, 20_000])),
        6,
        "pods metric qps",
        json!({"type": "Pods", "pods": {"metric": {"name": "qps"}, "current": {"averageValue": "20"}}}),
    );
    let web = json!({"kind": "Service", "name": "web", "apiVersion": "v1"});
    check(
        json!({"type": "Object", "object": {"describedObject": web, "metric": {"name": "rps"},
            "target": {"type": "Value", "value": "10"}}}),
        Fetched::Sum(20_000),
        6,
        "Service metric rps",
        json!({"type": "Object", "object": {"describedObject": web, "metric": {"name": "rps"}, "current": {"value": "20"}}}),
    );
    check(
        json!({"type": "External", "external": {"metric": {"name": "jobs", "selector": {"matchLabels": {"q": "a"}}},
            "target": {"type": "AverageValue", "averageValue": "10"}}}),
        Fetched::Sum(90_000),
        9,
        "external metric jobs(&LabelSelector{MatchLabels:map[string]string{q: a,},MatchExpressions:[]LabelSelectorRequirement{},})",
        json!({"type": "External", "external": {"metric": {"name": "jobs", "selector": {"matchLabels": {"q": "a"}}},
            "current": {"averageValue": "30"}}}),
    );
}

#[test]
fn failures_have_the_references_words() {
    let check = |spec: Value, error: &str, reason: &str, cause: &str, whole: &str| {
        let got = proposal(spec, Err(error)).unwrap_err();
        assert_eq!((got.reason, got.cause.as_str(), got.whole.as_str()), (reason, cause, whole));
    };
    let gone = "unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)";
    let cause = format!("failed to get cpu utilization: unable to get metrics for resource cpu: {gone}");
    check(
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 30}}}),
        gone,
        "FailedGetResourceMetric",
        &cause,
        &format!("failed to get cpu resource metric value: {cause}"),
    );
    check(
        json!({"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "AverageValue", "averageValue": "10"}}}),
        "x",
        "FailedGetPodsMetric",
        "unable to get metric qps: x",
        "failed to get pods metric value: unable to get metric qps: x",
    );
    check(
        json!({"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "web"}, "metric": {"name": "rps"},
            "target": {"type": "Value", "value": "10"}}}),
        "x",
        "FailedGetObjectMetric",
        "unable to get metric rps: Service on ns web/x",
        "failed to get object metric value: unable to get metric rps: Service on ns web/x",
    );
    check(
        json!({"type": "External", "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "10"}}}),
        "x",
        "FailedGetExternalMetric",
        "unable to get external metric ns/jobs/nil: x",
        "failed to get jobs external metric value: failed to get external metric jobs: unable to get external metric ns/jobs/nil: x",
    );
}

#[test]
fn a_failing_metric_keeps_from_shrinking() {
    let good = |value: i64| {
        proposal(
            json!({"type": "External", "external": {"metric": {"name": "jobs"}, "target": {"type": "Value", "value": "10"}}}),
            Ok(Fetched::Sum(value)),
        )
    };
    let bad = || proposal(json!({"type": "Odd"}), Err("x"));
    let replicas = |outcomes| match largest(outcomes, 3).result {
        Ok((n, _)) => n.to_string(),
        Err((_, text)) => text,
    };
    assert_eq!(replicas(vec![good(20_000), good(50_000)]), "15");
    assert_eq!(replicas(vec![bad(), good(50_000)]), "15");
    let why = "first error is: unknown metric source type \"Odd\"";
    assert_eq!(replicas(vec![good(5_000), bad()]), format!("invalid metrics (1 invalid out of 2), {why}"));
    assert_eq!(replicas(vec![bad()]), format!("invalid metrics (1 invalid out of 1), {why}"));
}
