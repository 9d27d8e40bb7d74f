//! The inside of a cache: objects, indexes, and what is known of this process' own writes.
//!
//! Pure and synchronous: events and writes go in, changes come out. The rules for what may replace what are here and
//! nowhere else.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::core::ObjectMeta;

use super::held::Held;
use super::packed::{Packed, Pool, Unpack};
use crate::key::Key;
use crate::object::revision;

/// The index of owners' uids, which every cache has.
pub(super) const OWNERS: usize = 0;

type Extract = Arc<dyn Fn(&dyn Held) -> Vec<String> + Send + Sync>;

struct IndexState {
    extract: Extract,
    values: BTreeMap<String, BTreeSet<Key>>,
}

/// An object that comes in.
pub(super) struct Item {
    pub(super) object: Arc<dyn Held>,
    /// How many bytes of JSON it was told in; 0 where that isn't known.
    pub(super) size: u32,
    /// Its text, where the cache keeps that.
    pub(super) text: Option<Packed>,
}

/// An object as it is kept.
enum Kept {
    Object(Arc<dyn Held>),
    Text(Packed),
}

pub(super) struct Entry {
    kept: Kept,
    size: u32,
}

impl Entry {
    pub(super) fn metadata(&self) -> Cow<'_, ObjectMeta> {
        match &self.kept {
            Kept::Object(object) => Cow::Borrowed(object.metadata()),
            Kept::Text(text) => Cow::Owned(text.metadata()),
        }
    }
}

/// What happened to one object.
pub(super) struct Change {
    pub(super) old: Option<Arc<dyn Held>>,
    pub(super) new: Option<Arc<dyn Held>>,
    pub(super) listed: bool,
}

/// What a watch tells.
pub(super) enum Event {
    /// A list begins.
    Init,
    /// An object of the list.
    InitApply(Item),
    /// The list is complete.
    InitDone,
    /// An object is new or changed.
    Apply(Item),
}

pub(super) struct State {
    pub(super) objects: BTreeMap<Key, Entry>,
    /// How kept texts are read; `None` where objects are kept as they are.
    unpack: Option<Unpack>,
    /// Objects of kept texts.
    pool: Mutex<Pool>,
    /// JSON bytes of all objects.
    pub(super) bytes: u64,
    indexes: Vec<IndexState>,
    /// A list in progress. `None`: there is such an object, but it can't be read.
    listing: Option<BTreeMap<Key, Option<Item>>>,
    /// Own writes that the watch hasn't delivered. `true`: written while the list in progress was, so that it says
    /// nothing about them.
    unconfirmed: BTreeMap<Key, bool>,
    /// Incarnations that are gone, of which older events, or answers to own writes, may still arrive.
    gone: Gone,
    /// Only some objects of the kind are here: one that leaves the selection is told as deleted, and may come back.
    selective: bool,
    /// One copy of each namespace's name.
    namespaces: BTreeSet<Arc<str>>,
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

    fn has(&self, meta: &ObjectMeta) -> bool {
        let upto = meta.uid.as_ref().and_then(|uid| self.upto.get(uid));
        upto.is_some_and(|upto| revision(meta).map_or(*upto == Self::FOR_EVER, |v| v <= *upto))
    }
}

/// Namespaces whose names are kept once. More than any cluster has; beyond it, names are kept per object.
const MOST_NAMESPACES: usize = 100_000;

impl State {
    pub(super) fn new(selective: bool) -> Self {
        Self::keeping(selective, None)
    }

    /// With `unpack`, objects are kept as texts.
    pub(super) fn keeping(selective: bool, unpack: Option<Unpack>) -> Self {
        let owners: Extract =
            Arc::new(|o| o.metadata().owner_references.iter().flatten().map(|r| r.uid.clone()).collect());
        Self {
            objects: BTreeMap::new(),
            unpack,
            pool: Mutex::default(),
            bytes: 0,
            indexes: vec![IndexState { extract: owners, values: BTreeMap::new() }],
            listing: None,
            unconfirmed: BTreeMap::new(),
            gone: Gone::default(),
            selective,
            namespaces: BTreeSet::new(),
        }
    }

    /// Whether objects are kept as texts.
    pub(super) fn packs(&self) -> bool {
        self.unpack.is_some()
    }

    pub(super) fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of a key.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<dyn Held>> {
        let text = match &self.objects.get(key)?.kept {
            Kept::Object(object) => return Some(object.clone()),
            Kept::Text(text) => text,
        };
        if let Some(object) = self.pool().get(key) {
            return Some(object);
        }
        let object = self.unpack.as_ref()?(text.text())?;
        self.pool().insert(key.clone(), object.clone(), Pool::room(self.objects.len()));
        Some(object)
    }

    /// The object of an entry, for those who look at very many of them.
    pub(super) fn object(&self, key: &Key, entry: &Entry) -> Option<Arc<dyn Held>> {
        match &entry.kept {
            Kept::Object(object) => Some(object.clone()),
            Kept::Text(text) => {
                let object = self.pool().peek(key);
                object.or_else(|| self.unpack.as_ref()?(text.text()))
            }
        }
    }

    pub(super) fn add_index(&mut self, extract: Extract) -> usize {
        let mut index = IndexState { extract, values: BTreeMap::new() };
        for (key, entry) in &self.objects {
            if let Some(object) = self.object(key, entry) {
                index.add(key, &*object);
            }
        }
        self.indexes.push(index);
        self.indexes.len() - 1
    }

    pub(super) fn indexed(&self, at: usize, value: &str) -> Vec<Arc<dyn Held>> {
        let keys = self.indexes.get(at).and_then(|i| i.values.get(value));
        keys.into_iter().flatten().filter_map(|k| self.get(k)).collect()
    }

    /// The entries of a namespace, or all.
    pub(super) fn range<'a>(
        &'a self,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = (&'a Key, &'a Entry)> + use<'a> {
        let ns: Option<Arc<str>> = namespace.map(Arc::from);
        let start = match &ns {
            Some(ns) => Bound::Included(Key { namespace: Some(ns.clone()), name: "".into() }),
            None => Bound::Unbounded,
        };
        self.objects
            .range((start, Bound::Unbounded))
            .take_while(move |(k, _)| ns.is_none() || k.namespace == ns)
    }

    /// The key of an object, its namespace's name shared with all others.
    fn key(&mut self, meta: &ObjectMeta) -> Key {
        let mut key = key_of(meta);
        if let Some(namespace) = &key.namespace {
            match self.namespaces.get(namespace) {
                Some(kept) => key.namespace = Some(kept.clone()),
                None if self.namespaces.len() < MOST_NAMESPACES => {
                    self.namespaces.insert(namespace.clone());
                }
                None => {}
            }
        }
        key
    }

    /// What changed, and the keys of own writes that the list leaves in doubt: whoever feeds must ask for them.
    pub(super) fn event(&mut self, event: Event) -> (Vec<Change>, Vec<Key>) {
        match event {
            Event::Apply(item) => (self.apply(item).into_iter().collect(), Vec::new()),
            Event::Init => {
                self.listing = Some(BTreeMap::new());
                // What was written before the list request is either in the list or deleted.
                self.unconfirmed.values_mut().for_each(|during| *during = false);
                (Vec::new(), Vec::new())
            }
            Event::InitApply(item) => {
                let key = self.key(item.object.metadata());
                self.listing.get_or_insert_default().insert(key, Some(item));
                (Vec::new(), Vec::new())
            }
            Event::InitDone => self.listed(),
        }
    }

    fn apply(&mut self, item: Item) -> Option<Change> {
        if self.knows(item.object.metadata()) {
            return None;
        }
        let key = self.key(item.object.metadata());
        self.unconfirmed.remove(&key);
        Some(self.put(key, item, false))
    }

    /// Whether an event about an object brings nothing: the object is here as it tells, or as it became later. It
    /// confirms an own write.
    pub(super) fn knows(&mut self, meta: &ObjectMeta) -> bool {
        if self.gone.has(meta) {
            return true;
        }
        let key = key_of(meta);
        let newer = self.objects.get(&key).map_or(Newer::Yes, |has| newer(&has.metadata(), meta));
        if newer == Newer::Same {
            self.unconfirmed.remove(&key);
        }
        newer != Newer::Yes
    }

    pub(super) fn delete(&mut self, meta: &ObjectMeta) -> Option<Change> {
        let key = key_of(meta);
        let upto = self.upto(meta);
        self.gone.add(meta.uid.as_ref(), upto);
        let has = self.objects.get(&key)?.metadata();
        // A later incarnation that this process made: the event is about the one before.
        if has.uid != meta.uid && revision(&has) > revision(meta) {
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
        if let Some(list) = &mut self.listing {
            list.insert(key.clone(), None);
        }
    }

    fn listed(&mut self) -> (Vec<Change>, Vec<Key>) {
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
                    let meta = has.metadata().into_owned();
                    let upto = self.upto(&meta);
                    self.gone.add(meta.uid.as_ref(), upto);
                }
                changes.extend(self.take(&key, true));
            }
        }
        for (key, item) in list {
            let Some(item) = item else { continue };
            let meta = item.object.metadata();
            if self.gone.has(meta) {
                continue;
            }
            if self.objects.get(&key).is_none_or(|has| newer(&has.metadata(), meta) == Newer::Yes) {
                self.unconfirmed.remove(&key);
                changes.push(self.put(key, item, true));
            }
        }
        (changes, doubtful)
    }

    pub(super) fn wrote(&mut self, item: Item) -> Option<Change> {
        let meta = item.object.metadata();
        let key = self.key(meta);
        if self.gone.has(meta) {
            return None;
        }
        if self.objects.get(&key).is_some_and(|has| newer(&has.metadata(), meta) != Newer::Yes) {
            return None;
        }
        self.unconfirmed.insert(key.clone(), self.listing.is_some());
        Some(self.put(key, item, false))
    }

    pub(super) fn deleted(&mut self, key: &Key, uid: Option<&str>) -> Option<Change> {
        let has = self.objects.get(key)?.metadata().uid.clone();
        if uid.is_some_and(|uid| has.as_deref() != Some(uid)) {
            return None;
        }
        self.gone.add(has.as_ref(), Gone::FOR_EVER);
        self.unconfirmed.remove(key);
        self.take(key, false)
    }

    fn put(&mut self, key: Key, item: Item, listed: bool) -> Change {
        let Item { object: new, size, text } = item;
        let old = self.get(&key);
        let kept = match text.filter(|_| self.packs()) {
            Some(text) => {
                let room = Pool::room(self.objects.len());
                self.pool().insert(key.clone(), new.clone(), room);
                Kept::Text(text)
            }
            None => Kept::Object(new.clone()),
        };
        self.bytes += u64::from(size);
        let before = self.objects.insert(key.clone(), Entry { kept, size });
        self.bytes -= before.map_or(0, |e| u64::from(e.size));
        for index in &mut self.indexes {
            if let Some(old) = &old {
                index.remove(&key, &**old);
            }
            index.add(&key, &*new);
        }
        Change { old, new: Some(new), listed }
    }

    fn take(&mut self, key: &Key, listed: bool) -> Option<Change> {
        let old = self.get(key);
        self.pool().remove(key);
        self.bytes -= self.objects.remove(key).map_or(0, |e| u64::from(e.size));
        let old = old?;
        for index in &mut self.indexes {
            index.remove(key, &*old);
        }
        Some(Change { old: Some(old), new: None, listed })
    }
}

impl IndexState {
    fn add(&mut self, key: &Key, object: &dyn Held) {
        for value in (self.extract)(object) {
            self.values.entry(value).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &Key, object: &dyn Held) {
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

fn key_of(meta: &ObjectMeta) -> Key {
    Key::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
}

#[derive(PartialEq)]
enum Newer {
    Yes,
    Same,
    No,
}

/// Whether `object` is newer than what the cache `has` under its key. Versions that are no numbers only tell the
/// same from another, which then counts as newer.
fn newer(has: &ObjectMeta, object: &ObjectMeta) -> Newer {
    match (revision(has), revision(object)) {
        (Some(a), Some(b)) => match b.cmp(&a) {
            std::cmp::Ordering::Greater => Newer::Yes,
            std::cmp::Ordering::Equal => Newer::Same,
            std::cmp::Ordering::Less => Newer::No,
        },
        _ if has.resource_version == object.resource_version => Newer::Same,
        _ => Newer::Yes,
    }
}
