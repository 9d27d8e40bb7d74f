//! Budgets in tables.

use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use super::plan::{Plan, State, plan};

fn at(offset: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + offset).unwrap()
}

fn planned(spec: Value, status: Value, ready: usize, unready: usize, expected: i32) -> Plan {
    let budget: PodDisruptionBudget = serde_json::from_value(
        json!({"metadata": {"name": "b", "generation": 1}, "spec": spec, "status": status}),
    )
    .unwrap();
    let pod = |i: usize| {
        let ready = if i < ready { "True" } else { "False" };
        Arc::new(
            serde_json::from_value::<Pod>(json!({"metadata": {"name": format!("p{i}")},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}}))
            .unwrap(),
        )
    };
    let pods: Vec<_> = (0..ready + unready).map(pod).collect();
    let spec = budget.spec.as_ref().unwrap();
    plan(&State { budget: &budget, spec, pods: &pods, expected, now: at(0) })
}

/// Healthy, desired, expected, allowed.
#[track_caller]
fn check(spec: Value, ready: usize, unready: usize, expected: i32, want: [i64; 4]) {
    let zero = json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
    let status = planned(spec, zero, ready, unready, expected).status.unwrap();
    let fields = ["currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"];
    assert_eq!(fields.map(|f| status[f].as_i64().unwrap()), want);
}

#[test]
fn budgets_are_counted() {
    check(json!({"minAvailable": 2}), 3, 0, 3, [3, 2, 3, 1]);
    check(json!({"minAvailable": 2}), 2, 1, 3, [2, 2, 3, 0]);
    check(json!({"minAvailable": "50%"}), 3, 0, 5, [3, 3, 5, 0]);
    check(json!({"maxUnavailable": 1}), 3, 0, 3, [3, 2, 3, 1]);
    check(json!({"maxUnavailable": 1}), 3, 0, 5, [3, 4, 5, 0]);
    check(json!({"maxUnavailable": "50%"}), 4, 0, 4, [4, 2, 4, 2]);
    check(json!({"minAvailable": 0}), 0, 0, 0, [0, 0, 0, 0]);
}

#[test]
fn what_is_right_is_left_alone() {
    let spec = || json!({"minAvailable": 2});
    let first = planned(spec(), json!(null), 3, 0, 3).status.unwrap();
    assert_eq!(first["conditions"][0]["reason"], "SufficientPods");
    assert!(planned(spec(), first, 3, 0, 3).status.is_none());
}

#[test]
fn granted_evictions_count_until_they_happen() {
    let spec = || json!({"minAvailable": 2});
    let status = |disrupted: Value| {
        json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0,
            "disruptedPods": disrupted})
    };
    let plan = planned(spec(), status(json!({"p0": at(-20).to_string()})), 4, 0, 4);
    assert_eq!(plan.again.unwrap().as_secs(), 100);
    assert_eq!(plan.status.unwrap()["disruptionsAllowed"], 1);
    // Gone, or not evicted after all.
    let plan =
        planned(spec(), status(json!({"gone": at(-20).to_string(), "p0": at(-120).to_string()})), 4, 0, 4);
    let status = plan.status.unwrap();
    assert_eq!(status["disruptionsAllowed"], 2);
    assert_eq!(status["disruptedPods"], json!({"gone": null, "p0": null}));
}
