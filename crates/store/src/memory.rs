//! The store in memory: the present state and the change log, behind one short lock.
//!
//! A commit holds the lock for one lookup, one insertion and two appends; the record's bytes are made before it,
//! watchers are woken and old events freed after it. It is not durable. Invariant: state, logs and history are
//! changed only under the lock, and the revision is published last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::future::BoxFuture;

use crate::Store;
use crate::cursor::Cursor;
use crate::error::{CommitError, Compacted, HistoryError};
use crate::history::History;
use crate::log::{Log, Read};
use crate::record::{Event, Key, Record, Revision};
use crate::snapshot::Snapshot;
use crate::stamp::Stamp;
use crate::write::{Draft, Expect, Op, Write};

/// How much of the past is kept for watchers, whatever [`Store::compact`] allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most events in the log.
    pub events: usize,
    /// The most bytes that only the log keeps alive: replaced and deleted objects, and events as they are sent.
    pub bytes: usize,
}

impl Default for Limits {
    /// 65,536 events, 64 MiB.
    fn default() -> Self {
        Self { events: 65_536, bytes: 64 << 20 }
    }
}

/// A store in memory. Dropping it is its end; share it in an [`Arc`].
pub struct Memory<M> {
    state: Mutex<State<M>>,
    /// The log of all collections. Its start is where history starts.
    all: Arc<Log<M>>,
    published: Arc<AtomicU64>,
    limits: Limits,
}

struct State<M> {
    now: Snapshot<M>,
    /// A log for every collection that has events or is watched.
    logs: BTreeMap<Arc<str>, Arc<Log<M>>>,
    /// In step with the events of `all`.
    held: VecDeque<Held<M>>,
    /// The sum of `held`'s costs.
    bytes: usize,
    history: History<M>,
    /// What was asked to be forgotten.
    compacted: Revision,
}

/// What is to be known of an event in the log to evict it.
struct Held<M> {
    revision: Revision,
    cost: usize,
    log: Arc<Log<M>>,
}

/// What an event costs beside its bytes: the event, a record, places in two logs.
const OVERHEAD: usize = 256;

/// The revision of a store that nothing was committed to.
const EMPTY: Revision = 1;

/// How many events a compaction takes out under one hold of the lock.
const COMPACT_CHUNK: usize = 1024;

impl<M: Send + Sync + 'static> Memory<M> {
    /// An empty store with the default limits.
    pub fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// An empty store. Whatever the limits, the log keeps the newest event.
    pub fn with_limits(limits: Limits) -> Self {
        Self::starting_from(Snapshot::empty(EMPTY), limits)
    }

    /// An independent store that goes on from this one's present state; its history begins there. O(1).
    pub fn fork(&self) -> Self {
        Self::starting_from(self.snapshot(), self.limits)
    }

    /// A store that goes on from a state of this or another one, e.g. from [`Store::snapshot_at`]. O(1).
    pub fn starting_from(state: Snapshot<M>, limits: Limits) -> Self {
        let revision = state.revision();
        let state = State {
            now: state,
            logs: BTreeMap::new(),
            held: VecDeque::new(),
            bytes: 0,
            history: History::new(),
            compacted: revision,
        };
        Self {
            state: Mutex::new(state),
            all: Arc::new(Log::new(revision)),
            published: Arc::new(AtomicU64::new(revision)),
            limits,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the whole store's history starts.
    fn oldest(&self, state: &State<M>) -> Revision {
        self.all.evicted().max(state.compacted)
    }

    fn write(&self, write: Write<M>) -> Result<Arc<Event<M>>, CommitError<M>> {
        let Write { key, expect, op } = write;
        let (draft, meta) = match op {
            Op::Put(draft, meta) => (draft, Some(meta)),
            Op::Delete(draft) => (draft, None),
        };
        let Draft { bytes, revision_at } = &draft;
        let stamp = Stamp::prepare(&draft, self.revision() + 1)
            .ok_or(CommitError::Draft { revision_at: *revision_at, len: bytes.len() })?;

        let mut guard = self.lock();
        let state = &mut *guard;
        let prev = state.now.get(&key.collection, &key.name).cloned();
        let prev = expected(prev, expect, meta.is_some())?;

        let revision = state.now.revision() + 1;
        let key = match &prev {
            Some(prev) => prev.key.clone(),
            None => Key {
                collection: state.now.intern(&key.collection).unwrap_or(key.collection),
                name: key.name,
            },
        };
        let bytes = stamp.finish(revision);
        let (now, last) = match meta {
            Some(meta) => {
                let created = prev.as_ref().map_or(revision, |prev| prev.created);
                (Some(Arc::new(Record { key: key.clone(), bytes, revision, created, meta })), None)
            }
            None => (None, Some(bytes)),
        };
        state.now.set(revision, &key, now.clone());
        state.history.committed(&state.now);

        let event = Arc::new(Event {
            revision,
            key,
            prev,
            now,
            last,
            frame: OnceLock::new(),
            packed: OnceLock::new(),
        });
        let log = self.log(state, &event.key.collection);
        log.push(Arc::clone(&event));
        self.all.push(Arc::clone(&event));
        let cost = cost(&event);
        state.bytes += cost;
        state.held.push_back(Held { revision, cost, log: Arc::clone(&log) });
        let evicted = self.evict_beyond_limits(state);
        self.published.store(revision, Ordering::Release);
        drop(guard);

        log.notify();
        self.all.notify();
        drop(evicted);
        Ok(event)
    }

    /// The log of a collection. One that has to be made begins where all history does: its events, if it had any
    /// before it was forgotten, were evicted by then.
    fn log(&self, state: &mut State<M>, collection: &str) -> Arc<Log<M>> {
        if let Some(log) = state.logs.get(collection) {
            return Arc::clone(log);
        }
        let log = Arc::new(Log::new(self.all.evicted()));
        state.logs.insert(collection.into(), Arc::clone(&log));
        log
    }

    /// Takes out the oldest events until the limits hold, and what is kept of the states before them; the caller
    /// frees both after the lock.
    fn evict_beyond_limits(&self, state: &mut State<M>) -> (Vec<Arc<Event<M>>>, Vec<Snapshot<M>>) {
        let mut evicted = Vec::new();
        while state.held.len() > 1
            && (state.held.len() > self.limits.events || state.bytes > self.limits.bytes)
        {
            self.evict(state, &mut evicted);
        }
        let forgotten = match evicted.last() {
            Some(newest) => state.history.forget(newest.revision),
            None => Vec::new(),
        };
        (evicted, forgotten)
    }

    fn evict(&self, state: &mut State<M>, evicted: &mut Vec<Arc<Event<M>>>) {
        if let Some(held) = state.held.pop_front() {
            state.bytes -= held.cost;
            held.log.evict();
            evicted.extend(self.all.evict());
        }
    }

    fn cursor(&self, state: &State<M>, log: Arc<Log<M>>, after: Revision) -> Result<Cursor<M>, Compacted> {
        let oldest = log.evicted().max(state.compacted);
        if after < oldest {
            return Err(Compacted { oldest, current: state.now.revision() });
        }
        Ok(Cursor::new(log, Arc::clone(&self.published), after))
    }
}

/// Checks what the write expects of the present record.
fn expected<M>(
    present: Option<Arc<Record<M>>>,
    expect: Expect,
    put: bool,
) -> Result<Option<Arc<Record<M>>>, CommitError<M>> {
    match (expect, present) {
        (Expect::Absent, Some(record)) => Err(CommitError::Exists(record)),
        (Expect::Absent | Expect::Any, None) if put => Ok(None),
        (_, None) => Err(CommitError::Missing),
        (Expect::Revision(revision), Some(record)) if record.revision != revision => {
            Err(CommitError::Changed(record))
        }
        (Expect::Revision(_) | Expect::Any, Some(record)) => Ok(Some(record)),
    }
}

/// How many bytes only the log will keep alive for this event. The present object is the state's, until an event
/// replaces it; the frame that watchers will put into the event is about as long as the object.
fn cost<M>(event: &Event<M>) -> usize {
    let replaced = event.prev.as_ref().map_or(0, |record| record.bytes.len());
    let last = event.last.as_ref().map_or(0, |last| last.len());
    OVERHEAD + replaced + last + event.bytes().len()
}

impl<M: Send + Sync + 'static> Default for Memory<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Send + Sync + 'static> Store<M> for Memory<M> {
    fn snapshot(&self) -> Snapshot<M> {
        self.lock().now.clone()
    }

    fn snapshot_at(&self, revision: Revision) -> Result<Snapshot<M>, HistoryError> {
        let (mut snapshot, current) = {
            let mut state = self.lock();
            let current = state.now.revision();
            if revision > current {
                return Err(HistoryError::Future { requested: revision, current });
            }
            let oldest = self.oldest(&state);
            if revision < oldest {
                return Err(Compacted { oldest, current }.into());
            }
            let kept = if revision == current { None } else { state.history.nearest(revision) };
            (kept.unwrap_or_else(|| state.now.clone()), current)
        };
        if snapshot.revision() == revision {
            return Ok(snapshot);
        }

        let mut since = Vec::new();
        if let Read::Evicted(oldest) = self.all.read(revision, snapshot.revision(), usize::MAX, &mut since) {
            return Err(Compacted { oldest, current }.into());
        }
        for event in since.iter().rev() {
            snapshot.undo(event, revision);
        }

        let mut state = self.lock();
        if revision >= self.oldest(&state) {
            state.history.remember(snapshot.clone());
        }
        Ok(snapshot)
    }

    fn get(&self, collection: &str, name: &str) -> Option<Arc<Record<M>>> {
        self.lock().now.get(collection, name).cloned()
    }

    fn revision(&self) -> Revision {
        self.published.load(Ordering::Acquire)
    }

    fn commit(&self, write: Write<M>) -> BoxFuture<'_, Result<Arc<Event<M>>, CommitError<M>>> {
        Box::pin(async move { self.write(write) })
    }

    fn watch(&self, collection: &str, after: Revision) -> Result<Cursor<M>, Compacted> {
        let mut state = self.lock();
        let log = self.log(&mut state, collection);
        self.cursor(&state, log, after)
    }

    fn watch_all(&self, after: Revision) -> Result<Cursor<M>, Compacted> {
        let state = self.lock();
        self.cursor(&state, Arc::clone(&self.all), after)
    }

    fn compact(&self, before: Revision) {
        loop {
            // Freed after the lock: locals are dropped in reverse order.
            let mut evicted = Vec::new();
            let _forgotten;
            let mut guard = self.lock();
            let state = &mut *guard;
            let before = before.min(state.now.revision());
            state.compacted = state.compacted.max(before);
            while evicted.len() < COMPACT_CHUNK
                && state.held.front().is_some_and(|held| held.revision <= before)
            {
                self.evict(state, &mut evicted);
            }
            if evicted.len() == COMPACT_CHUNK {
                continue;
            }
            _forgotten = state.history.forget(state.compacted);
            // Under the lock nobody takes a log that only the map has.
            state.logs.retain(|_, log| !log.is_empty() || Arc::strong_count(log) > 1);
            state.logs.values().for_each(|log| log.shrink());
            self.all.shrink();
            return;
        }
    }
}
