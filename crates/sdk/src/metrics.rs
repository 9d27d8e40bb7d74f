//! Counts of an operator's reconciles, as plain numbers.
//!
//! It is no exporter: whoever serves metrics reads a [`Snapshot`] and names them as its dashboards expect.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one operator.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) done: AtomicU64,
    pub(crate) requeued_after: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) terminal_errors: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) active: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The numbers of one operator at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The operator's name.
    pub operator: String,
    /// Reconciles that ended well, without a time to come back.
    pub done: u64,
    /// Reconciles that ended well and come back after a time.
    pub requeued_after: u64,
    /// Reconciles that failed, panics, timeouts and terminal errors included.
    pub errors: u64,
    /// Of these, those that aren't tried again.
    pub terminal_errors: u64,
    /// Of these, those that panicked.
    pub panics: u64,
    /// Of these, those that took too long.
    pub timeouts: u64,
    /// Reconciles running now.
    pub active: u64,
    /// Keys that wait to be reconciled now.
    pub ready: u64,
    /// Keys that wait for a time.
    pub delayed: u64,
}

impl Counters {
    pub(crate) fn snapshot(&self, operator: &str, depth: crate::queue::Depth) -> Snapshot {
        let load = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Snapshot {
            operator: operator.to_owned(),
            done: load(&self.done),
            requeued_after: load(&self.requeued_after),
            errors: load(&self.errors),
            terminal_errors: load(&self.terminal_errors),
            panics: load(&self.panics),
            timeouts: load(&self.timeouts),
            active: load(&self.active),
            ready: depth.ready as u64,
            delayed: depth.delayed as u64,
        }
    }
}
