//! Why no node takes a pod: each node's refusal, and the one text that people read.
//!
//! The text is the reference's `FitError`, to the letter: reasons with how many nodes gave each, sorted as text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::status::{Code, Status};

/// Why a pod has no node.
#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    /// How many nodes there are.
    pub nodes: usize,
    /// What each node's filters said, by the node's name.
    pub refused: BTreeMap<Arc<str>, Status>,
    /// What stands for nodes that were not looked at.
    pub absent: Option<Status>,
    /// What a plugin said before any node was looked at.
    pub pre_filter: String,
    /// What was said about helping.
    pub post_filter: String,
    /// The plugins that refused. `Extender` stands for any extender.
    pub plugins: BTreeSet<&'static str>,
    /// Whether one of them is up to somebody outside.
    pub pending: bool,
}

/// How the reference calls extenders among the plugins that refused.
pub const EXTENDER: &str = "Extender";

impl Diagnosis {
    /// Nothing known yet about this many nodes.
    pub fn new(nodes: usize) -> Self {
        Self { nodes, ..Self::default() }
    }

    /// A node refused.
    pub fn refuse(&mut self, node: Arc<str>, status: Status) {
        self.note(&status);
        self.refused.insert(node, status);
    }

    /// Remembers which plugin a status is from.
    pub fn note(&mut self, status: &Status) {
        if status.is_rejected() && !status.plugin.is_empty() {
            self.plugins.insert(status.plugin);
        }
        self.pending |= status.code == Code::Pending;
    }

    /// What became of a node: its own refusal, or what stands for those not looked at.
    pub fn code(&self, node: &str) -> Option<Code> {
        self.refused.get(node).or(self.absent.as_ref()).map(|s| s.code)
    }

    /// The text of events and conditions.
    pub fn text(&self) -> String {
        if self.nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let mut text = format!("0/{} nodes are available:", self.nodes);
        if self.pre_filter.is_empty() {
            let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
            for status in self.refused.values() {
                for reason in &status.reasons {
                    *counts.entry(reason).or_default() += 1;
                }
            }
            if let Some(status) = self.absent.as_ref().filter(|_| self.refused.len() < self.nodes) {
                for reason in &status.reasons {
                    *counts.entry(reason).or_default() += self.nodes - self.refused.len();
                }
            }
            let mut reasons: Vec<String> = counts.iter().map(|(r, n)| format!("{n} {r}")).collect();
            reasons.sort();
            if !reasons.is_empty() {
                text.push_str(&format!(" {}.", reasons.join(", ")));
            }
        } else {
            text.push_str(&format!(" {}.", self.pre_filter));
        }
        if !self.post_filter.is_empty() {
            text.push(' ');
            text.push_str(&self.post_filter);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_references() {
        let mut d = Diagnosis::new(12);
        assert_eq!(d.text(), "0/12 nodes are available:");
        for i in 0..10 {
            d.refuse(
                format!("n{i}").as_str().into(),
                Status::unresolvable("node(s) had untolerated taint(s)"),
            );
        }
        d.refuse("a".into(), Status::unschedulable("Insufficient cpu"));
        d.absent = Some(Status::unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]"));
        d.post_filter = "preemption: not eligible due to preemptionPolicy=Never.".to_owned();
        assert_eq!(
            d.text(),
            "0/12 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity], \
             10 node(s) had untolerated taint(s). preemption: not eligible due to preemptionPolicy=Never."
        );
        d.pre_filter = "pod has unbound immediate PersistentVolumeClaims".to_owned();
        d.post_filter.clear();
        assert_eq!(d.text(), "0/12 nodes are available: pod has unbound immediate PersistentVolumeClaims.");
        assert_eq!(Diagnosis::default().text(), "no nodes available to schedule pods");
    }
}
