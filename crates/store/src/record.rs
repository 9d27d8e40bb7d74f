//! What is stored and what happened to it: keys, records, events. Plain shared data without behaviour; nothing
//! here is ever changed after a commit made it, except that the first watcher fills an event's frame.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// A point in the one sequence of commits of a store. The empty store is at 1, its first commit makes 2.
pub type Revision = u64;

/// Where a record lies. Ordered by collection, then by the bytes of the name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The kind of records, e.g. `pods` or `widgets.example.com`.
    pub collection: Arc<str>,
    /// The name within it, e.g. `namespace/name`, or `name` where there are no namespaces.
    pub name: Arc<str>,
}

impl Key {
    /// A key of its parts.
    pub fn new(collection: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { collection: collection.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.collection, self.name)
    }
}

/// One stored object, as of one revision.
pub struct Record<M> {
    /// Where it lies.
    pub key: Key,
    /// The object as it is sent to clients, its revision inside.
    pub bytes: Bytes,
    /// The commit that made this state of it.
    pub revision: Revision,
    /// The commit that made it exist; kept over updates, new after a deletion.
    pub created: Revision,
    /// Whatever the owner of the bytes keeps beside them (labels, owner references, …).
    pub meta: M,
}

impl<M> fmt::Debug for Record<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("key", &format_args!("{}", self.key))
            .field("revision", &self.revision)
            .field("created", &self.created)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// One commit: a record was created (`now` only), changed (both) or deleted (`prev` only).
pub struct Event<M> {
    /// The commit.
    pub revision: Revision,
    /// What was written or deleted.
    pub key: Key,
    /// The record before the commit.
    pub prev: Option<Arc<Record<M>>>,
    /// The record after the commit.
    pub now: Option<Arc<Record<M>>>,
    /// On deletion: the object's last bytes, which carry the revision of the deletion.
    pub last: Option<Bytes>,
    /// A slot for the event as watchers send it, so that it is encoded once for all of them.
    pub frame: OnceLock<Bytes>,
    /// Another such slot, for the second form in which watchers read events.
    pub packed: OnceLock<Bytes>,
}

impl<M> Event<M> {
    /// The object as of this event: the new bytes, or the last ones of a deleted object.
    pub fn bytes(&self) -> &[u8] {
        match (&self.now, &self.last) {
            (Some(record), _) => &record.bytes,
            (None, Some(last)) => last,
            (None, None) => &[],
        }
    }

    /// Whether the record was deleted.
    pub fn is_delete(&self) -> bool {
        self.now.is_none()
    }
}

impl<M> fmt::Debug for Event<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("revision", &self.revision)
            .field("key", &format_args!("{}", self.key))
            .field("prev", &self.prev.as_ref().map(|record| record.revision))
            .field("deleted", &self.is_delete())
            .finish_non_exhaustive()
    }
}
