//! Evictions against disruption budgets: whether a pod may go, and what its budget says afterwards.

use homeostat_model::{Timestamp, clock};
use serde_json::Value;

use crate::builtin::rules::selects;
use crate::builtin::value::{at, has, int, items, object, set, text};

/// What becomes of an eviction.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// No budget is spent.
    Free,
    /// The budget, its status changed: one disruption fewer, and the pod noted. Store it, then delete the pod.
    Spend(Value),
    /// 429 with [`REFUSAL`] and a cause `DisruptionBudget` of this text; seconds to wait, where they are known.
    Refused(String, Option<u32>),
    /// 403 with this text.
    Forbidden(String),
    /// 500 with this text.
    Confused(String),
}

/// The message of a refused eviction.
pub const REFUSAL: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Pods that a budget may have lost without its controller having noticed.
const MOST_DISRUPTED: usize = 2000;

/// Judges the eviction of a pod by the budgets of its namespace.
pub fn judge<'a>(pod: &Value, budgets: impl IntoIterator<Item = &'a Value>, now: Timestamp) -> Verdict {
    // A pod that has ended, hasn't begun, or is on its way out disrupts nothing.
    let phase = text(pod, "status.phase");
    if matches!(phase, "Succeeded" | "Failed" | "Pending") || has(pod, "metadata.deletionTimestamp") {
        return Verdict::Free;
    }
    let labels = at(pod, "metadata.labels");
    let mut matching = budgets.into_iter().filter(|b| selects(at(b, "spec.selector"), labels));
    let Some(budget) = matching.next() else { return Verdict::Free };
    if matching.next().is_some() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Verdict::Confused(why.to_owned());
    }
    let number = |field: &str| int(budget, &format!("status.{field}")).unwrap_or_default();
    let ready = items(pod, "status.conditions")
        .iter()
        .any(|c| text(c, "type") == "Ready" && text(c, "status") == "True");
    let (healthy, wanted) = (number("currentHealthy"), number("desiredHealthy"));
    if !ready {
        let always = text(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow";
        if always || (healthy >= wanted && wanted > 0) {
            return Verdict::Free;
        }
    }
    spend(pod, budget, healthy, wanted, now)
}

fn spend(pod: &Value, budget: &Value, healthy: i64, wanted: i64, now: Timestamp) -> Verdict {
    let name = text(budget, "metadata.name");
    let seen = int(budget, "status.observedGeneration").unwrap_or_default();
    if seen < int(budget, "metadata.generation").unwrap_or_default() {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Verdict::Refused(why, Some(10));
    }
    let allowed = int(budget, "status.disruptionsAllowed").unwrap_or_default();
    if allowed < 0 {
        return Verdict::Forbidden("pdb disruptions allowed is negative".to_owned());
    }
    if at(budget, "status.disruptedPods").as_object().is_some_and(|m| m.len() > MOST_DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Verdict::Forbidden(why.to_owned());
    }
    if allowed == 0 {
        let why =
            format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently");
        return Verdict::Refused(why, None);
    }
    let mut budget = budget.clone();
    set(&mut budget, "status.disruptionsAllowed", allowed - 1);
    let pods = object(&mut budget, "status.disruptedPods");
    pods.insert(text(pod, "metadata.name").to_owned(), clock::seconds(now).into());
    Verdict::Spend(budget)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_budget_is_spent_until_it_is_used_up() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let pod = |phase: &str| {
            json!({
                "metadata": {"name": "web", "labels": {"app": "web"}},
                "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
            })
        };
        let budget = |allowed: i64| {
            json!({
                "metadata": {"name": "web", "generation": 1},
                "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
                "status": {
                    "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": allowed,
                },
            })
        };
        assert_eq!(judge(&pod("Pending"), [&budget(0)], now), Verdict::Free);
        assert_eq!(judge(&pod("Running"), [], now), Verdict::Free);
        let why = "The disruption budget web needs 1 healthy pods and has 1 currently";
        assert_eq!(judge(&pod("Running"), [&budget(0)], now), Verdict::Refused(why.to_owned(), None));
        let Verdict::Spend(after) = judge(&pod("Running"), [&budget(1)], now) else { panic!("not spent") };
        assert_eq!(after["status"]["disruptionsAllowed"], 0);
        assert_eq!(after["status"]["disruptedPods"], json!({"web": "2026-01-02T03:04:05Z"}));
        let two = [&budget(1), &budget(1)];
        assert!(matches!(judge(&pod("Running"), two, now), Verdict::Confused(_)));
    }
}
