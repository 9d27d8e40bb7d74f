//! Objects of one kind as the API server last told: a cache fed by one watch, shared by whoever needs the kind.
//!
//! A cache lists in the order of keys, answers "whose owner is this uid" and whatever else is indexed, tells
//! subscribers what changed, and knows its own process' writes: what was written through the SDK is here when the
//! write returns, and an older event doesn't take it back. It is not a source of truth: others' writes arrive when
//! the watch delivers them.
//! Cached objects carry no `managedFields`.
//! Invariant: for one incarnation (uid) of an object, the cache never goes back to an older resourceVersion.

pub(crate) mod feed;
mod held;
mod packed;
mod registry;
mod state;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use feed::Sink;
use held::{Held, typed, typed_ref};
use homeostat_model::selector::Labels;
use kube::core::ObjectMeta;
use tokio::sync::SetOnce;

use packed::Packed;
pub use registry::{CacheSize, Caches, Selection, WATCH_TIMEOUT};
use state::{Entry, Event, Item, State};
use text::Text;

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

type Subscriber = Arc<dyn Fn(&state::Change) + Send + Sync>;

/// Changes an object before a cache takes it in.
pub(crate) struct Transform<K>(pub(crate) Arc<dyn Fn(&mut K) + Send + Sync>);

struct Inner {
    state: RwLock<State>,
    /// Separate from the state: subscribers are called without its lock, and may read the cache.
    subscribers: RwLock<Vec<Subscriber>>,
    /// Set when the first list has arrived. (A watch channel would wake its waiters in an order of chance.)
    synced: SetOnce<()>,
    /// A [`Transform`] of the cache's type.
    transform: Option<Arc<dyn Any + Send + Sync>>,
    /// Only metadata is kept.
    metadata: bool,
}

/// Objects of one kind. Cheap to clone; all clones are the same cache.
pub struct Cache<K> {
    inner: Arc<Inner>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), kind: PhantomData }
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
        all(self.cache.inner.read().indexed(self.at, value))
    }
}

impl<K: Watched> Default for Cache<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, changes: impl IntoIterator<Item = state::Change>) {
        let subscribers = self.subscribers.read().unwrap_or_else(PoisonError::into_inner).clone();
        for change in changes {
            for f in &subscribers {
                f(&change);
            }
        }
    }

    fn deleted(&self, key: &Key, uid: Option<&str>) {
        let change = self.write().deleted(key, uid);
        self.tell(change);
    }

    fn wrote(&self, item: Item) {
        let change = self.write().wrote(item);
        self.tell(change);
    }
}

/// Reads an object as its cache's type, as the cache keeps it.
type Read = Box<dyn Fn(&Text<'_>) -> serde_json::Result<Item> + Send + Sync>;

/// A cache as where a feed's objects go.
struct Intake {
    cache: Arc<Inner>,
    read: Read,
}

impl Sink for Intake {
    fn begin(&self) {
        self.cache.write().event(Event::Init);
    }

    fn listed(&self, object: &Text<'_>) -> serde_json::Result<()> {
        let item = (self.read)(object)?;
        self.cache.write().event(Event::InitApply(item));
        Ok(())
    }

    fn complete(&self) -> Vec<Key> {
        let (changes, doubtful) = self.cache.write().event(Event::InitDone);
        self.cache.tell(changes);
        // Only the first list sets it.
        let _ = self.cache.synced.set(());
        doubtful
    }

    fn applied(&self, object: &Text<'_>) -> serde_json::Result<()> {
        // Most often an own write, which needn't be read again.
        if self.cache.write().knows(&object.identity()) {
            return Ok(());
        }
        let item = (self.read)(object)?;
        let (changes, _) = self.cache.write().event(Event::Apply(item));
        self.cache.tell(changes);
        Ok(())
    }

    fn deleted(&self, meta: &ObjectMeta) {
        let change = self.cache.write().delete(meta);
        self.cache.tell(change);
    }

    fn unreadable(&self, key: &Key) {
        self.cache.write().unreadable(key);
    }

    fn settled(&self, key: &Key, object: Option<&Text<'_>>) {
        match object.map(&self.read) {
            Some(Ok(item)) => self.cache.wrote(item),
            Some(Err(_)) => {}
            None => self.cache.deleted(key, None),
        }
    }
}

fn all<K: Watched>(objects: Vec<Arc<dyn Held>>) -> Vec<Arc<K>> {
    objects.iter().filter_map(typed).collect()
}

impl<K: Watched> Cache<K> {
    /// An empty cache that nothing feeds yet. [`Caches`] makes fed ones.
    pub fn new() -> Self {
        Self::with(State::new(false), None, false)
    }

    /// A cache whose objects are kept as texts, or only their metadata. `selective`: not all objects of the kind will be
    /// here.
    fn compact(selective: bool, metadata: bool) -> Self {
        let unpack = |text: &str| Some(Arc::new(serde_json::from_str::<K>(text).ok()?) as Arc<dyn Held>);
        Self::with(State::keeping(selective, Some(Arc::new(unpack))), None, metadata)
    }

    fn with(state: State, transform: Option<Arc<dyn Any + Send + Sync>>, metadata: bool) -> Self {
        let inner = Inner {
            state: RwLock::new(state),
            subscribers: RwLock::default(),
            synced: SetOnce::new(),
            transform,
            metadata,
        };
        Self { inner: Arc::new(inner), kind: PhantomData }
    }

    /// An object as this cache takes it in: without `managedFields`, and transformed.
    fn item(&self, mut object: K, size: usize, text: Option<Packed>) -> Item {
        object.meta_mut().managed_fields = None;
        let transform = self.inner.transform.as_ref().and_then(|t| t.downcast_ref::<Transform<K>>());
        if let Some(Transform(f)) = transform {
            f(&mut object);
        }
        Item { object: Arc::new(object), size: u32::try_from(size).unwrap_or(u32::MAX), text }
    }

    fn pack(&self, text: &Text<'_>) -> Option<Packed> {
        if self.inner.read().packs() { Packed::new(text.cut(), self.inner.metadata) } else { None }
    }

    /// Reads an object; of one of which less is kept than there is, what is kept.
    fn read(&self, text: &Text<'_>) -> serde_json::Result<Item> {
        let packed = self.pack(text);
        let object = match &packed {
            Some(packed) => serde_json::from_str(packed.text())?,
            None => text.read()?,
        };
        Ok(self.item(object, text.len(), packed))
    }

    /// The object of this key.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.inner.read().get(key).as_ref().and_then(typed)
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.inner.read().objects.contains_key(key)
    }

    /// All objects, in the order of their keys.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.all_of(None, |_| true)
    }

    /// All objects of a namespace, in the order of their names.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.all_of(Some(namespace), |_| true)
    }

    /// The objects whose labels match; `namespace: None` means all namespaces.
    pub fn select(&self, namespace: Option<&str>, labels: &Labels) -> Vec<Arc<K>> {
        self.all_of(namespace, |entry| labels.is_empty() || matches_meta(labels, &entry.metadata()))
    }

    fn all_of(&self, namespace: Option<&str>, wanted: impl Fn(&Entry) -> bool) -> Vec<Arc<K>> {
        let state = self.inner.read();
        let entries = state.range(namespace).filter(|(_, entry)| wanted(entry));
        entries.filter_map(|(key, entry)| typed(&state.object(key, entry)?)).collect()
    }

    /// The objects whose controlling owner is `uid`.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let mut owned = self.inner.read().indexed(state::OWNERS, uid);
        owned.retain(|o| {
            o.metadata().owner_references.iter().flatten().any(|r| r.uid == uid && r.controller == Some(true))
        });
        all(owned)
    }

    /// The objects that name `uid` as an owner, controlling or not.
    pub fn dependents_of(&self, uid: &str) -> Vec<Arc<K>> {
        all(self.inner.read().indexed(state::OWNERS, uid))
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<Key> {
        self.inner.read().objects.keys().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.inner.read().objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Finds objects by the values that `f` gives for them, such as a pod's node.
    ///
    /// ```
    /// # use homeostat_sdk::Cache;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// let pods: Cache<Pod> = Cache::new();
    /// let by_node = pods.index(|pod| pod.spec.iter().filter_map(|s| s.node_name.clone()).collect());
    /// assert!(by_node.get("node-1").is_empty());
    /// ```
    pub fn index(&self, f: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Index<K> {
        let extract = move |o: &dyn Held| typed_ref::<K>(o).map(&f).unwrap_or_default();
        Index { cache: self.clone(), at: self.inner.write().add_index(Arc::new(extract)) }
    }

    /// Whether the first list has arrived.
    pub fn is_synced(&self) -> bool {
        self.inner.synced.initialized()
    }

    /// Waits for the first list.
    pub async fn synced(&self) {
        self.inner.synced.wait().await;
    }

    /// Calls `f` for every change from now on, and first, as listed, for everything that is there already.
    ///
    /// It is called without locks and may read any cache; it must not block.
    pub fn subscribe(&self, f: impl Fn(&Change<K>) + Send + Sync + 'static) {
        // Subscribed before the replay: a change in between is told twice rather than not at all.
        let f = Arc::new(f);
        let told = f.clone();
        let subscriber: Subscriber = Arc::new(move |change| {
            told(&Change {
                old: change.old.as_ref().and_then(typed),
                new: change.new.as_ref().and_then(typed),
                listed: change.listed,
            });
        });
        self.inner.subscribers.write().unwrap_or_else(PoisonError::into_inner).push(subscriber);
        for object in self.list() {
            f(&Change { old: None, new: Some(object), listed: true });
        }
    }

    /// Takes in an object that this process just wrote, as the API server answered.
    pub fn wrote(&self, object: K) {
        self.inner.wrote(self.item(object, 0, None));
    }

    fn wrote_as(&self, object: K, text: &Text<'_>) {
        self.inner.wrote(self.item(object, text.len(), self.pack(text)));
    }

    /// Takes in that this process just deleted an object, and that it is gone.
    pub fn deleted(&self, key: &Key, uid: Option<&str>) {
        self.inner.deleted(key, uid);
    }
}

/// Whether an object's labels match.
pub(crate) fn matches<K: kube::Resource>(labels: &Labels, object: &K) -> bool {
    matches_meta(labels, object.meta())
}

fn matches_meta(labels: &Labels, meta: &ObjectMeta) -> bool {
    let have = meta.labels.as_ref();
    labels.matches(|key| have.and_then(|l| l.get(key)).map(String::as_str))
}
