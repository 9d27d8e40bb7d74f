//! Who read what: so that a key comes back when an object that its last reconcile looked at changes.
//!
//! It remembers names and selections, not contents, and only those of a key's latest reconcile.
//! Invariant: a dependency is recorded before the cache is read, so a change after the read is never missed.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeostat_model::selector::Labels;

use crate::key::Key;

/// A kind: by its type, or, where the type fits many, by its path as well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KindId(TypeId, Option<Arc<str>>);

impl KindId {
    /// The kind that `T` is.
    pub(crate) fn of<T: 'static>() -> Self {
        Self(TypeId::of::<T>(), None)
    }

    /// A kind known at run time.
    pub(crate) fn at<T: 'static>(path: &str) -> Self {
        Self(TypeId::of::<T>(), Some(path.into()))
    }
}

/// A set of objects that was listed.
#[derive(Clone)]
struct Listed {
    namespace: Option<Arc<str>>,
    labels: Option<Labels>,
}

#[derive(Default)]
struct Kind {
    /// Object -> the keys that read it.
    by_name: BTreeMap<Key, BTreeSet<Key>>,
    /// The keys that listed, with what.
    lists: BTreeMap<Key, Vec<Listed>>,
    /// Key -> the objects it read in its present or latest reconcile.
    names: BTreeMap<Key, BTreeSet<Key>>,
}

/// What the keys of one operator depend on.
#[derive(Default)]
pub(crate) struct Dependencies {
    kinds: Mutex<BTreeMap<KindId, Kind>>,
}

/// What one reconcile has read so far.
#[derive(Default)]
pub(crate) struct Reads {
    names: Mutex<BTreeMap<KindId, BTreeSet<Key>>>,
    lists: Mutex<BTreeMap<KindId, Vec<Listed>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Dependencies {
    /// `reader` is about to read the object of this kind and key.
    pub(crate) fn read(&self, id: KindId, reads: &Reads, reader: &Key, key: &Key) {
        lock(&reads.names).entry(id.clone()).or_default().insert(key.clone());
        let mut kinds = lock(&self.kinds);
        let kind = kinds.entry(id).or_default();
        kind.by_name.entry(key.clone()).or_default().insert(reader.clone());
        kind.names.entry(reader.clone()).or_default().insert(key.clone());
    }

    /// `reader` is about to list.
    pub(crate) fn listed(
        &self,
        id: KindId,
        reads: &Reads,
        reader: &Key,
        namespace: Option<&str>,
        labels: Option<&Labels>,
    ) {
        let listed = Listed { namespace: namespace.map(Arc::from), labels: labels.cloned() };
        lock(&reads.lists).entry(id.clone()).or_default().push(listed.clone());
        lock(&self.kinds).entry(id).or_default().lists.entry(reader.clone()).or_default().push(listed);
    }

    /// The reconcile of `reader` is over: what it read this time is what it depends on.
    pub(crate) fn settle(&self, reads: Reads, reader: &Key) {
        let names = reads.names.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut lists = reads.lists.into_inner().unwrap_or_else(PoisonError::into_inner);
        let none = BTreeSet::new();
        for (id, kind) in lock(&self.kinds).iter_mut() {
            let now = names.get(id).unwrap_or(&none);
            if let Some(before) = kind.names.get_mut(reader) {
                let gone: Vec<Key> = before.difference(now).cloned().collect();
                for key in gone {
                    before.remove(&key);
                    if let Some(readers) = kind.by_name.get_mut(&key) {
                        readers.remove(reader);
                        if readers.is_empty() {
                            kind.by_name.remove(&key);
                        }
                    }
                }
                if before.is_empty() {
                    kind.names.remove(reader);
                }
            }
            match lists.remove(id) {
                Some(listed) => {
                    kind.lists.insert(reader.clone(), listed);
                }
                None => {
                    kind.lists.remove(reader);
                }
            }
        }
    }

    /// The keys that depend on the object of this kind and key, which changed. `labelled` says whether labels match it
    /// as it was or as it is.
    pub(crate) fn of(&self, id: &KindId, key: &Key, labelled: &dyn Fn(&Labels) -> bool) -> Vec<Key> {
        let kinds = lock(&self.kinds);
        let Some(kind) = kinds.get(id) else { return Vec::new() };
        let mut keys = kind.by_name.get(key).cloned().unwrap_or_default();
        for (reader, lists) in &kind.lists {
            let concerns = |l: &Listed| {
                l.namespace.as_deref().is_none_or(|ns| key.namespace() == Some(ns))
                    && l.labels.as_ref().is_none_or(labelled)
            };
            if lists.iter().any(concerns) {
                keys.insert(reader.clone());
            }
        }
        keys.into_iter().collect()
    }
}
