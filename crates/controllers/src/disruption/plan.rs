//! What a budget allows: a pure function of the budget, its pods and how many are expected.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::Event;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use serde_json::{Value, json};

use crate::common::{pods, scaled};

/// A pod whose eviction was granted and that is still there after this long was not evicted after all.
const GRANTED: Duration = Duration::from_secs(120);

/// What a plan is made from.
pub(super) struct State<'a> {
    pub(super) budget: &'a PodDisruptionBudget,
    pub(super) spec: &'a PodDisruptionBudgetSpec,
    /// The pods that the budget is for.
    pub(super) pods: &'a [Arc<Pod>],
    /// How many there should be, by the size of their controllers.
    pub(super) expected: i32,
    pub(super) now: Timestamp,
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// A merge patch of the status; `None` where it is right.
    pub(super) status: Option<Value>,
    pub(super) events: Vec<Event>,
    pub(super) again: Option<Duration>,
}

pub(super) fn plan(state: &State<'_>) -> Plan {
    let old = state.budget.status.clone().unwrap_or_default();
    let mut plan = Plan::default();
    let mut forget = serde_json::Map::new();
    let mut granted = Vec::new();
    for (name, since) in old.disrupted_pods.iter().flatten() {
        let pod = state.pods.iter().find(|p| p.metadata.name.as_deref() == Some(name));
        let left =
            GRANTED.saturating_sub(Duration::try_from(state.now.duration_since(since.0)).unwrap_or_default());
        let leaves = pod.is_none_or(|p| pods::is_terminating(p));
        if leaves || left.is_zero() {
            if let Some(pod) = pod.filter(|_| !leaves) {
                let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
                let budget = state.budget.metadata.name.as_deref().unwrap_or_default();
                let text = format!(
                    "Pod {namespace}/{name} was expected by PDB {namespace}/{budget} to be deleted but it wasn't"
                );
                plan.events.push(Event::warning("NotDeleted", text));
            }
            forget.insert(name.clone(), Value::Null);
        } else {
            granted.push(name.as_str());
            plan.again = Some(plan.again.map_or(left, |a| a.min(left)));
        }
    }
    if state.pods.is_empty() {
        plan.events.push(Event::normal("NoPods", "No matching pods found"));
    }
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let is_healthy = |p: &&Arc<Pod>| {
        let name = p.metadata.name.as_deref().unwrap_or_default();
        !pods::is_terminating(p) && pods::is_ready(p) && !granted.contains(&name)
    };
    let healthy = count(state.pods.iter().filter(is_healthy).count());
    let (expected, desired) = match (&state.spec.max_unavailable, &state.spec.min_available) {
        (Some(max), _) => {
            (state.expected, (state.expected - scaled::of(max, state.expected, true).unwrap_or(0)).max(0))
        }
        (None, Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(n))) => {
            (count(state.pods.len()), *n)
        }
        (None, Some(min)) => (state.expected, scaled::of(min, state.expected, true).unwrap_or(0)),
        (None, None) => (state.expected, state.expected),
    };
    let allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let generation = state.budget.metadata.generation;
    let (status, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let mut conditions = json!(old.conditions).as_array().cloned().unwrap_or_default();
    let told = conditions.iter().find(|c| c["type"] == "DisruptionAllowed");
    let said = |c: &&Value| {
        c["status"] == status && c["reason"] == reason && c["observedGeneration"] == json!(generation)
    };
    let same_condition = told.as_ref().is_some_and(said);
    if !same_condition {
        let since = told.filter(|c| c["status"] == status).map(|c| c["lastTransitionTime"].clone());
        let since = since.unwrap_or_else(|| homeostat_model::clock::seconds(state.now).into());
        let new = json!({"type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": since, "observedGeneration": generation});
        crate::common::condition::set(&mut conditions, new);
    }
    let same = same_condition
        && forget.is_empty()
        && old.current_healthy == Some(healthy)
        && old.desired_healthy == Some(desired)
        && old.expected_pods == Some(expected)
        && old.disruptions_allowed == Some(allowed)
        && old.observed_generation == generation;
    if !same {
        let mut status = json!({"currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
            "disruptionsAllowed": allowed, "observedGeneration": generation, "conditions": conditions});
        if !forget.is_empty() {
            status["disruptedPods"] = forget.into();
        }
        plan.status = Some(status);
    }
    plan
}

/// The status of a budget whose pods can't be counted; `None` where it says so already.
pub(super) fn unknown(budget: &PodDisruptionBudget, why: &str, now: Timestamp) -> Option<Value> {
    let old = budget.status.clone().unwrap_or_default();
    let mut conditions = json!(old.conditions).as_array().cloned().unwrap_or_default();
    let told = conditions.iter().find(|c| c["type"] == "DisruptionAllowed");
    let same = told.is_some_and(|c| c["reason"] == "SyncFailed" && c["message"] == why);
    if same && old.disruptions_allowed == Some(0) {
        return None;
    }
    let since = told.filter(|c| c["status"] == "False").map(|c| c["lastTransitionTime"].clone());
    let since = since.unwrap_or_else(|| homeostat_model::clock::seconds(now).into());
    let new = json!({"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": why,
        "lastTransitionTime": since, "observedGeneration": budget.status.as_ref().and_then(|s| s.observed_generation)});
    crate::common::condition::set(&mut conditions, new);
    Some(json!({"disruptionsAllowed": 0, "conditions": conditions}))
}
