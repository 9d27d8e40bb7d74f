//! PodDisruptionBudgets.

use homeostat_model::field::{self, Error};
use homeostat_model::validation;
use serde_json::Value;

use crate::builtin::rules::{at_most_100_percent, number_or_percent};
use crate::builtin::value::{ShownAs as _, at, has, non_negative, one_of};
use crate::strategy::{Cx, Strategy};

/// PodDisruptionBudgets.
pub(super) struct DisruptionBudgets;

impl Strategy for DisruptionBudgets {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
            let shown = format!(
                "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
                at(spec, "minAvailable"),
                at(spec, "selector"),
                at(spec, "maxUnavailable"),
                at(spec, "unhealthyPodEvictionPolicy")
            );
            let why = "minAvailable and maxUnavailable cannot be both set";
            errors.push(Error::invalid("spec", spec.clone(), why).shown_as(shown));
        }
        for field in ["minAvailable", "maxUnavailable"] {
            let path = field::child("spec", field);
            number_or_percent(&mut errors, &path, at(spec, field));
            at_most_100_percent(&mut errors, &path, at(spec, field));
        }
        errors.extend(validation::label_selector(at(spec, "selector"), "spec.selector"));
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        one_of(&mut errors, spec, "spec", "unhealthyPodEvictionPolicy", &policies);
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        for field in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            non_negative(&mut errors, &new["status"], "status", field);
        }
        errors
    }
}
