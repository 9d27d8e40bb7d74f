//! NodeResourcesFit and NodeResourcesBalancedAllocation: room for the pod, and where it leaves the most.

use k8s_openapi::api::core::v1::Pod;

use crate::framework::{Filter, Score};
use crate::resources::{Amounts, requests, requests_for_score};
use crate::snapshot::NodeInfo;

/// Room for the pod; scores by what stays free (the reference's LeastAllocated).
pub struct NodeResourcesFit;

impl Filter for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn filter(&self, pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>> {
        let Some(spec) = &pod.spec else { return Ok(()) };
        let mut short = Vec::new();
        if node.pods + 1 > node.allocatable.get("pods") {
            short.push("Too many pods".to_owned());
        }
        for (name, wanted) in requests(spec).iter() {
            if wanted > 0 && node.requested.get(name).saturating_add(wanted) > node.allocatable.get(name) {
                short.push(format!("Insufficient {name}"));
            }
        }
        if short.is_empty() { Ok(()) } else { Err(short) }
    }
}

impl Score for NodeResourcesFit {
    fn name(&self) -> &'static str {
        "NodeResourcesFit"
    }

    fn score(&self, pod: &Pod, node: &NodeInfo) -> i64 {
        let free: Vec<i64> = fractions(pod, node).iter().map(|f| ((1.0 - f) * 100.0) as i64).collect();
        if free.is_empty() { 0 } else { free.iter().sum::<i64>() / free.len() as i64 }
    }
}

/// Prefers nodes whose CPU and memory are used alike.
pub struct BalancedAllocation;

impl Score for BalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn score(&self, pod: &Pod, node: &NodeInfo) -> i64 {
        match fractions(pod, node)[..] {
            [a, b] => ((1.0 - (a - b).abs() / 2.0) * 100.0) as i64,
            _ => 0,
        }
    }
}

/// Of CPU and memory, the share in use if the pod came; only of those that the node has.
fn fractions(pod: &Pod, node: &NodeInfo) -> Vec<f64> {
    let wanted = pod.spec.as_ref().map_or_else(Amounts::default, requests_for_score);
    ["cpu", "memory"]
        .into_iter()
        .filter(|name| node.allocatable.get(name) > 0)
        .map(|name| {
            let used = node.scored.get(name).saturating_add(wanted.get(name));
            (used as f64 / node.allocatable.get(name) as f64).min(1.0)
        })
        .collect()
}
