//! RBAC rules, put together: the fewest rules that give exactly the rights that were asked for.
//!
//! Pure. Invariant: the rights before and after are the same set of (group, resource, name, verb); only their grouping
//! and order change, and the order depends on nothing but the rights.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

/// The order in which people write verbs.
const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/// `rules` with what belongs together in one rule: the same verbs on resources of one group, and nothing twice.
pub fn compact(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    // (group, names) -> resource -> verbs
    let mut by_resource: BTreeMap<(String, Vec<String>), BTreeMap<String, BTreeSet<String>>> =
        BTreeMap::new();
    let mut others: Vec<PolicyRule> = Vec::new();
    for rule in rules {
        if rule.non_resource_urls.as_ref().is_some_and(|urls| !urls.is_empty()) {
            if !others.contains(rule) {
                others.push(rule.clone());
            }
            continue;
        }
        let mut names = rule.resource_names.clone().unwrap_or_default();
        names.sort();
        for group in rule.api_groups.iter().flatten() {
            let resources = by_resource.entry((group.clone(), names.clone())).or_default();
            for resource in rule.resources.iter().flatten() {
                resources.entry(resource.clone()).or_default().extend(rule.verbs.iter().cloned());
            }
        }
    }
    let mut out = Vec::new();
    for ((group, names), resources) in by_resource {
        let mut by_verbs: BTreeMap<BTreeSet<String>, Vec<String>> = BTreeMap::new();
        for (resource, verbs) in resources {
            by_verbs.entry(verbs).or_default().push(resource);
        }
        let mut same: Vec<(Vec<String>, BTreeSet<String>)> =
            by_verbs.into_iter().map(|(v, r)| (r, v)).collect();
        same.sort();
        out.extend(same.into_iter().map(|(resources, verbs)| PolicyRule {
            api_groups: Some(vec![group.clone()]),
            resources: Some(resources),
            resource_names: if names.is_empty() { None } else { Some(names.clone()) },
            verbs: in_order(verbs),
            ..PolicyRule::default()
        }));
    }
    out.extend(others);
    out
}

fn in_order(verbs: BTreeSet<String>) -> Vec<String> {
    let place = |verb: &String| VERBS.iter().position(|v| v == verb).unwrap_or(VERBS.len());
    let mut verbs: Vec<String> = verbs.into_iter().collect();
    verbs.sort_by_key(place);
    verbs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> PolicyRule {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        PolicyRule {
            api_groups: Some(vec![group.into()]),
            resources: Some(own(resources)),
            resource_names: if names.is_empty() { None } else { Some(own(names)) },
            verbs: own(verbs),
            ..PolicyRule::default()
        }
    }

    #[track_caller]
    fn check(rules: &[PolicyRule], want: &[PolicyRule]) {
        assert_eq!(compact(rules), want);
        assert_eq!(compact(want), want, "a second time changes nothing");
    }

    #[test]
    fn rules_for_the_same_verbs_are_one() {
        check(
            &[rule("apps", &["statefulsets"], &[], &["get"]), rule("apps", &["deployments"], &[], &["get"])],
            &[rule("apps", &["deployments", "statefulsets"], &[], &["get"])],
        );
    }

    #[test]
    fn rights_on_one_resource_add_up() {
        check(
            &[
                rule("", &["secrets"], &[], &["watch", "get", "list"]),
                rule("", &["secrets"], &[], &["create", "get"]),
            ],
            &[rule("", &["secrets"], &[], &["get", "list", "watch", "create"])],
        );
    }

    #[test]
    fn a_right_on_a_name_stays_one_on_a_name() {
        check(
            &[rule("", &["secrets"], &["tls"], &["update"]), rule("", &["secrets"], &[], &["get"])],
            &[rule("", &["secrets"], &[], &["get"]), rule("", &["secrets"], &["tls"], &["update"])],
        );
    }
}
