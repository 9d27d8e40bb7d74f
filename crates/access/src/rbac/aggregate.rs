//! Cluster roles whose rules are the sum of others'.

use homeostat_model::selector::Labels;
use serde_json::Value;

/// The rules that a cluster role with an `aggregationRule` should have: those of all roles that its selectors
/// match, in the order of the roles' names, each rule once. `None` where the role aggregates nothing.
pub fn aggregated_rules<'a>(role: &Value, all: impl IntoIterator<Item = &'a Value>) -> Option<Vec<Value>> {
    let selectors =
        role.get("aggregationRule").filter(|a| !a.is_null())?["clusterRoleSelectors"].as_array()?;
    // A selector that cannot be read selects nothing.
    let selectors: Vec<Labels> = selectors.iter().filter_map(|s| Labels::from_value(s).ok()).collect();
    let name = |r: &Value| r["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let this = name(role);
    let mut parts: Vec<(String, &Value)> = all.into_iter().map(|r| (name(r), r)).collect();
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let mut rules: Vec<Value> = Vec::new();
    for selector in &selectors {
        for (_, part) in
            parts.iter().filter(|(n, r)| *n != this && selector.matches_value(&r["metadata"]["labels"]))
        {
            for rule in part["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_come_in_the_order_of_names_and_once() {
        let rule = |verb: &str| json!({"verbs": [verb], "apiGroups": [""], "resources": ["pods"]});
        let role = |name: &str, label: &str, rules: Value| json!({"metadata": {"name": name, "labels": {label: "true"}}, "rules": rules});
        let sum = json!({"metadata": {"name": "sum", "labels": {"x": "true"}}, "rules": [rule("own")],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "true"}}, {"matchLabels": {"y": "true"}}]}});
        let all = [
            role("c", "y", json!([rule("get")])),
            role("b", "x", json!([rule("list"), rule("get")])),
            role("a", "x", json!([rule("get")])),
            role("d", "z", json!([rule("no")])),
            role("e", "x", Value::Null),
            sum.clone(),
        ];
        assert_eq!(aggregated_rules(&sum, &all), Some(vec![rule("get"), rule("list")]));
        assert_eq!(aggregated_rules(&all[0], &all), None);
    }
}
