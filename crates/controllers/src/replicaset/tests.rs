//! The planner in tables.

use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use serde_json::{Value, json};

use super::Replicated;
use super::plan::{Failure, State};

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

/// `name@node`, with `+` for a ready pod.
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let one = |word: &str| {
        let (name, node) = word.split_once('@').unwrap();
        let (node, ready) = node.strip_suffix('+').map_or((node, "False"), |n| (n, "True"));
        let since = (now() - std::time::Duration::from_secs(60)).to_string();
        let pod = json!({
            "metadata": {"name": name, "uid": name, "labels": {"app": "web"}},
            "spec": {"nodeName": node, "containers": []},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": since}]}});
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    text.split_whitespace().map(one).collect()
}

fn state(replicas: i32, active: &[Arc<Pod>]) -> State<'_> {
    State {
        replicas,
        min_ready: 0,
        generation: Some(3),
        template_labels: None,
        active,
        terminating: 1,
        conditions: Vec::new(),
        now: now(),
    }
}

#[track_caller]
fn check(replicas: i32, active: &str, siblings: &str, change: i64, victims: &[&str]) {
    let (active, siblings) = (pods(active), pods(siblings));
    let state = state(replicas, &active);
    assert_eq!(state.change(), change);
    let got = state.victims(&siblings);
    assert_eq!(got.iter().map(|p| p.metadata.name.as_deref().unwrap()).collect::<Vec<_>>(), victims);
}

#[test]
fn counts_and_chooses() {
    check(3, "a@1+", "", 2, &[]);
    check(1, "a@1+", "", 0, &[]);
    check(1, "a@1+ b@1", "", -1, &["b"]);
    check(2, "a@1+ b@2+ c@2+", "a@1+ b@2+ c@2+", -1, &["b"]);
    // Pods of related sets crowd a node too.
    check(1, "a@1+ b@2+", "a@1+ b@2+ x@1+", -1, &["a"]);
    check(0, "a@1+ b@2+", "", -2, &["a", "b"]);
}

fn status<K: Replicated>(state: &State<'_>, failure: Option<&Failure>) -> Value {
    state.status::<K>(failure)
}

#[test]
fn the_status_counts() {
    let active = pods("a@1+ b@2");
    let labels = [("app".to_owned(), "web".to_owned())].into();
    let state = State { template_labels: Some(&labels), ..state(2, &active) };
    assert_eq!(
        status::<ReplicaSet>(&state, None),
        json!({"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 1, "availableReplicas": 1,
            "terminatingReplicas": 1, "observedGeneration": 3})
    );
    let other = [("app".to_owned(), "db".to_owned())].into();
    let state = State { template_labels: Some(&other), min_ready: 61, ..state };
    assert_eq!(
        status::<ReplicationController>(&state, None),
        json!({"replicas": 2, "readyReplicas": 1, "observedGeneration": 3})
    );
}

#[test]
fn a_failure_is_told_and_taken_back() {
    let mut state = state(1, &[]);
    let failure = Failure::new("FailedCreate", homeostat_sdk::Error::msg("exceeded quota"));
    let told = status::<ReplicaSet>(&state, Some(&failure));
    assert_eq!(
        told["conditions"],
        json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota",
            "lastTransitionTime": "1970-01-12T13:46:40Z"}])
    );
    state.conditions = told["conditions"].as_array().cloned().unwrap();
    // Another text for the same reason is no news.
    let again = Failure::new("FailedCreate", homeostat_sdk::Error::msg("still"));
    assert_eq!(status::<ReplicaSet>(&state, Some(&again))["conditions"], told["conditions"]);
    assert_eq!(status::<ReplicaSet>(&state, None).get("conditions"), None);
}
