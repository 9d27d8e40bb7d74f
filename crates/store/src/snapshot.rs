//! A state of the whole store at one revision: a persistent map of collections, each a persistent map from names
//! to shared records (imbl's B-trees, 16 entries a node). Cloning is O(1); a commit copies only the nodes on its
//! path, and only those that a snapshot still shares. Invariant: no collection in it is empty.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use crate::record::{Event, Key, Record, Revision};

type Records<M> = OrdMap<Arc<str>, Arc<Record<M>>>;

/// An unchanging view of all records at one revision.
pub struct Snapshot<M> {
    collections: OrdMap<Arc<str>, Records<M>>,
    revision: Revision,
}

impl<M> Snapshot<M> {
    pub(crate) fn empty(revision: Revision) -> Self {
        Self { collections: OrdMap::new(), revision }
    }

    /// The newest commit that this view contains.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The record under this name.
    pub fn get(&self, collection: &str, name: &str) -> Option<&Arc<Record<M>>> {
        self.collections.get(collection)?.get(name)
    }

    /// How many records the collection has. O(1).
    pub fn len(&self, collection: &str) -> usize {
        self.collections.get(collection).map_or(0, OrdMap::len)
    }

    /// Whether the collection has no records.
    pub fn is_empty(&self, collection: &str) -> bool {
        self.len(collection) == 0
    }

    /// The collections that have records, in order of their names.
    pub fn collections(&self) -> impl Iterator<Item = &Arc<str>> {
        self.collections.keys()
    }

    /// The records of a collection whose names begin with `prefix` and lie after `start_after`, in order of names.
    pub fn range<'a>(&'a self, collection: &str, prefix: &'a str, start_after: Option<&str>) -> Range<'a, M> {
        let records = self.collections.get(collection).map(|records| range(records, prefix, start_after));
        Range { records, prefix }
    }

    /// How many records [`Snapshot::range`] gives. O(1) for a whole collection, else as long as walking them.
    pub fn count(&self, collection: &str, prefix: &str, start_after: Option<&str>) -> usize {
        if prefix.is_empty() && start_after.is_none() {
            return self.len(collection);
        }
        self.range(collection, prefix, start_after).count()
    }

    /// As [`Snapshot::range`], but owning what it walks: for answers that stream long after the request.
    pub fn listing(&self, collection: &str, prefix: &str, start_after: Option<&str>) -> Listing<M> {
        let records = self.collections.get(collection).cloned().unwrap_or_default();
        Listing {
            records,
            prefix: prefix.into(),
            after: start_after.map(Arc::from),
            chunk: Vec::new().into_iter(),
            done: false,
        }
    }

    /// Makes the view one of `revision`, in which `key` has this record or none.
    pub(crate) fn set(&mut self, revision: Revision, key: &Key, record: Option<Arc<Record<M>>>) {
        self.revision = revision;
        let records = self.collections.get_mut(&*key.collection);
        match (records, record) {
            (Some(records), Some(record)) => {
                records.insert(Arc::clone(&record.key.name), record);
            }
            (None, Some(record)) => {
                let records = OrdMap::unit(Arc::clone(&record.key.name), record);
                self.collections.insert(Arc::clone(&key.collection), records);
            }
            (Some(records), None) => {
                records.remove(&*key.name);
                if records.is_empty() {
                    self.collections.remove(&*key.collection);
                }
            }
            (None, None) => {}
        }
    }

    /// Makes the view one of `revision`, the event that followed undone.
    pub(crate) fn undo(&mut self, event: &Event<M>, revision: Revision) {
        self.set(revision, &event.key, event.prev.clone());
    }

    /// The store's own instance of a collection's name, so that its records share one.
    pub(crate) fn intern(&self, collection: &str) -> Option<Arc<str>> {
        self.collections.get_key_value(collection).map(|(name, _)| Arc::clone(name))
    }
}

impl<M> Clone for Snapshot<M> {
    fn clone(&self) -> Self {
        Self { collections: self.collections.clone(), revision: self.revision }
    }
}

impl<M> fmt::Debug for Snapshot<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.collections.iter().map(|(name, records)| (name, records.len()));
        write!(f, "Snapshot@{} ", self.revision)?;
        f.debug_map().entries(sizes).finish()
    }
}

type RecordsRange<'a, M> =
    imbl::ordmap::RangedIter<'a, Arc<str>, Arc<Record<M>>, imbl::shared_ptr::DefaultSharedPtr>;

fn range<'a, M>(records: &'a Records<M>, prefix: &str, start_after: Option<&str>) -> RecordsRange<'a, M> {
    let start = match start_after {
        Some(after) if after >= prefix => Bound::Excluded(after),
        _ => Bound::Included(prefix),
    };
    records.range::<_, str>((start, Bound::Unbounded))
}

/// Records in order of their names; from [`Snapshot::range`].
pub struct Range<'a, M> {
    records: Option<RecordsRange<'a, M>>,
    prefix: &'a str,
}

impl<'a, M> Iterator for Range<'a, M> {
    type Item = &'a Arc<Record<M>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (name, record) = self.records.as_mut()?.next()?;
        if name.starts_with(self.prefix) {
            return Some(record);
        }
        self.records = None;
        None
    }
}

/// How many records a [`Listing`] takes out of the map at a time.
const CHUNK: usize = 256;

/// Records in order of their names, without borrowing the snapshot; from [`Snapshot::listing`].
///
/// It keeps the collection as of its snapshot alive, so drop it when the reader is gone.
pub struct Listing<M> {
    records: Records<M>,
    prefix: Box<str>,
    after: Option<Arc<str>>,
    chunk: std::vec::IntoIter<Arc<Record<M>>>,
    done: bool,
}

impl<M> Iterator for Listing<M> {
    type Item = Arc<Record<M>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(record) = self.chunk.next() {
            return Some(record);
        }
        if self.done {
            return None;
        }
        let inner = range(&self.records, &self.prefix, self.after.as_deref());
        let rest = Range { records: Some(inner), prefix: &self.prefix };
        let chunk: Vec<_> = rest.take(CHUNK).cloned().collect();
        self.done = chunk.len() < CHUNK;
        self.after = chunk.last().map(|record| Arc::clone(&record.key.name));
        if self.done {
            self.records = OrdMap::new();
        }
        self.chunk = chunk.into_iter();
        self.chunk.next()
    }
}
