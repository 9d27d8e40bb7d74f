//! The change log as cursors read it: one log per collection and one of everything, all holding the same shared
//! events, so that a reader finds its place by binary search and walks over nothing that isn't its own.
//!
//! A log is no queue: it knows no readers, and reading takes nothing out. Invariants: events lie in order of
//! revision; every event of this log above `evicted` is in it.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::Notify;

use crate::record::{Event, Revision};

/// The events of one collection, or of all.
pub(crate) struct Log<M> {
    entries: RwLock<Entries<M>>,
    /// Wakes the cursors that wait for this log, and no others.
    wake: Notify,
}

struct Entries<M> {
    events: VecDeque<Arc<Event<M>>>,
    /// The newest event that is no longer here, or where the log began: readers before it have missed something.
    evicted: Revision,
}

/// What reading found besides the events.
pub(crate) enum Read {
    /// The reader has now seen the log up to its end.
    Drained,
    /// There is more.
    More,
    /// The reader's place is gone; this is the oldest there is.
    Evicted(Revision),
}

impl<M> Log<M> {
    pub(crate) fn new(evicted: Revision) -> Self {
        Self { entries: RwLock::new(Entries { events: VecDeque::new(), evicted }), wake: Notify::new() }
    }

    /// Appends an event; `notify` is for after the store's lock.
    pub(crate) fn push(&self, event: Arc<Event<M>>) {
        self.write().events.push_back(event);
    }

    /// Takes out the oldest event.
    pub(crate) fn evict(&self) -> Option<Arc<Event<M>>> {
        let mut entries = self.write();
        let event = entries.events.pop_front()?;
        entries.evicted = event.revision;
        Some(event)
    }

    /// Gives back memory that a burst took.
    pub(crate) fn shrink(&self) {
        let mut entries = self.write();
        if entries.events.len() < entries.events.capacity() / 4 {
            entries.events.shrink_to_fit();
        }
    }

    pub(crate) fn notify(&self) {
        self.wake.notify_waiters();
    }

    pub(crate) fn wake(&self) -> &Notify {
        &self.wake
    }

    pub(crate) fn evicted(&self) -> Revision {
        self.read_lock().evicted
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.read_lock().events.is_empty()
    }

    /// The newest event's revision, if it is still here.
    pub(crate) fn newest(&self) -> Option<Revision> {
        self.read_lock().events.back().map(|event| event.revision)
    }

    /// Adds to `into` at most `limit` events with revisions above `after` and at most `until`.
    pub(crate) fn read(
        &self,
        after: Revision,
        until: Revision,
        limit: usize,
        into: &mut Vec<Arc<Event<M>>>,
    ) -> Read {
        let entries = self.read_lock();
        if after < entries.evicted {
            return Read::Evicted(entries.evicted);
        }
        // Most readers are at the end of the log: they look at one event.
        if entries.events.back().is_none_or(|event| event.revision <= after) {
            return Read::Drained;
        }
        let start = entries.events.partition_point(|event| event.revision <= after);
        let rest = entries.events.range(start..);
        let total = rest.len();
        into.extend(rest.take(limit).take_while(|event| event.revision <= until).cloned());
        if total <= limit { Read::Drained } else { Read::More }
    }

    fn read_lock(&self) -> RwLockReadGuard<'_, Entries<M>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Entries<M>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}
