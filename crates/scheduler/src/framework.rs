//! The scheduling framework: filters say where a pod can run, scores where it runs best.
//!
//! Pure: the same pod and snapshot give the same node. Ties go to the node that comes first by name.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use crate::snapshot::{NodeInfo, Snapshot};

/// Says whether a pod can run on a node.
pub trait Filter: Send + Sync {
    /// The plugin's name, as the reference has it.
    fn name(&self) -> &'static str;

    /// `Err` with the reasons, in the words of events and conditions (`Insufficient cpu`).
    fn filter(&self, pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>>;
}

/// Says how well a pod runs on a node that passed the filters.
pub trait Score: Send + Sync {
    /// The plugin's name, as the reference has it.
    fn name(&self) -> &'static str;

    /// How much its opinion counts.
    fn weight(&self) -> i64 {
        1
    }

    /// 0 to 100; more is better.
    fn score(&self, pod: &Pod, node: &NodeInfo) -> i64;
}

/// The plugins in force.
pub struct Framework {
    filters: Vec<Box<dyn Filter>>,
    scores: Vec<Box<dyn Score>>,
}

/// Why no node takes a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Unschedulable {
    /// How many nodes there are.
    pub nodes: usize,
    /// Reasons, with how many nodes gave each.
    pub reasons: BTreeMap<String, usize>,
}

impl Unschedulable {
    /// In the words of the reference's `FitError`: reasons sorted as text, the count included.
    fn text(&self) -> String {
        if self.nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let mut reasons: Vec<String> = self.reasons.iter().map(|(r, n)| format!("{n} {r}")).collect();
        reasons.sort();
        format!("0/{} nodes are available: {}.", self.nodes, reasons.join(", "))
    }
}

impl Framework {
    /// With these plugins.
    pub fn new(filters: Vec<Box<dyn Filter>>, scores: Vec<Box<dyn Score>>) -> Self {
        Self { filters, scores }
    }

    /// The name of the best node for `pod`.
    pub fn schedule<'a>(&self, pod: &Pod, snapshot: &'a Snapshot) -> Result<&'a str, Unschedulable> {
        let mut refused = Unschedulable { nodes: snapshot.len(), reasons: BTreeMap::new() };
        let mut best: Option<(i64, &str)> = None;
        for node in snapshot.nodes() {
            // The first filter that refuses a node speaks for it.
            if let Some(reasons) = self.filters.iter().find_map(|f| f.filter(pod, node).err()) {
                for reason in reasons {
                    *refused.reasons.entry(reason).or_default() += 1;
                }
                continue;
            }
            let score = self.scores.iter().map(|s| s.weight() * s.score(pod, node)).sum();
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, node.name()));
            }
        }
        best.map(|(_, name)| name).ok_or(refused)
    }
}
