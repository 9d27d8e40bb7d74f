//! NodeResourcesFit: room for the pod, and how much of the node it should leave.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;

use crate::framework::{Code, Cycle, CycleState, Event, Filter, MAX_SCORE, Plugin, Score, Status};
use crate::resources::{Amounts, is_extended};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// A resource that a strategy weighs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Weighed {
    /// Its name.
    pub name: String,
    /// How much it counts.
    #[serde(default = "one")]
    pub weight: i64,
}

const fn one() -> i64 {
    1
}

/// CPU and memory, alike.
pub fn cpu_and_memory() -> Vec<Weighed> {
    ["cpu", "memory"].map(|name| Weighed { name: name.to_owned(), weight: 1 }).into()
}

/// What is wanted of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// Much left.
    LeastAllocated,
    /// Little left.
    MostAllocated,
    /// Points of (utilisation in percent, score of 0 to 10), by utilisation; between them straight lines.
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

/// The plugin.
#[derive(Clone, Debug)]
pub struct NodeResourcesFit {
    /// What is wanted.
    pub strategy: Strategy,
    /// Of which resources.
    pub resources: Vec<Weighed>,
    /// Extended resources that the filter leaves to others.
    pub ignored: BTreeSet<String>,
    /// The same for all of a domain.
    pub ignored_groups: BTreeSet<String>,
}

impl Default for NodeResourcesFit {
    fn default() -> Self {
        Self {
            strategy: Strategy::LeastAllocated,
            resources: cpu_and_memory(),
            ignored: BTreeSet::new(),
            ignored_groups: BTreeSet::new(),
        }
    }
}

impl Plugin for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::AssignedPodDeleted(_) => true,
            // The room that was kept for it is free.
            Event::PodDeleted(gone) => gone.nominated().is_some(),
            Event::AssignedPodUpdated { old, new } => less(&new.requests, &old.requests),
            Event::PodUpdated { old, new } => less(&new.requests, &old.requests),
            Event::NodeUpdated { old, new } => {
                let of = |n: &k8s_openapi::api::core::v1::Node| {
                    Amounts::of(n.status.as_ref().and_then(|s| s.allocatable.as_ref()))
                };
                let (old, new) = (of(old), of(new));
                let more = pod.requests.iter().any(|(r, _)| new.get(r) > old.get(r)) || new.pods > old.pods;
                more && pod.requests.iter().all(|(r, n)| new.get(r) >= n)
            }
            _ => event.node(|_| false).is_some_and(|n| {
                let has = Amounts::of(n.status.as_ref().and_then(|s| s.allocatable.as_ref()));
                pod.requests.iter().all(|(r, n)| has.get(r) >= n)
            }),
        }
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn Score> {
        Some(self)
    }
}

/// Whether any amount became smaller.
fn less(new: &Amounts, old: &Amounts) -> bool {
    old.iter().any(|(r, n)| new.get(r) < n)
}

impl NodeResourcesFit {
    fn ignores(&self, resource: &str) -> bool {
        is_extended(resource)
            && (self.ignored.contains(resource)
                || resource.split_once('/').is_some_and(|(group, _)| self.ignored_groups.contains(group)))
    }
}

fn reason(resource: &str) -> std::borrow::Cow<'static, str> {
    match resource {
        "cpu" => "Insufficient cpu".into(),
        "memory" => "Insufficient memory".into(),
        "ephemeral-storage" => "Insufficient ephemeral-storage".into(),
        _ => format!("Insufficient {resource}").into(),
    }
}

impl Filter for NodeResourcesFit {
    fn filter(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        let mut reasons = Vec::new();
        let mut code = Code::Unschedulable;
        let pods = i64::try_from(node.pods.len()).unwrap_or(i64::MAX);
        if pods >= node.allocatable.pods {
            reasons.push("Too many pods".into());
        }
        for (resource, wanted) in pod.requests.iter() {
            let has = node.allocatable.get(resource);
            if wanted > 0
                && wanted > has.saturating_sub(node.requested.get(resource))
                && !self.ignores(resource)
            {
                reasons.push(reason(resource));
                if wanted > has {
                    // Not even alone.
                    code = Code::UnschedulableAndUnresolvable;
                }
            }
        }
        if reasons.is_empty() { Ok(()) } else { Err(Status { code, reasons, plugin: "" }) }
    }
}

/// What a resource of a node would be used of and is there of, if the pod came. `None` where it doesn't count.
pub(super) fn usage(pod: &PodInfo, node: &NodeInfo, resource: &str, real: bool) -> Option<(i64, i64)> {
    let has = node.allocatable.get(resource);
    let wanted = match resource {
        "cpu" if !real => pod.non_zero.0,
        "memory" if !real => pod.non_zero.1,
        _ => pod.requests.get(resource),
    };
    // A pod that doesn't want a device is not drawn to where there are some, nor driven away.
    if has == 0 || (wanted == 0 && !matches!(resource, "cpu" | "memory" | "ephemeral-storage")) {
        return None;
    }
    let used = match resource {
        "cpu" if !real => node.non_zero.0,
        "memory" if !real => node.non_zero.1,
        _ => node.requested.get(resource),
    };
    Some((used.saturating_add(wanted), has))
}

/// The value of a line through points at `x`, beyond its ends level.
fn interpolate(points: &[(i64, i64)], x: i64) -> i64 {
    let Some(first) = points.first() else { return 0 };
    if x <= first.0 {
        return first.1;
    }
    for pair in points.windows(2) {
        if let [(x0, y0), (x1, y1)] = pair
            && x <= *x1
        {
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0).max(1);
        }
    }
    points.last().map_or(0, |p| p.1)
}

impl Score for NodeResourcesFit {
    fn score(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let (mut sum, mut weights) = (0, 0);
        for Weighed { name, weight } in &self.resources {
            let Some((used, has)) = usage(pod, node, name, false) else { continue };
            let score = match &self.strategy {
                Strategy::LeastAllocated if used > has => 0,
                Strategy::LeastAllocated => (has - used).saturating_mul(MAX_SCORE) / has,
                Strategy::MostAllocated => used.min(has).saturating_mul(MAX_SCORE) / has,
                Strategy::RequestedToCapacityRatio(shape) => {
                    let percent = if used > has { 100 } else { used.saturating_mul(100) / has };
                    let score = interpolate(shape, percent) * (MAX_SCORE / 10);
                    if score == 0 {
                        continue;
                    }
                    score
                }
            };
            sum += score * weight;
            weights += weight;
        }
        match (&self.strategy, weights) {
            (_, 0) => 0,
            (Strategy::RequestedToCapacityRatio(_), w) => (sum as f64 / w as f64).round() as i64,
            (_, w) => sum / w,
        }
    }

    fn normalize(&self, _: &Cycle<'_>, _: &CycleState, _: &PodInfo, _: &[Arc<NodeInfo>], _: &mut [i64]) {}
}

#[cfg(test)]
mod tests {
    use super::interpolate;

    #[test]
    fn lines_are_level_beyond_their_ends() {
        let shape = [(20, 0), (80, 10)];
        for (x, want) in [(0, 0), (20, 0), (50, 5), (80, 10), (100, 10)] {
            assert_eq!(interpolate(&shape, x), want, "{x}");
        }
        assert_eq!(interpolate(&[], 5), 0);
    }
}
