//! States of the past that are kept whole, to give any other by undoing the few events in between.
//!
//! Keeping a snapshot of every revision would make every commit copy its path and keep the copies: some KB a
//! commit. Only undoing would make a list of an old revision undo the whole log. So there is a checkpoint every
//! [`INTERVAL`] commits, and the states asked for last are remembered, as a continued list asks for the same one
//! page after page. Undoing is bounded by the interval, memory by the log: a state older than the log's start is
//! dropped, so what these states keep alive beside tree nodes is in the log anyway.

use std::collections::VecDeque;

use crate::record::Revision;
use crate::snapshot::Snapshot;

/// Commits between two checkpoints.
pub(crate) const INTERVAL: u64 = 4096;

/// How many states that were asked for are remembered.
const REMEMBERED: usize = 8;

/// The kept states.
pub(crate) struct History<M> {
    /// Ascending.
    checkpoints: VecDeque<Snapshot<M>>,
    /// The one used last at the back.
    remembered: VecDeque<Snapshot<M>>,
}

impl<M> History<M> {
    pub(crate) fn new() -> Self {
        Self { checkpoints: VecDeque::new(), remembered: VecDeque::new() }
    }

    /// Keeps the present state if it is time to.
    pub(crate) fn committed(&mut self, state: &Snapshot<M>) {
        if state.revision().is_multiple_of(INTERVAL) {
            self.checkpoints.push_back(state.clone());
        }
    }

    /// Keeps a state that was asked for, in place of the one not used for longest.
    pub(crate) fn remember(&mut self, state: Snapshot<M>) {
        if self.remembered.iter().any(|kept| kept.revision() == state.revision()) {
            return;
        }
        if self.remembered.len() == REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(state);
    }

    /// The kept state of this revision, or else the nearest after it.
    pub(crate) fn nearest(&mut self, revision: Revision) -> Option<Snapshot<M>> {
        if let Some(at) = self.remembered.iter().position(|kept| kept.revision() == revision)
            && let Some(kept) = self.remembered.remove(at)
        {
            self.remembered.push_back(kept.clone());
            return Some(kept);
        }
        let from = self.checkpoints.partition_point(|kept| kept.revision() < revision);
        let later = self.remembered.iter().filter(|kept| kept.revision() > revision);
        self.checkpoints.get(from).into_iter().chain(later).min_by_key(|kept| kept.revision()).cloned()
    }

    /// Takes out the states before `oldest`, for the caller to free after the store's lock.
    pub(crate) fn forget(&mut self, oldest: Revision) -> Vec<Snapshot<M>> {
        let from = self.checkpoints.partition_point(|kept| kept.revision() < oldest);
        let mut gone: Vec<_> = self.checkpoints.drain(..from).collect();
        if self.remembered.iter().any(|kept| kept.revision() < oldest) {
            let (kept, old) = self.remembered.drain(..).partition(|kept| kept.revision() >= oldest);
            self.remembered = kept;
            gone.extend::<VecDeque<_>>(old);
        }
        gone
    }

    /// How many states are kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.checkpoints.len() + self.remembered.len()
    }
}
