//! Counting by domain: how much of something there is in each value of a node label.
//!
//! Shared by the plugins whose rules are about domains. Sums stand in arrays by the numbers of a column.

use std::sync::Arc;

use crate::snapshot::{Column, Snapshot};

/// Sums by domain, for one node label.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    key: String,
    column: Arc<Column>,
    sums: Vec<i64>,
}

/// Sums by domain, for several node labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Vec<Counts>);

impl Tally {
    /// Adds `n` to the domain that a node is in, by the node's label `key`.
    pub(super) fn add(&mut self, snapshot: &Snapshot, key: &str, slot: usize, n: i64) {
        let at = self.place(snapshot, key);
        self.0[at].add(slot, n);
    }

    /// As [`add`](Self::add), for many nodes.
    pub(super) fn add_all(
        &mut self,
        snapshot: &Snapshot,
        key: &str,
        nodes: impl Iterator<Item = (usize, i64)>,
    ) {
        let at = self.place(snapshot, key);
        let counts = &mut self.0[at];
        nodes.for_each(|(slot, n)| counts.add(slot, n));
    }

    fn place(&mut self, snapshot: &Snapshot, key: &str) -> usize {
        match self.0.iter().position(|c| c.key == key) {
            Some(at) => at,
            None => {
                let column = snapshot.column(key);
                let sums = vec![0; column.len()];
                self.0.push(Counts { key: key.to_owned(), column, sums });
                self.0.len() - 1
            }
        }
    }

    /// The sum in the domain that a node is in; `None` where the node has no such label.
    pub(super) fn get(&self, snapshot: &Snapshot, key: &str, slot: usize) -> Option<i64> {
        match self.0.iter().find(|c| c.key == key) {
            Some(counts) => counts.get(slot),
            None => snapshot.column(key).of(slot).map(|_| 0),
        }
    }

    /// The sums of all the node's domains.
    pub(super) fn total(&self, slot: usize) -> i64 {
        self.0.iter().filter_map(|c| c.get(slot)).sum()
    }

    /// Whether any of the node's domains has something.
    pub(super) fn hits(&self, slot: usize) -> bool {
        self.0.iter().any(|c| c.get(slot).is_some_and(|n| n > 0))
    }

    /// Whether there is nothing anywhere.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|c| c.sums.iter().all(|n| *n == 0))
    }
}

impl Counts {
    fn add(&mut self, slot: usize, n: i64) {
        if let Some(sum) = self.column.of(slot).and_then(|d| self.sums.get_mut(d)) {
            *sum += n;
        }
    }

    fn get(&self, slot: usize) -> Option<i64> {
        self.sums.get(self.column.of(slot)?).copied()
    }
}
