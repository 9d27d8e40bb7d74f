//! The planner in tables.

use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::plan::{Plan, State, plan, target};
use super::template;

fn set(extra: Value) -> DaemonSet {
    let mut spec = json!({"selector": {}, "template": {"spec": {"containers": []}}});
    for (k, v) in extra.as_object().unwrap() {
        spec[k] = v.clone();
    }
    serde_json::from_value(json!({"metadata": {"name": "ds", "generation": 1}, "spec": spec})).unwrap()
}

/// `n1`, with `!Effect` for a taint.
fn nodes(text: &str) -> Vec<Arc<Node>> {
    let one = |word: &str| {
        let (name, effect) = word.split_once('!').unwrap_or((word, ""));
        let taints = if effect.is_empty() { json!([]) } else { json!([{"key": "k", "effect": effect}]) };
        let labels = json!({"name": name});
        Arc::new(
            serde_json::from_value(
                json!({"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}}),
            )
            .unwrap(),
        )
    };
    text.split_whitespace().map(one).collect()
}

/// `node:hash` and a state: `+` available, `.` not, `x` failed, then `-` for one on its way out. Older ones first.
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let one = |(i, word): (usize, &str)| {
        let (node, rest) = word.split_once(':').unwrap();
        let (hash, state) = rest.split_at(1);
        let ready = if state.starts_with('+') { "True" } else { "False" };
        let phase = if state.starts_with('x') { "Failed" } else { "Running" };
        let created = Timestamp::from_second(i64::try_from(i).unwrap()).unwrap().to_string();
        let mut pod = json!({"metadata": {"name": format!("p{i}"), "creationTimestamp": created,
                "labels": {"controller-revision-hash": hash}},
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
        if state.ends_with('-') {
            pod["metadata"]["deletionTimestamp"] = created.into();
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    text.split_whitespace().enumerate().map(one).collect()
}

fn planned(set: &DaemonSet, nodes: &[Arc<Node>], pods: &[Arc<Pod>]) -> Plan {
    let spec = set.spec.as_ref().unwrap();
    let now = Timestamp::from_second(1000).unwrap();
    plan(&State { set, spec, nodes, pods, hash: "b", collisions: 0, now })
}

#[track_caller]
fn check(extra: Value, on: &str, has: &str, want: &str) {
    let plan = planned(&set(extra), &nodes(on), &pods(has));
    let create = plan.create.iter().map(|n| format!("+{n}"));
    let delete =
        plan.ended.iter().chain(&plan.delete).map(|p| format!("-{}", p.metadata.name.as_deref().unwrap()));
    assert_eq!(create.chain(delete).collect::<Vec<_>>().join(" "), want, "{on} / {has}");
}

#[test]
fn every_node_gets_one() {
    check(json!({}), "n1 n2", "", "+n1 +n2");
    check(json!({}), "n1 n2", "n1:b+", "+n2");
    check(json!({}), "n1", "n1:b+ n1:b+", "-p1");
    check(json!({}), "n1", "n1:bx", "-p0");
    check(json!({}), "n1", "n1:b+ n2:b+", "-p1");
    check(json!({}), "n1", "n1:b+-", "");
}

#[test]
fn taints_and_selectors_keep_pods_away() {
    check(json!({}), "n1!NoSchedule n2!NoExecute n3!PreferNoSchedule", "", "+n3");
    // One that is there may stay, unless the taint drives it away.
    check(json!({}), "n1!NoSchedule n2!NoExecute", "n1:b+ n2:b+", "-p1");
    let selected = json!({"template": {"spec": {"containers": [], "nodeSelector": {"name": "n2"}}}});
    check(selected, "n1 n2", "n1:b+", "+n2 -p0");
}

#[test]
fn updates_keep_most_available() {
    check(json!({}), "n1 n2 n3", "n1:a+ n2:a+ n3:a+", "-p0");
    check(json!({}), "n1 n2 n3", "n1:b. n2:a+ n3:a+", "");
    check(json!({}), "n1 n2 n3", "n1:a+- n2:a+ n3:a+", "");
    check(json!({}), "n1 n2 n3", "n1:b+ n2:a. n3:a+", "-p1");
    let two =
        json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}});
    check(two, "n1 n2 n3", "n1:a+ n2:a+ n3:a+", "-p0 -p1");
    check(json!({"updateStrategy": {"type": "OnDelete"}}), "n1 n2", "n1:a+ n2:a+", "");
}

#[test]
fn surge_makes_the_new_one_first() {
    let surge = || json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}});
    check(surge(), "n1 n2", "n1:a+ n2:a+", "+n1");
    check(surge(), "n1 n2", "n1:a+ n1:b. n2:a+", "");
    check(surge(), "n1 n2", "n1:a+ n1:b+ n2:a+", "+n2 -p0");
    // An old one that isn't ready goes at once, and its successor is made beside it.
    check(surge(), "n1 n2", "n1:a. n1:b. n2:a+", "-p0");
    check(surge(), "n1 n2", "n1:a. n1:b+ n2:a+", "+n2 -p0");
    check(surge(), "n1 n2", "n1:a. n2:a+", "+n1");
    check(surge(), "n1", "n1:b+", "");
    check(surge(), "n1 n2", "", "+n1 +n2");
}

#[test]
fn the_status_counts() {
    let status = |on: &str, has: &str| json!(planned(&set(json!({})), &nodes(on), &pods(has)).status);
    assert_eq!(
        status("n1 n2 n3!NoSchedule", "n1:b+ n3:a+"),
        json!({"currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberAvailable": 1, "numberMisscheduled": 1,
            "numberReady": 1, "numberUnavailable": 1, "observedGeneration": 1, "updatedNumberScheduled": 1})
    );
}

#[test]
fn the_oldest_pod_speaks_for_its_node() {
    let updated = |has: &str| {
        let status = planned(&set(json!({})), &nodes("n1"), &pods(has)).status;
        (status.updated_number_scheduled.unwrap_or(0), status.number_available.unwrap_or(0))
    };
    assert_eq!(updated("n1:a+ n1:b."), (0, 1));
    assert_eq!(updated("n1:a+- n1:b."), (0, 1));
    assert_eq!(updated("n1:ax- n1:b+"), (1, 1));
    assert_eq!(updated("n1:b."), (1, 0));
}

#[test]
fn a_pod_is_for_its_node() {
    let mut set = set(json!({}));
    set.metadata.annotations =
        Some([("deprecated.daemonset.template.generation".to_owned(), "3".to_owned())].into());
    let pod = template::pod(&set, &set.spec.as_ref().unwrap().template, "n1", "hash");
    assert_eq!(target(&pod), Some("n1"));
    let labels = json!({"controller-revision-hash": "hash", "pod-template-generation": "3"});
    assert_eq!(json!(pod.metadata.labels), labels);
    assert_eq!(pod.spec.unwrap().tolerations.unwrap().len(), 6);
}
