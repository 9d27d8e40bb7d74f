//! A reader's place in a log. It holds a revision and the batch it gave out last, no queue: however many cursors
//! follow a collection, an event exists once. Invariant: everything of the collection up to `position` has been
//! given out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Compacted;
use crate::log::{Log, Read};
use crate::record::{Event, Revision};

/// How many events a batch has at most.
pub const BATCH: usize = 128;

/// Follows the changes of one collection, or of all; from [`crate::Store::watch`] and [`crate::Store::watch_all`].
///
/// It belongs to no store object: when the store is dropped, it waits for ever.
pub struct Cursor<M> {
    log: Arc<Log<M>>,
    /// The store's revision, published after the events up to it are in their logs.
    published: Arc<AtomicU64>,
    position: Revision,
    batch: Vec<Arc<Event<M>>>,
}

impl<M> Cursor<M> {
    pub(crate) fn new(log: Arc<Log<M>>, published: Arc<AtomicU64>, after: Revision) -> Self {
        Self { log, published, position: after, batch: Vec::new() }
    }

    /// Waits for changes and gives the next ones, in order, at most [`BATCH`].
    ///
    /// Safe to cancel: a future dropped before it is ready has taken nothing. A cursor that fell behind what the
    /// log still holds gets [`Compacted`] for good; make a new one from a new list.
    pub async fn next(&mut self) -> Result<&[Arc<Event<M>>], Compacted> {
        let Self { log, published, position, batch } = self;
        loop {
            // A waiter counts from here on: an event that comes after this look is not missed.
            let woken = log.wake().notified();
            advance(log, published, position, batch)?;
            if !batch.is_empty() {
                return Ok(batch);
            }
            woken.await;
        }
    }

    /// The next changes if there are any now, else an empty batch.
    pub fn try_next(&mut self) -> Result<&[Arc<Event<M>>], Compacted> {
        let Self { log, published, position, batch } = self;
        advance(log, published, position, batch)?;
        Ok(batch)
    }

    /// The revision up to which this cursor has given out everything of its collection.
    ///
    /// While the collection is quiet it moves with the rest of the store, so a bookmark is always fresh.
    pub fn seen(&self) -> Revision {
        let published = self.published.load(Ordering::Acquire);
        match self.log.newest() {
            Some(newest) if newest > self.position => self.position,
            _ if self.position < self.log.evicted() => self.position,
            _ => self.position.max(published),
        }
    }
}

/// Refills `batch` from the log after `position`, and moves that.
fn advance<M>(
    log: &Log<M>,
    published: &AtomicU64,
    position: &mut Revision,
    batch: &mut Vec<Arc<Event<M>>>,
) -> Result<(), Compacted> {
    // Before the log is read: what is published now is in it.
    let current = published.load(Ordering::Acquire);
    batch.clear();
    let read = log.read(*position, Revision::MAX, BATCH, batch);
    if let Some(last) = batch.last() {
        *position = last.revision;
    }
    match read {
        Read::Evicted(oldest) => return Err(Compacted { oldest, current: current.max(oldest) }),
        Read::Drained => *position = (*position).max(current),
        Read::More => {}
    }
    Ok(())
}
