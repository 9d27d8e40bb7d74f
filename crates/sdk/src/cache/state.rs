//! The inside of a cache: objects, indexes, and what is known of this process' own writes.
//!
//! Pure and synchronous: events and writes go in, changes come out. The rules for what may replace what are here and
//! nowhere else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use kube::core::ObjectMeta;
use kube::runtime::watcher::Event;

use super::Change;
use crate::key::Key;
use crate::object::{Watched, revision};

/// The index of owners' uids, which every cache has.
pub(super) const OWNERS: usize = 0;

type Extract<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

struct IndexState<K> {
    extract: Extract<K>,
    values: BTreeMap<String, BTreeSet<Key>>,
}

pub(super) struct State<K> {
    pub(super) objects: BTreeMap<Key, Arc<K>>,
    indexes: Vec<IndexState<K>>,
    /// A list in progress.
    listing: Option<BTreeMap<Key, Arc<K>>>,
    /// Own writes that the watch hasn't delivered. `true`: written while the list in progress was, so that it says
    /// nothing about them.
    unconfirmed: BTreeMap<Key, bool>,
    /// Incarnations that are gone, of which older events, or answers to own writes, may still arrive.
    gone: Gone,
    /// Only some objects of the kind are here: one that leaves the selection is told as deleted, and may come back.
    selective: bool,
}

/// Uids that are gone, the latest [`Gone::LIMIT`] of them, with the version up to which nothing of them counts.
#[derive(Default)]
struct Gone {
    upto: BTreeMap<String, u64>,
    order: VecDeque<String>,
}

impl Gone {
    /// More deletions than could happen between a request and its answer.
    const LIMIT: usize = 4096;
    /// A deleted uid never comes back.
    const FOR_EVER: u64 = u64::MAX;

    fn add(&mut self, uid: Option<&String>, upto: u64) {
        let Some(uid) = uid else { return };
        if self.upto.insert(uid.clone(), upto).is_none() {
            self.order.push_back(uid.clone());
            if self.order.len() > Self::LIMIT
                && let Some(oldest) = self.order.pop_front()
            {
                self.upto.remove(&oldest);
            }
        }
    }

    fn has<K: Watched>(&self, object: &K) -> bool {
        let upto = object.meta().uid.as_ref().and_then(|uid| self.upto.get(uid));
        upto.is_some_and(|upto| revision(object.meta()).map_or(*upto == Self::FOR_EVER, |v| v <= *upto))
    }
}

impl<K: Watched> State<K> {
    pub(super) fn new(selective: bool) -> Self {
        let owners: Extract<K> =
            Arc::new(|o| o.meta().owner_references.iter().flatten().map(|r| r.uid.clone()).collect());
        Self {
            objects: BTreeMap::new(),
            indexes: vec![IndexState { extract: owners, values: BTreeMap::new() }],
            listing: None,
            unconfirmed: BTreeMap::new(),
            gone: Gone::default(),
            selective,
        }
    }

    pub(super) fn add_index(&mut self, extract: Extract<K>) -> usize {
        let mut index = IndexState { extract, values: BTreeMap::new() };
        for (key, object) in &self.objects {
            index.add(key, object);
        }
        self.indexes.push(index);
        self.indexes.len() - 1
    }

    pub(super) fn indexed(&self, at: usize, value: &str) -> Vec<Arc<K>> {
        let keys = self.indexes.get(at).and_then(|i| i.values.get(value));
        keys.into_iter().flatten().filter_map(|k| self.objects.get(k).cloned()).collect()
    }

    /// The objects of a namespace, or all.
    pub(super) fn range<'a>(
        &'a self,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<K>)> {
        let ns: Option<Arc<str>> = namespace.map(Arc::from);
        let start = match &ns {
            Some(ns) => Bound::Included(Key { namespace: Some(ns.clone()), name: "".into() }),
            None => Bound::Unbounded,
        };
        self.objects
            .range((start, Bound::Unbounded))
            .take_while(move |(k, _)| ns.is_none() || k.namespace == ns)
    }

    /// What changed, and the keys of own writes that the list leaves in doubt: whoever feeds must ask for them.
    pub(super) fn event(&mut self, event: Event<K>) -> (Vec<Change<K>>, Vec<Key>) {
        match event.modify(slim) {
            Event::Apply(object) => (self.apply(object).into_iter().collect(), Vec::new()),
            Event::Delete(object) => (self.delete(object.meta()).into_iter().collect(), Vec::new()),
            Event::Init => {
                self.listing = Some(BTreeMap::new());
                // What was written before the list request is either in the list or deleted.
                self.unconfirmed.values_mut().for_each(|during| *during = false);
                (Vec::new(), Vec::new())
            }
            Event::InitApply(object) => {
                let key = Key::of(&object);
                self.listing.get_or_insert_default().insert(key, Arc::new(object));
                (Vec::new(), Vec::new())
            }
            Event::InitDone => self.listed(),
        }
    }

    fn apply(&mut self, object: K) -> Option<Change<K>> {
        let key = Key::of(&object);
        if self.gone.has(&object) {
            return None;
        }
        if let Some(has) = self.objects.get(&key) {
            match newer(&**has, &object) {
                Newer::No => return None,
                Newer::Same => {
                    self.unconfirmed.remove(&key);
                    return None;
                }
                Newer::Yes => {}
            }
        }
        self.unconfirmed.remove(&key);
        Some(self.put(key, Arc::new(object), false))
    }

    pub(super) fn delete(&mut self, meta: &ObjectMeta) -> Option<Change<K>> {
        let key = Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
        let upto = self.upto(meta);
        self.gone.add(meta.uid.as_ref(), upto);
        let has = self.objects.get(&key)?;
        // A later incarnation that this process made: the event is about the one before.
        if has.meta().uid != meta.uid && revision(has.meta()) > revision(meta) {
            return None;
        }
        self.unconfirmed.remove(&key);
        self.take(&key, false)
    }

    /// What of an object that is no longer told of doesn't count.
    fn upto(&self, meta: &ObjectMeta) -> u64 {
        if self.selective { revision(meta).unwrap_or(0) } else { Gone::FOR_EVER }
    }

    /// There is an object of this key, but nobody can read it. Whoever was content with what it was is left so.
    pub(super) fn unreadable(&mut self, key: &Key) {
        if let (Some(list), Some(has)) = (&mut self.listing, self.objects.get(key)) {
            list.insert(key.clone(), has.clone());
        }
    }

    fn listed(&mut self) -> (Vec<Change<K>>, Vec<Key>) {
        let list = self.listing.take().unwrap_or_default();
        let mut doubtful = Vec::new();
        let mut changes = Vec::new();
        let gone: Vec<Key> = self.objects.keys().filter(|k| !list.contains_key(*k)).cloned().collect();
        for key in gone {
            if self.unconfirmed.get(&key) == Some(&true) {
                doubtful.push(key);
            } else {
                self.unconfirmed.remove(&key);
                if let Some(has) = self.objects.get(&key) {
                    let upto = self.upto(has.meta());
                    self.gone.add(has.meta().uid.as_ref(), upto);
                }
                changes.extend(self.take(&key, true));
            }
        }
        for (key, object) in list {
            if self.gone.has(&*object) {
                continue;
            }
            if self.objects.get(&key).is_none_or(|has| newer(&**has, &*object) == Newer::Yes) {
                self.unconfirmed.remove(&key);
                changes.push(self.put(key, object, true));
            }
        }
        (changes, doubtful)
    }

    pub(super) fn wrote(&mut self, mut object: K) -> Option<Change<K>> {
        slim(&mut object);
        let key = Key::of(&object);
        if self.gone.has(&object) {
            return None;
        }
        if self.objects.get(&key).is_some_and(|has| newer(&**has, &object) != Newer::Yes) {
            return None;
        }
        self.unconfirmed.insert(key.clone(), self.listing.is_some());
        Some(self.put(key, Arc::new(object), false))
    }

    pub(super) fn deleted(&mut self, key: &Key, uid: Option<&str>) -> Option<Change<K>> {
        let has = self.objects.get(key)?.meta().uid.clone();
        if uid.is_some_and(|uid| has.as_deref() != Some(uid)) {
            return None;
        }
        self.gone.add(has.as_ref(), Gone::FOR_EVER);
        self.unconfirmed.remove(key);
        self.take(key, false)
    }

    fn put(&mut self, key: Key, object: Arc<K>, listed: bool) -> Change<K> {
        let old = self.objects.insert(key.clone(), object.clone());
        for index in &mut self.indexes {
            if let Some(old) = &old {
                index.remove(&key, old);
            }
            index.add(&key, &object);
        }
        Change { old, new: Some(object), listed }
    }

    fn take(&mut self, key: &Key, listed: bool) -> Option<Change<K>> {
        let old = self.objects.remove(key)?;
        for index in &mut self.indexes {
            index.remove(key, &old);
        }
        Some(Change { old: Some(old), new: None, listed })
    }
}

impl<K> IndexState<K> {
    fn add(&mut self, key: &Key, object: &K) {
        for value in (self.extract)(object) {
            self.values.entry(value).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &Key, object: &K) {
        for value in (self.extract)(object) {
            if let Some(keys) = self.values.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.values.remove(&value);
                }
            }
        }
    }
}

/// Takes out `managedFields`, often a third of an object. A server takes their absence in an update for no change.
fn slim<K: Watched>(object: &mut K) {
    object.meta_mut().managed_fields = None;
}

#[derive(PartialEq)]
enum Newer {
    Yes,
    Same,
    No,
}

/// Whether `object` is newer than what the cache `has` under its key. Versions that are no numbers only tell the
/// same from another, which then counts as newer.
fn newer<K: Watched>(has: &K, object: &K) -> Newer {
    match (revision(has.meta()), revision(object.meta())) {
        (Some(a), Some(b)) => match b.cmp(&a) {
            std::cmp::Ordering::Greater => Newer::Yes,
            std::cmp::Ordering::Equal => Newer::Same,
            std::cmp::Ordering::Less => Newer::No,
        },
        _ if has.meta().resource_version == object.meta().resource_version => Newer::Same,
        _ => Newer::Yes,
    }
}
