//! Objects of one kind as the API server last told: a cache fed by one watch, shared by whoever needs the kind.
//!
//! A cache lists in the order of keys, answers "whose owner is this uid" and whatever else is indexed, tells
//! subscribers what changed, and knows its own process' writes: what was written through the SDK is here when the
//! write returns, and an older event doesn't take it back. It is not a source of truth: others' writes arrive when
//! the watch delivers them.
//! Cached objects carry no `managedFields`.
//! Invariant: for one incarnation (uid) of an object, the cache never goes back to an older resourceVersion.

mod feed;
mod registry;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use homeostat_model::selector::Labels;
use tokio::sync::watch;

pub use registry::{Caches, Selection};
use state::State;

use crate::key::Key;
use crate::object::Watched;

/// What happened to one object.
#[derive(Clone, Debug)]
pub struct Change<K> {
    /// What the cache had before; `None` where the object is new.
    pub old: Option<Arc<K>>,
    /// What it has now; `None` where the object is gone.
    pub new: Option<Arc<K>>,
    /// It comes from a list rather than from a change that just happened.
    pub listed: bool,
}

impl<K: Watched> Change<K> {
    /// The object: as it is, or as it was last where it is gone.
    pub fn object(&self) -> Option<&Arc<K>> {
        self.new.as_ref().or(self.old.as_ref())
    }

    /// Its key.
    pub fn key(&self) -> Option<Key> {
        self.object().map(|o| Key::of(&**o))
    }

    /// Old and new, those that are there.
    pub fn each(&self) -> impl Iterator<Item = &Arc<K>> {
        self.old.iter().chain(self.new.iter())
    }

    /// Whether `f` gives something else for the old and the new object. True where one is missing.
    pub fn differs<T: PartialEq>(&self, f: impl Fn(&K) -> T) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => f(old) != f(new),
            _ => true,
        }
    }
}

type Subscriber<K> = Arc<dyn Fn(&Change<K>) + Send + Sync>;

struct Inner<K> {
    state: RwLock<State<K>>,
    /// Separate from the state: subscribers are called without its lock, and may read the cache.
    subscribers: RwLock<Vec<Subscriber<K>>>,
    synced: watch::Sender<bool>,
}

/// Objects of one kind. Cheap to clone; all clones are the same cache.
pub struct Cache<K>(Arc<Inner<K>>);

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("kind", &std::any::type_name::<K>()).finish_non_exhaustive()
    }
}

/// A way to find objects of a cache by a value in them: see [`Cache::index`].
#[derive(Debug)]
pub struct Index<K> {
    cache: Cache<K>,
    at: usize,
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), at: self.at }
    }
}

impl<K: Watched> Index<K> {
    /// The objects with `value`, in the order of their keys.
    pub fn get(&self, value: &str) -> Vec<Arc<K>> {
        self.cache.read().indexed(self.at, value)
    }
}

impl<K: Watched> Default for Cache<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Watched> Cache<K> {
    /// An empty cache that nothing feeds yet. [`Caches`] makes fed ones.
    pub fn new() -> Self {
        Self::with(false)
    }

    /// `selective`: not all objects of the kind will be here.
    fn with(selective: bool) -> Self {
        Self(Arc::new(Inner {
            state: RwLock::new(State::new(selective)),
            subscribers: RwLock::default(),
            synced: watch::Sender::new(false),
        }))
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.0.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of this key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    /// All objects, in the order of their keys.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    /// All objects of a namespace, in the order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.read().range(Some(namespace)).map(|(_, o)| o.clone()).collect()
    }

    /// The objects whose labels match; `namespace: None` means all namespaces.
    pub fn select(&self, namespace: Option<&str>, labels: &Labels) -> Vec<Arc<K>> {
        let state = self.read();
        state.range(namespace).filter(|(_, o)| matches(labels, &***o)).map(|(_, o)| o.clone()).collect()
    }

    /// The objects whose controlling owner is `uid`.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let mut owned = self.dependents_of(uid);
        owned.retain(|o| {
            o.meta().owner_references.iter().flatten().any(|r| r.uid == uid && r.controller == Some(true))
        });
        owned
    }

    /// The objects that name `uid` as an owner, controlling or not.
    pub fn dependents_of(&self, uid: &str) -> Vec<Arc<K>> {
        self.read().indexed(state::OWNERS, uid)
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<Key> {
        self.read().objects.keys().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds objects by the values that `f` gives for them, such as a pod's node.
    pub fn index(&self, f: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Index<K> {
        Index { cache: self.clone(), at: self.write().add_index(Arc::new(f)) }
    }

    /// Whether the first list has arrived.
    pub fn is_synced(&self) -> bool {
        *self.0.synced.borrow()
    }

    /// Waits for the first list.
    pub async fn synced(&self) {
        // The sender lives as long as this cache, so the wait can't fail.
        let _ = self.0.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// Calls `f` for every change from now on, and first, as listed, for everything that is there already.
    ///
    /// It is called without locks and may read any cache; it must not block.
    pub fn subscribe(&self, f: impl Fn(&Change<K>) + Send + Sync + 'static) {
        // Subscribed before the replay: a change in between is told twice rather than not at all.
        let f: Subscriber<K> = Arc::new(f);
        self.0.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(f.clone());
        for object in self.list() {
            f(&Change { old: None, new: Some(object), listed: true });
        }
    }

    /// Takes in an object that this process just wrote, as the API server answered.
    pub fn wrote(&self, object: K) {
        let change = self.write().wrote(object);
        self.tell(change);
    }

    /// Takes in that this process just deleted an object, and that it is gone.
    pub fn deleted(&self, key: &Key, uid: Option<&str>) {
        let change = self.write().deleted(key, uid);
        self.tell(change);
    }

    fn tell(&self, changes: impl IntoIterator<Item = Change<K>>) {
        let subscribers = self.0.subscribers.read().unwrap_or_else(PoisonError::into_inner).clone();
        for change in changes {
            for f in &subscribers {
                f(&change);
            }
        }
    }
}

/// Whether an object's labels match.
pub(crate) fn matches<K: kube::Resource>(labels: &Labels, object: &K) -> bool {
    let have = object.meta().labels.as_ref();
    labels.matches(|key| have.and_then(|l| l.get(key)).map(String::as_str))
}
