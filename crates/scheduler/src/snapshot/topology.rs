//! A node label as a column: which of its values each node has, as small numbers.
//!
//! Rules about domains (spreading, affinity) count by these numbers instead of by text. A column is made when a rule
//! first asks for its label, and kept until a node's labels change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::node::NodeInfo;

/// The values of one node label.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// By the node's slot; `None` where the node doesn't have the label.
    values: Vec<Option<u32>>,
    names: Vec<String>,
}

impl Column {
    pub(super) fn new(key: &str, slots: &[Option<Arc<NodeInfo>>]) -> Self {
        let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
        let mut names = Vec::new();
        let mut values = Vec::with_capacity(slots.len());
        for slot in slots {
            let value = slot.as_ref().and_then(|n| n.label(key));
            values.push(value.map(|value| {
                *ids.entry(value).or_insert_with(|| {
                    names.push(value.to_owned());
                    u32::try_from(names.len() - 1).unwrap_or(u32::MAX)
                })
            }));
        }
        Self { values, names }
    }

    /// The domain that a node is in.
    pub fn of(&self, slot: usize) -> Option<usize> {
        self.values.get(slot).copied().flatten().map(|v| v as usize)
    }

    /// How many domains there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no node has the label.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The label's value for a domain.
    pub fn name(&self, domain: usize) -> Option<&str> {
        self.names.get(domain).map(String::as_str)
    }
}
