//! Rows of what runs pods.

use homeostat_model::Timestamp;
use serde_json::Value;

use super::cells::{age, ago, condition, containers, flag, labels, name, number, or, plain, selector};
use crate::builtin::value::{at, flag as is, has, int, items, text};
use crate::table::human_duration;

fn with_containers(mut row: Vec<Value>, spec: &Value) -> Vec<Value> {
    row.extend(containers(spec));
    row
}

/// A PodTemplate.
pub(super) fn pod_template(object: &Value, _now: Timestamp) -> Vec<Value> {
    let mut row = with_containers(vec![name(object)], at(object, "template.spec"));
    row.push(labels(at(object, "template.metadata.labels")));
    row
}

/// A ReplicationController.
pub(super) fn replication_controller(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut row = replicas(object, now);
    row.push(labels(at(object, "spec.selector")));
    row
}

/// A ReplicaSet.
pub(super) fn replica_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut row = replicas(object, now);
    row.push(selector(at(object, "spec.selector")));
    row
}

fn replicas(object: &Value, now: Timestamp) -> Vec<Value> {
    let row = vec![
        name(object),
        number(object, "spec.replicas"),
        number(object, "status.replicas"),
        number(object, "status.readyReplicas"),
        age(object, now),
    ];
    with_containers(row, at(object, "spec.template.spec"))
}

fn ready(object: &Value) -> Value {
    let (ready, wanted) = (int(object, "status.readyReplicas"), int(object, "spec.replicas"));
    format!("{}/{}", ready.unwrap_or_default(), wanted.unwrap_or_default()).into()
}

/// A Deployment.
pub(super) fn deployment(object: &Value, now: Timestamp) -> Vec<Value> {
    let row = vec![
        name(object),
        ready(object),
        number(object, "status.updatedReplicas"),
        number(object, "status.availableReplicas"),
        age(object, now),
    ];
    let mut row = with_containers(row, at(object, "spec.template.spec"));
    row.push(selector(at(object, "spec.selector")));
    row
}

/// A StatefulSet.
pub(super) fn stateful_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let row = vec![name(object), ready(object), age(object, now)];
    with_containers(row, at(object, "spec.template.spec"))
}

/// A DaemonSet.
pub(super) fn daemon_set(object: &Value, now: Timestamp) -> Vec<Value> {
    let row = vec![
        name(object),
        number(object, "status.desiredNumberScheduled"),
        number(object, "status.currentNumberScheduled"),
        number(object, "status.numberReady"),
        number(object, "status.updatedNumberScheduled"),
        number(object, "status.numberAvailable"),
        labels(at(object, "spec.template.spec.nodeSelector")),
        age(object, now),
    ];
    let mut row = with_containers(row, at(object, "spec.template.spec"));
    row.push(selector(at(object, "spec.selector")));
    row
}

/// A ControllerRevision.
pub(super) fn controller_revision(object: &Value, now: Timestamp) -> Vec<Value> {
    let owner = items(object, "metadata.ownerReferences").iter().find(|o| is(o, "controller"));
    let controller = owner.map_or_else(String::new, |o| {
        let kind = text(o, "kind").to_lowercase();
        match text(o, "apiVersion").split_once('/') {
            Some((group, _)) => format!("{kind}.{group}/{}", text(o, "name")),
            None => format!("{kind}/{}", text(o, "name")),
        }
    });
    vec![name(object), or(&controller, "<none>"), number(object, "revision"), age(object, now)]
}

/// A Job.
pub(super) fn job(object: &Value, now: Timestamp) -> Vec<Value> {
    let succeeded = int(object, "status.succeeded").unwrap_or_default();
    let completions = match (int(object, "spec.completions"), int(object, "spec.parallelism").unwrap_or(1)) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let seconds = |path: &str| text(object, path).parse::<Timestamp>().ok().map(Timestamp::as_second);
    let end = seconds("status.completionTime").unwrap_or(now.as_second());
    let duration = seconds("status.startTime").map_or_else(String::new, |start| human_duration(end - start));
    let holds = |kind: &str| condition(object, kind).is_some_and(|c| text(c, "status") == "True");
    let status = if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if has(object, "metadata.deletionTimestamp") {
        "Terminating"
    } else if holds("Suspended") {
        "Suspended"
    } else if holds("FailureTarget") {
        "FailureTarget"
    } else if holds("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let row = vec![name(object), status.into(), completions.into(), duration.into(), age(object, now)];
    let mut row = with_containers(row, at(object, "spec.template.spec"));
    row.push(selector(at(object, "spec.selector")));
    row
}

/// A CronJob.
pub(super) fn cron_job(object: &Value, now: Timestamp) -> Vec<Value> {
    let last = text(object, "status.lastScheduleTime");
    let row = vec![
        name(object),
        text(object, "spec.schedule").into(),
        or(text(object, "spec.timeZone"), "<none>"),
        flag(at(object, "spec.suspend")),
        items(object, "status.active").len().into(),
        if last.is_empty() { "<none>".into() } else { ago(last, now).into() },
        age(object, now),
    ];
    let mut row = with_containers(row, at(object, "spec.jobTemplate.spec.template.spec"));
    row.push(selector(at(object, "spec.jobTemplate.spec.selector")));
    row
}

/// A HorizontalPodAutoscaler of either version.
pub(super) fn autoscaler(object: &Value, now: Timestamp) -> Vec<Value> {
    let min = at(object, "spec.minReplicas");
    vec![
        name(object),
        format!("{}/{}", text(object, "spec.scaleTargetRef.kind"), text(object, "spec.scaleTargetRef.name"))
            .into(),
        targets(object),
        if min.is_null() { "<unset>".into() } else { plain(min).into() },
        number(object, "spec.maxReplicas"),
        number(object, "status.currentReplicas"),
        age(object, now),
    ]
}

fn targets(hpa: &Value) -> Value {
    if let Some(target) = int(hpa, "spec.targetCPUUtilizationPercentage") {
        let now = int(hpa, "status.currentCPUUtilizationPercentage");
        let now = now.map_or_else(|| "<unknown>".to_owned(), |n| format!("{n}%"));
        return format!("cpu: {now}/{target}%").into();
    }
    let current = items(hpa, "status.currentMetrics");
    let mut shown: Vec<String> = items(hpa, "spec.metrics")
        .iter()
        .enumerate()
        .map(|(i, metric)| target(metric, current.get(i).unwrap_or(&Value::Null)))
        .collect();
    match shown.len() {
        0 => "<none>".into(),
        n if n > 2 => {
            shown.truncate(2);
            format!("{} + {} more...", shown.join(", "), n - 2).into()
        }
        _ => shown.join(", ").into(),
    }
}

fn target(metric: &Value, current: &Value) -> String {
    let field = match text(metric, "type") {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let (wanted, now) = (at(&metric[field], "target"), at(&current[field], "current"));
    let known = |value: String| if value.is_empty() { "<unknown>".to_owned() } else { value };
    let per_resource = matches!(field, "resource" | "containerResource");
    if per_resource {
        let name = text(&metric[field], "name");
        if let Some(percent) = int(wanted, "averageUtilization") {
            let now = int(now, "averageUtilization").map_or_else(String::new, |n| format!("{n}%"));
            return format!("{name}: {}/{percent}%", known(now));
        }
        return format!(
            "{name}: {}/{}",
            known(plain(at(now, "averageValue"))),
            plain(at(wanted, "averageValue"))
        );
    }
    if has(wanted, "averageValue") {
        let average = if field == "pods" { "" } else { " (avg)" };
        return format!(
            "{}/{}{average}",
            known(plain(at(now, "averageValue"))),
            plain(at(wanted, "averageValue"))
        );
    }
    format!("{}/{}", known(plain(at(now, "value"))), plain(at(wanted, "value")))
}
