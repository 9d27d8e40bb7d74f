//! NodeAffinity: node selectors, and required and preferred affinity to nodes.
//!
//! A configuration can add an affinity that all pods of the profile get.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    NodeAffinity as Rules, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm,
};

use crate::framework::{
    Cycle, CycleState, Event, Filter, Opinion, Plugin, PreFilter, PreFiltered, PreScore, Score, Status,
    normalize,
};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug, Default)]
pub struct NodeAffinity {
    /// What every pod of the profile gets too.
    pub added: Option<Rules>,
}

/// What of a node its affinity looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    labels: Option<&'a std::collections::BTreeMap<String, String>>,
    name: &'a str,
}

impl<'a> Place<'a> {
    /// Of a node.
    pub(super) fn of(node: &'a k8s_openapi::api::core::v1::Node) -> Self {
        let meta = &node.metadata;
        Self { labels: meta.labels.as_ref(), name: meta.name.as_deref().unwrap_or_default() }
    }

    fn label(&self, key: &str) -> Option<&'a str> {
        self.labels?.get(key).map(String::as_str)
    }
}

fn rules(pod: &PodInfo) -> Option<&Rules> {
    pod.spec()?.affinity.as_ref()?.node_affinity.as_ref()
}

fn required(rules: &Rules) -> Option<&NodeSelector> {
    rules.required_during_scheduling_ignored_during_execution.as_ref()
}

fn preferred(rules: Option<&Rules>) -> &[PreferredSchedulingTerm] {
    rules.and_then(|r| r.preferred_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

/// Whether a pod says anything about its nodes.
pub(super) fn has_required(pod: &PodInfo) -> bool {
    let selects = pod.spec().and_then(|s| s.node_selector.as_ref()).is_some_and(|s| !s.is_empty());
    selects || rules(pod).and_then(required).is_some()
}

/// Whether a node is one that the pod selects: `nodeSelector` and required affinity.
pub(super) fn selects(pod: &PodInfo, node: Place<'_>) -> bool {
    let selector = pod.spec().and_then(|s| s.node_selector.as_ref()).into_iter().flatten();
    selector.into_iter().all(|(k, v)| node.label(k) == Some(v))
        && rules(pod).and_then(required).is_none_or(|r| matches(r, node))
}

/// Whether one of the selector's terms matches.
pub(super) fn matches(selector: &NodeSelector, node: Place<'_>) -> bool {
    selector.node_selector_terms.iter().any(|t| term_matches(t, node))
}

/// A term without any requirement matches nothing.
fn term_matches(term: &NodeSelectorTerm, node: Place<'_>) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    (!expressions.is_empty() || !fields.is_empty())
        && expressions.iter().all(|r| holds(r, node.label(&r.key)))
        && fields.iter().all(|r| r.key == "metadata.name" && holds(r, Some(node.name)))
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

impl Plugin for NodeAffinity {
    fn name(&self) -> &'static str {
        "NodeAffinity"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::PodUpdated { old, new } => old.spec() != new.spec(),
            Event::NodeUpdated { old, new } => {
                // Only where the node becomes one that the pod selects.
                self.allows(pod, Place::of(new)) && !self.allows(pod, Place::of(old))
            }
            _ => event.node(|_| false).is_some_and(|n| self.allows(pod, Place::of(n))),
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }

    fn pre_score(&self) -> Option<&dyn PreScore> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn Score> {
        Some(self)
    }
}

impl NodeAffinity {
    fn added_allows(&self, node: Place<'_>) -> bool {
        self.added.as_ref().and_then(required).is_none_or(|r| matches(r, node))
    }

    fn allows(&self, pod: &PodInfo, node: Place<'_>) -> bool {
        self.added_allows(node) && selects(pod, node)
    }
}

impl PreFilter for NodeAffinity {
    fn pre_filter(&self, _: &Cycle<'_>, _: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        if !has_required(pod) && self.added.as_ref().and_then(required).is_none() {
            return Ok(PreFiltered::Skip);
        }
        let Some(required) = rules(pod).and_then(required) else { return Ok(PreFiltered::Any) };
        // Terms are alternatives: every one must name its nodes.
        let mut names = BTreeSet::new();
        for term in &required.node_selector_terms {
            let fields = term.match_fields.as_deref().unwrap_or_default();
            let mut named: Option<BTreeSet<String>> = None;
            for r in fields.iter().filter(|r| r.key == "metadata.name" && r.operator == "In") {
                let own: BTreeSet<String> = r.values.iter().flatten().cloned().collect();
                named = Some(named.map_or(own.clone(), |n| n.intersection(&own).cloned().collect()));
            }
            match named {
                Some(named) => names.extend(named),
                None => return Ok(PreFiltered::Any),
            }
        }
        if names.is_empty() && !required.node_selector_terms.is_empty() {
            return Err(Status::unresolvable("pod affinity terms conflict"));
        }
        Ok(if names.is_empty() { PreFiltered::Any } else { PreFiltered::Only(names) })
    }
}

impl Filter for NodeAffinity {
    fn filter(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        let place = Place::of(&node.node);
        if !self.added_allows(place) {
            return Err(Status::unresolvable("node(s) didn't match scheduler-enforced node affinity"));
        }
        if !selects(pod, place) {
            return Err(Status::unresolvable("node(s) didn't match Pod's node affinity/selector"));
        }
        Ok(())
    }
}

impl PreScore for NodeAffinity {
    fn pre_score(
        &self,
        _: &Cycle<'_>,
        _: &mut CycleState,
        pod: &PodInfo,
        _: &[Arc<NodeInfo>],
    ) -> Result<Opinion, Status> {
        let none = preferred(rules(pod)).is_empty() && preferred(self.added.as_ref()).is_empty();
        Ok(if none { Opinion::None } else { Opinion::Some })
    }
}

impl Score for NodeAffinity {
    fn score(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let place = Place::of(&node.node);
        let all = preferred(rules(pod)).iter().chain(preferred(self.added.as_ref()));
        all.filter(|p| term_matches(&p.preference, place)).map(|p| i64::from(p.weight)).sum()
    }

    fn normalize(&self, _: &Cycle<'_>, _: &CycleState, _: &PodInfo, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        normalize(scores, false);
    }
}
