//! ClusterRoles that are made of others: the rules of all roles that a role's aggregation rule selects become its own.
//!
//! The result depends on the roles' names and rules only, in the order of names, each rule once.

use homeostat_sdk::selector::Labels;
use homeostat_sdk::{Context, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use serde_json::json;

use crate::common::claim;

/// The controller.
pub(crate) struct Aggregation;

fn is_aggregated(role: &ClusterRole) -> bool {
    role.aggregation_rule.is_some()
}

/// The rules of those roles that any of the selectors matches, except `name` itself. `roles` in the order of names.
fn gather<'a>(
    name: &str,
    selectors: &[Labels],
    roles: impl Iterator<Item = &'a ClusterRole>,
) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let selected = roles.filter(|r| {
        // An empty selector selects everything here, unlike a workload's.
        let labels = r.metadata.labels.as_ref();
        let matches = |s: &Labels| s.matches(|k| labels.and_then(|l| l.get(k)).map(String::as_str));
        r.metadata.name.as_deref() != Some(name) && selectors.iter().any(matches)
    });
    for rule in selected.flat_map(|r| r.rules.iter().flatten()) {
        if !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    rules
}

impl Operator for Aggregation {
    type Resource = ClusterRole;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "clusterrole-aggregation-controller"
    }

    async fn reconcile(&self, role: &ClusterRole, cx: &Context<Self>) -> Result<Next> {
        let Some(rule) = &role.aggregation_rule else { return Ok(Next::done()) };
        let selectors: Vec<Labels> = rule
            .cluster_role_selectors
            .iter()
            .flatten()
            .map(|s| claim::labels(Some(s)))
            .collect::<Result<_>>()?;
        let all = cx.resources().list();
        let rules = gather(cx.name(), &selectors, all.iter().map(|r| &**r));
        if rules == role.rules.as_deref().unwrap_or_default() {
            return Ok(Next::done());
        }
        let body = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": cx.name()}, "rules": rules});
        cx.writer().apply_value::<ClusterRole>(cx.key(), &body).await?;
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.filter(|change| change.each().any(|r| is_aggregated(r)));
        watches.changes::<ClusterRole, _>(|change, view| {
            if !change.differs(|r| (r.metadata.labels.clone(), r.rules.clone())) {
                return Vec::new();
            }
            view.resources().list().iter().filter(|r| is_aggregated(r)).map(|r| Key::of(&**r)).collect()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn role(name: &str, labels: Value, verbs: &[&str]) -> ClusterRole {
        let rules: Vec<Value> = verbs.iter().map(|v| json!({"verbs": [v]})).collect();
        serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}, "rules": rules})).unwrap()
    }

    #[test]
    fn rules_come_in_the_order_of_names_and_once() {
        let roles = [
            role("a", json!({"to": "x"}), &["get", "list"]),
            role("b", json!({"to": "y"}), &["list", "watch"]),
            role("c", json!({"to": "z"}), &["delete"]),
            role("me", json!({"to": "x"}), &["*"]),
        ];
        let selectors = ["to=y", "to=x"].map(|s| Labels::parse(s).unwrap());
        let rules = gather("me", &selectors, roles.iter());
        assert_eq!(rules.iter().map(|r| r.verbs[0].as_str()).collect::<Vec<_>>(), ["get", "list", "watch"]);
        assert!(gather("me", &[], roles.iter()).is_empty());
    }
}
