//! NodeAffinity: node selectors, and required and preferred affinity to nodes.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, Pod};

use crate::framework::{Filter, Score};
use crate::snapshot::NodeInfo;

/// The plugin.
pub struct NodeAffinity;

impl Filter for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn filter(&self, pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>> {
        let Some(spec) = &pod.spec else { return Ok(()) };
        let selected = spec.node_selector.iter().flatten().all(|(k, v)| label(node, k) == Some(v));
        let required = spec
            .affinity
            .as_ref()
            .and_then(|a| a.node_affinity.as_ref())
            .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
        let wanted = required.is_none_or(|r| r.node_selector_terms.iter().any(|t| matches(t, node)));
        if selected && wanted {
            Ok(())
        } else {
            Err(vec!["node(s) didn't match Pod's node affinity/selector".to_owned()])
        }
    }
}

impl Score for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn weight(&self) -> i64 {
        2
    }

    fn score(&self, pod: &Pod, node: &NodeInfo) -> i64 {
        let preferred = pod
            .spec
            .as_ref()
            .and_then(|s| s.affinity.as_ref()?.node_affinity.as_ref())
            .and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_deref())
            .unwrap_or_default();
        let all: i64 = preferred.iter().map(|p| i64::from(p.weight)).sum();
        let met: i64 =
            preferred.iter().filter(|p| matches(&p.preference, node)).map(|p| i64::from(p.weight)).sum();
        if all == 0 { 0 } else { met * 100 / all }
    }
}

fn label<'a>(node: &'a NodeInfo, key: &str) -> Option<&'a String> {
    node.node.metadata.labels.as_ref()?.get(key)
}

/// A term without any requirement matches nothing.
fn matches(term: &NodeSelectorTerm, node: &NodeInfo) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|r| holds(r, label(node, &r.key).map(String::as_str)))
        && fields.iter().all(|r| r.key == "metadata.name" && holds(r, Some(node.name())))
}

fn holds(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let listed = || value.is_some_and(|v| values.iter().any(|x| x == v));
    let compare = |less: bool| {
        let (Some(Ok(have)), Some(Ok(bound))) =
            (value.map(str::parse::<i64>), values.first().map(|v| v.parse::<i64>()))
        else {
            return false;
        };
        if less { have < bound } else { have > bound }
    };
    match requirement.operator.as_str() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compare(false),
        "Lt" => compare(true),
        _ => false,
    }
}
