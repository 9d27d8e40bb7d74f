//! The row of a pod: what its containers add up to.

use homeostat_model::Timestamp;
use serde_json::Value;

use super::cells::{age, ago, condition, name, or};
use crate::builtin::value::{flag, has, int, items, text};

/// A pod.
pub(super) fn pod(pod: &Value, now: Timestamp) -> Vec<Value> {
    let summary = summarize(pod);
    let restarts = match (summary.restarts, summary.last_restart) {
        (0, _) | (_, "") => summary.restarts.to_string(),
        (n, last) => format!("{n} ({} ago)", ago(last, now)),
    };
    let ip = items(pod, "status.podIPs").first().map_or("", |ip| text(ip, "ip"));
    let ip = if ip.is_empty() { text(pod, "status.podIP") } else { ip };
    vec![
        name(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.reason.into(),
        restarts.into(),
        age(pod, now),
        or(ip, "<none>"),
        or(text(pod, "spec.nodeName"), "<none>"),
        or(text(pod, "status.nominatedNodeName"), "<none>"),
        gates(pod),
    ]
}

struct Summary<'a> {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    last_restart: &'a str,
}

fn true_condition(pod: &Value, kind: &str) -> bool {
    condition(pod, kind).is_some_and(|c| text(c, "status") == "True")
}

fn gates(pod: &Value) -> Value {
    let gates = items(pod, "spec.readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates.iter().filter(|g| true_condition(pod, text(g, "conditionType"))).count();
    format!("{open}/{}", gates.len()).into()
}

/// Why a container ended, in a word.
fn ending(state: &Value) -> String {
    let reason = text(state, "terminated.reason");
    let signal = int(state, "terminated.signal").unwrap_or_default();
    match (reason, signal) {
        ("", 0) => format!("ExitCode:{}", int(state, "terminated.exitCode").unwrap_or_default()),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn summarize(pod: &Value) -> Summary<'_> {
    let inits = items(pod, "spec.initContainers");
    let sidecar =
        |name: &str| inits.iter().any(|c| text(c, "name") == name && text(c, "restartPolicy") == "Always");
    let total = items(pod, "spec.containers").len()
        + inits.iter().filter(|c| text(c, "restartPolicy") == "Always").count();
    let mut s = Summary {
        ready: 0,
        total,
        reason: text(pod, "status.phase").to_owned(),
        restarts: 0,
        last_restart: "",
    };
    if !text(pod, "status.reason").is_empty() {
        s.reason = text(pod, "status.reason").to_owned();
    }
    if condition(pod, "PodScheduled").is_some_and(|c| text(c, "reason") == "SchedulingGated") {
        s.reason = "SchedulingGated".to_owned();
    }
    let (mut sidecar_restarts, mut last_sidecar_restart) = (0, "");
    let mut initializing = false;
    for (i, container) in items(pod, "status.initContainerStatuses").iter().enumerate() {
        let count = int(container, "restartCount").unwrap_or_default();
        let last = text(container, "lastState.terminated.finishedAt");
        s.restarts += count;
        s.last_restart = s.last_restart.max(last);
        let is_sidecar = sidecar(text(container, "name"));
        if is_sidecar {
            sidecar_restarts += count;
            last_sidecar_restart = last_sidecar_restart.max(last);
        }
        let state = &container["state"];
        let waiting = text(state, "waiting.reason");
        if has(state, "terminated") && int(state, "terminated.exitCode").unwrap_or_default() == 0 {
            continue;
        }
        if is_sidecar && flag(container, "started") {
            s.ready += usize::from(flag(container, "ready"));
            continue;
        }
        s.reason = if has(state, "terminated") {
            format!("Init:{}", ending(state))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{i}/{}", inits.len())
        };
        initializing = true;
        break;
    }
    if !initializing || true_condition(pod, "Initialized") {
        s.restarts = sidecar_restarts;
        s.last_restart = last_sidecar_restart;
        let mut running = false;
        for container in items(pod, "status.containerStatuses").iter().rev() {
            s.restarts += int(container, "restartCount").unwrap_or_default();
            s.last_restart = s.last_restart.max(text(container, "lastState.terminated.finishedAt"));
            let state = &container["state"];
            if !text(state, "waiting.reason").is_empty() {
                s.reason = text(state, "waiting.reason").to_owned();
            } else if has(state, "terminated") {
                s.reason = ending(state);
            } else if flag(container, "ready") && has(state, "running") {
                running = true;
                s.ready += 1;
            }
        }
        if s.reason == "Completed" && running {
            s.reason = if true_condition(pod, "Ready") { "Running" } else { "NotReady" }.to_owned();
        }
    }
    if has(pod, "metadata.deletionTimestamp") {
        let ended = matches!(text(pod, "status.phase"), "Failed" | "Succeeded");
        if text(pod, "status.reason") == "NodeLost" {
            s.reason = "Unknown".to_owned();
        } else if !ended {
            s.reason = "Terminating".to_owned();
        }
    }
    s
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(pod: Value, want: [&str; 3]) {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let row = self::pod(&pod, now);
        assert_eq!([&row[1], &row[2], &row[3]].map(|c| c.as_str().unwrap()), want, "{pod}");
    }

    #[test]
    fn rows_say_what_the_containers_add_up_to() {
        let spec = json!({"containers": [{"name": "a"}]});
        check(json!({"spec": spec, "status": {"phase": "Pending"}}), ["0/1", "Pending", "0"]);
        let waiting = json!({"state": {"waiting": {"reason": "ContainerCreating"}}, "restartCount": 0});
        check(
            json!({"spec": spec, "status": {"phase": "Pending", "containerStatuses": [waiting]}}),
            ["0/1", "ContainerCreating", "0"],
        );
        let running = json!({
            "state": {"running": {}}, "ready": true, "restartCount": 2,
            "lastState": {"terminated": {"finishedAt": "2026-01-02T03:00:05Z"}},
        });
        check(
            json!({"spec": spec, "status": {"phase": "Running", "containerStatuses": [running]}}),
            ["1/1", "Running", "2 (4m ago)"],
        );
        check(
            json!({
                "metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}, "spec": spec,
                "status": {"phase": "Running", "containerStatuses": [running]},
            }),
            ["1/1", "Terminating", "2 (4m ago)"],
        );
        let done =
            json!({"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}, "restartCount": 0});
        check(
            json!({"spec": spec, "status": {"phase": "Succeeded", "containerStatuses": [done]}}),
            ["0/1", "Completed", "0"],
        );
        let two = json!({"initContainers": [{"name": "i"}, {"name": "j"}], "containers": [{"name": "a"}]});
        let status = json!([
            {"name": "i", "state": {"terminated": {"exitCode": 0}}, "restartCount": 0},
            {"name": "j", "state": {"running": {}}, "restartCount": 0},
        ]);
        check(
            json!({"spec": two, "status": {"phase": "Pending", "initContainerStatuses": status}}),
            ["0/1", "Init:1/2", "0"],
        );
    }
}
