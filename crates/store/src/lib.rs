//! Records under keys, one sequence of revisions, and the log of changes that every watch reads.
//!
//! The store knows keys, bytes and revisions; it does not know JSON, Kubernetes, time or chance, and it never
//! decides whether a write changes anything: whoever commits has compared already. What it keeps beside a
//! record's bytes (`M`) is its owner's index of them, opaque here.
//!
//! Invariants:
//! - Every commit takes the next revision, and commits become visible in that order and no other: a snapshot at
//!   revision `r` holds the effect of exactly the commits up to `r`.
//! - Reading never waits for a reader and costs no copy: snapshots and forks are O(1), events and bytes are shared.
//! - Everything kept for the past is bounded (see [`Limits`]); who asks for more gets [`Compacted`].
//!
//! ```
//! # use homeostat_store::{Draft, Expect, Key, Memory, Op, Store, Write};
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = Memory::<()>::new();
//! let mut pods = store.watch("pods", store.revision())?;
//! let draft = Draft::new(br#"{"resourceVersion":""}"#.to_vec(), 20);
//! let key = Key::new("pods", "default/web");
//! store.commit(Write { key, expect: Expect::Absent, op: Op::Put(draft, ()) }).await?;
//!
//! let web = store.get("pods", "default/web").ok_or("absent")?;
//! assert_eq!(&web.bytes[..], br#"{"resourceVersion":"2"}"#);
//! assert_eq!(pods.next().await?[0].revision, web.revision);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod cursor;
mod error;
mod history;
mod log;
mod memory;
mod record;
mod snapshot;
mod stamp;
mod write;

use std::sync::Arc;

use futures::future::BoxFuture;

pub use cursor::{BATCH, Cursor};
pub use error::{CommitError, Compacted, HistoryError};
pub use memory::{Limits, Memory};
pub use record::{Event, Key, Record, Revision};
pub use snapshot::{Listing, Range, Snapshot};
pub use write::{Draft, Expect, Op, Write};

/// Where the API server keeps its objects.
///
/// It is a trait so that a store can stand in front of another one: to persist commits, or to inject the faults
/// a store may show (a failed commit, one whose outcome is unknown, a snapshot from the past, a compaction at any
/// time). It holds nothing that only such a wrapper would need.
pub trait Store<M: Send + Sync + 'static>: Send + Sync {
    /// The present state. O(1); later commits don't show in it.
    fn snapshot(&self) -> Snapshot<M>;

    /// The state as it was right after `revision`, for lists that are exact or continued.
    ///
    /// Costs at most a few thousand undone commits, and nothing when the same revision is asked for again soon.
    fn snapshot_at(&self, revision: Revision) -> Result<Snapshot<M>, HistoryError>;

    /// The record now under this name: what `self.snapshot().get(…)` gives, without taking a snapshot.
    fn get(&self, collection: &str, name: &str) -> Option<Arc<Record<M>>> {
        self.snapshot().get(collection, name).cloned()
    }

    /// The revision of the newest commit, or 1 when there was none (as in etcd: 0 is no state at all).
    fn revision(&self) -> Revision;

    /// Writes one record if `write.expect` holds. The future does nothing before it is polled; once it has
    /// returned, the event is in snapshots and in the log.
    fn commit(&self, write: Write<M>) -> BoxFuture<'_, Result<Arc<Event<M>>, CommitError<M>>>;

    /// Follows the changes of one collection with a revision above `after`.
    ///
    /// `after` may lie in the future: then everything up to it is skipped.
    fn watch(&self, collection: &str, after: Revision) -> Result<Cursor<M>, Compacted>;

    /// Follows the changes of all collections with a revision above `after`.
    fn watch_all(&self, after: Revision) -> Result<Cursor<M>, Compacted>;

    /// Forgets what came before the state at `before`: that state can still be read and watched from, no older one.
    fn compact(&self, before: Revision);
}
