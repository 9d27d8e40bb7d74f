//! Which pods a ResourceQuota counts by its scopes, and what an object uses ([`usage`]).
//!
//! Two ask: admission, before it charges a quota, and the controller that counts anew. Invariant: they get one answer,
//! or a quota would drift with every recount.

pub mod usage;

use serde_json::Value;

/// Whether the scopes of a quota's `spec` take in a pod, both as JSON. Without scopes all pods count. Whether the pod
/// asks for nothing (its quality of service) is the caller's to know.
pub fn selects_pod(spec: &Value, pod: &Value, best_effort: bool) -> bool {
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or_default();
    let terminating = pod["spec"]["activeDeadlineSeconds"].as_i64().is_some_and(|s| s >= 0);
    let holds = |scope: &str| match scope {
        "Terminating" => terminating,
        "NotTerminating" => !terminating,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => !class.is_empty(),
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    };
    let selects = |requirement: &Value| {
        let scope = requirement["scopeName"].as_str().unwrap_or_default();
        let listed = || items(&requirement["values"]).iter().any(|v| *v == class);
        match (scope, requirement["operator"].as_str().unwrap_or_default()) {
            ("PriorityClass", "In") => !class.is_empty() && listed(),
            ("PriorityClass", "NotIn") => class.is_empty() || !listed(),
            (_, "DoesNotExist") => !holds(scope),
            _ => holds(scope),
        }
    };
    items(&spec["scopes"]).iter().filter_map(Value::as_str).all(holds)
        && items(&spec["scopeSelector"]["matchExpressions"]).iter().all(selects)
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Whether an affinity term of the pod looks at pods of other namespaces.
fn crosses_namespaces(pod: &Value) -> bool {
    let affinity = &pod["spec"]["affinity"];
    let crosses =
        |term: &Value| !items(&term["namespaces"]).is_empty() || !term["namespaceSelector"].is_null();
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let required = items(&affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = items(&affinity[kind]["preferredDuringSchedulingIgnoredDuringExecution"]);
        required.iter().any(crosses) || preferred.iter().any(|t| crosses(&t["podAffinityTerm"]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_choose_pods() {
        let check = |scope: &str, pod: Value, want: bool| {
            let got = selects_pod(&json!({"scopes": [scope]}), &json!({"spec": pod}), false);
            assert_eq!(got, want, "{scope} {pod}");
        };
        check("Terminating", json!({"activeDeadlineSeconds": 1}), true);
        check("NotTerminating", json!({"activeDeadlineSeconds": 1}), false);
        check("NotTerminating", json!({}), true);
        check("BestEffort", json!({}), false);
        check("NotBestEffort", json!({}), true);
        check("PriorityClass", json!({"priorityClassName": "high"}), true);
        check("PriorityClass", json!({}), false);
        let term = |extra: Value| {
            json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": extra}]}}})
        };
        check("CrossNamespacePodAffinity", term(json!({"topologyKey": "z"})), false);
        check("CrossNamespacePodAffinity", term(json!({"namespaces": ["b"]})), true);
        check("CrossNamespacePodAffinity", term(json!({"namespaceSelector": {}})), true);
        let required = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"namespaces": ["b"]}]}}});
        check("CrossNamespacePodAffinity", required, true);
    }

    #[test]
    fn selectors_choose_by_class() {
        let check = |operator: &str, class: Value, want: bool| {
            let values = if operator.ends_with("In") { json!(["high", "low"]) } else { json!(null) };
            let spec = json!({"scopeSelector": {"matchExpressions": [
                {"scopeName": "PriorityClass", "operator": operator, "values": values}]}});
            let got = selects_pod(&spec, &json!({"spec": {"priorityClassName": class}}), false);
            assert_eq!(got, want, "{operator} {class}");
        };
        for (class, [is_in, not_in, exists, absent]) in [
            (json!("high"), [true, false, true, false]),
            (json!("other"), [false, true, true, false]),
            (json!(null), [false, true, false, true]),
        ] {
            check("In", class.clone(), is_in);
            check("NotIn", class.clone(), not_in);
            check("Exists", class.clone(), exists);
            check("DoesNotExist", class, absent);
        }
    }
}
