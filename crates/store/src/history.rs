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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(history: &mut History<()>, revision: Revision) -> Option<Revision> {
        history.nearest(revision).map(|kept| kept.revision())
    }

    fn sample() -> History<()> {
        let mut history = History::new();
        for revision in 1..=3 * INTERVAL {
            history.committed(&Snapshot::empty(revision));
        }
        history
    }

    #[test]
    fn the_nearest_state_not_before() {
        let mut history = sample();
        let check = |history: &mut History<()>, revision, want| {
            assert_eq!(kept(history, revision), want, "at {revision}");
        };
        check(&mut history, 1, Some(INTERVAL));
        check(&mut history, INTERVAL, Some(INTERVAL));
        check(&mut history, INTERVAL + 1, Some(2 * INTERVAL));
        check(&mut history, 3 * INTERVAL + 1, None);
        history.remember(Snapshot::empty(INTERVAL + 10));
        check(&mut history, INTERVAL + 10, Some(INTERVAL + 10));
        check(&mut history, INTERVAL + 9, Some(INTERVAL + 10));
        check(&mut history, INTERVAL + 11, Some(2 * INTERVAL));
        history.remember(Snapshot::empty(3 * INTERVAL + 5));
        check(&mut history, 3 * INTERVAL + 1, Some(3 * INTERVAL + 5));
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let mut history = History::<()>::new();
        for revision in 0..REMEMBERED as u64 {
            history.remember(Snapshot::empty(10 + 10 * revision));
        }
        history.remember(Snapshot::empty(10));
        assert_eq!(history.remembered.len(), REMEMBERED, "once is enough");
        assert_eq!(kept(&mut history, 10), Some(10));
        history.remember(Snapshot::empty(5));
        assert_eq!(history.remembered.len(), REMEMBERED);
        assert_eq!(kept(&mut history, 10), Some(10), "just used");
        assert_eq!(kept(&mut history, 20), Some(30), "made room");
    }

    #[test]
    fn forgetting() {
        let mut history = sample();
        history.remember(Snapshot::empty(INTERVAL - 1));
        history.remember(Snapshot::empty(2 * INTERVAL + 1));
        assert_eq!(history.forget(INTERVAL - 1).len(), 0);
        assert_eq!(history.forget(2 * INTERVAL).len(), 2);
        assert_eq!(kept(&mut history, 1), Some(2 * INTERVAL));
        assert_eq!(history.forget(Revision::MAX).len(), 3);
        assert_eq!(kept(&mut history, 1), None);
    }
}
