//! The caches of one client: one per kind and selection, made when first asked for.
//!
//! Whoever asks for the same kind, type and selection gets the same cache, so a process watches a kind once however
//! many operators need it. Caches live until the registry stops.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homeostat_model::Entropy;
use homeostat_model::selector::Labels;
use kube::Client;
use kube::core::PartialObjectMeta;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed::{Feed, Path, Sink};
use super::state::State;
use super::text::Text;
use super::{Cache, Inner as Objects, Intake, Transform, matches};
use crate::key::Key;
use crate::object::{Watched, display_resource};

/// How long a server should keep a watch open (kube's watcher asks for 290 s, client-go for five to ten minutes).
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(290);

/// Which objects of a kind a cache holds.
///
/// ```
/// use homeostat_sdk::Selection;
///
/// let mine = Selection::labels("app=redis").in_namespace("shop");
/// assert_eq!(mine.namespace.as_deref(), Some("shop"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A label selector as kubectl takes it, such as `app=redis`. Empty: all.
    pub labels: String,
    /// A field selector, such as `spec.nodeName=a`. Empty: all.
    pub fields: String,
    /// Only those of this namespace.
    pub namespace: Option<String>,
}

impl Selection {
    /// All objects of the kind.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those whose labels match.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: selector.into(), ..Self::default() }
    }

    /// Those whose fields match.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { fields: selector.into(), ..Self::default() }
    }

    /// Of these, those in a namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}

/// How much a cache holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// The resource, such as `redisclusters.cache.example.com`.
    pub resource: String,
    /// Only metadata is kept.
    pub metadata: bool,
    /// Which objects it holds.
    pub selection: Selection,
    /// How many objects it holds.
    pub objects: u64,
    /// The bytes of JSON that they came in.
    pub json_bytes: u64,
}

struct Entry {
    r#type: TypeId,
    selection: Selection,
    dt: Arc<dyn Any + Send + Sync>,
    cache: Arc<dyn Any + Send + Sync>,
    objects: Arc<Objects>,
    resource: String,
    metadata: bool,
}

/// By type: a [`Transform`] of it. Looked up, never iterated.
type Transforms = BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// How caches that are made from now on keep their objects.
#[derive(Clone, Default)]
struct Keeping {
    transforms: Transforms,
    /// Types whose objects are kept as texts.
    compact: BTreeSet<TypeId>,
}

struct Inner {
    client: Client,
    entropy: Entropy,
    watch_timeout: Duration,
    entries: Mutex<Vec<Entry>>,
    keeping: Mutex<Keeping>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The caches of one client. Cheap to clone.
#[derive(Clone)]
pub struct Caches(Arc<Inner>);

impl std::fmt::Debug for Caches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caches").field("kinds", &self.entries().len()).finish_non_exhaustive()
    }
}

impl Caches {
    /// No caches yet, for this client.
    pub fn new(client: Client, entropy: Entropy) -> Self {
        Self::made(client, entropy, WATCH_TIMEOUT, Keeping::default())
    }

    fn made(client: Client, entropy: Entropy, watch_timeout: Duration, keeping: Keeping) -> Self {
        Self(Arc::new(Inner {
            client,
            entropy,
            watch_timeout,
            entries: Mutex::default(),
            keeping: Mutex::new(keeping),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }))
    }

    fn keeping(&self) -> std::sync::MutexGuard<'_, Keeping> {
        self.0.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None yet again, with the settings of these.
    pub(crate) fn anew(&self, client: Client, entropy: Entropy) -> Self {
        Self::made(client, entropy, self.0.watch_timeout, self.keeping().clone())
    }

    /// None yet again, with the settings of these, but watches of this length.
    pub(crate) fn with_watch_timeout(&self, timeout: Duration) -> Self {
        Self::made(self.0.client.clone(), self.0.entropy.clone(), timeout, self.keeping().clone())
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Caches of `K` that are made from now on keep their objects as `f` leaves them: without what nobody here reads.
    pub fn transform<K: Watched>(&self, f: impl Fn(&mut K) + Send + Sync + 'static) {
        let transform = Arc::new(Transform(Arc::new(f)));
        self.keeping().transforms.insert(TypeId::of::<K>(), transform);
    }

    /// Caches of `K` that are made from now on keep their objects as the text that they came in (without
    /// `managedFields`), and read it when somebody asks for one. See [`Manager::with_compact`](crate::Manager::with_compact).
    pub fn compact<K: Watched>(&self) {
        self.keeping().compact.insert(TypeId::of::<K>());
    }

    /// The cache of a kind known at compile time. Starts its watch where nobody asked before; must be called within
    /// a tokio runtime.
    pub fn get<K: Watched>(&self, selection: &Selection) -> Cache<K>
    where
        K::DynamicType: Default,
    {
        self.get_with(K::DynamicType::default(), selection)
    }

    /// The cache of a kind known at run time, such as `DynamicObject` with its `ApiResource`.
    pub fn get_with<K: Watched>(&self, dt: K::DynamicType, selection: &Selection) -> Cache<K> {
        self.open(dt, selection, false)
    }

    /// A cache of only the metadata of a kind's objects: nothing else is asked of the server, sent, or kept.
    ///
    /// ```no_run
    /// # use homeostat_sdk::{Caches, Selection};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn example(caches: Caches) {
    /// let pods = caches.metadata::<Pod>((), &Selection::all());
    /// let labels = pods.list().iter().map(|pod| pod.metadata.labels.clone()).collect::<Vec<_>>();
    /// # }
    /// ```
    pub fn metadata<K: Watched>(
        &self,
        dt: K::DynamicType,
        selection: &Selection,
    ) -> Cache<PartialObjectMeta<K>> {
        self.open::<PartialObjectMeta<K>>(dt, selection, true)
    }

    fn open<K: Watched>(&self, dt: K::DynamicType, selection: &Selection, metadata: bool) -> Cache<K> {
        let mut entries = self.entries();
        let found = entries.iter().filter(|e| e.selection == *selection).find_map(|e| e.cache_of::<K>(&dt));
        if let Some(cache) = found {
            return cache;
        }
        let transform = self.keeping().transforms.get(&TypeId::of::<K>()).cloned();
        let selective = *selection != Selection::all();
        // What a transform leaves out should not be kept in the text either.
        let compact =
            transform.is_none() && (metadata || self.keeping().compact.contains(&TypeId::of::<K>()));
        let cache = match compact {
            true => Cache::<K>::compact(selective, metadata),
            false => Cache::<K>::with(State::new(selective), transform, metadata),
        };
        let what = display_resource::<K>(&dt);
        entries.push(Entry {
            r#type: TypeId::of::<K>(),
            selection: selection.clone(),
            dt: Arc::new(dt.clone()),
            cache: Arc::new(cache.clone()),
            objects: cache.inner.clone(),
            resource: what.clone(),
            metadata,
        });
        drop(entries);
        let objects = cache.inner.clone();
        let reader = cache.clone();
        let read = Box::new(move |text: &Text<'_>| reader.read(text));
        let path: Path = Box::new(move |namespace: Option<&str>| K::url_path(&dt, namespace));
        let sink = Box::new(Intake { cache: objects, read });
        let feed = self.feed(self.0.client.clone(), sink, path, what, selection.clone(), metadata);
        self.0.tasks.spawn(feed.run());
        cache
    }

    /// A feed that isn't running yet, with the settings of these caches; it ends with them.
    pub(crate) fn feed(
        &self,
        client: Client,
        sink: Box<dyn Sink>,
        path: Path,
        what: String,
        selection: Selection,
        metadata: bool,
    ) -> Feed {
        Feed {
            client,
            sink,
            path,
            what,
            selection,
            metadata,
            watch_timeout: self.0.watch_timeout,
            entropy: self.0.entropy.clone(),
            stop: self.0.stop.clone(),
        }
    }

    /// Puts an object that was just written, and its text, into the caches that hold such.
    pub(crate) fn wrote<K: Watched>(&self, dt: &K::DynamicType, object: &K, text: &Text<'_>) {
        for (cache, selection) in self.of::<K>(dt) {
            let belongs = selection.fields.is_empty()
                && selection
                    .namespace
                    .as_deref()
                    .is_none_or(|ns| object.meta().namespace.as_deref() == Some(ns))
                && (selection.labels.is_empty()
                    || Labels::parse(&selection.labels).is_ok_and(|l| matches(&l, object)));
            if belongs || cache.has(&Key::of(object)) {
                cache.wrote_as(object.clone(), text);
            }
        }
    }

    /// Takes an object that was just deleted out of the caches that hold it.
    pub(crate) fn deleted<K: Watched>(&self, dt: &K::DynamicType, key: &Key, uid: Option<&str>) {
        for (cache, _) in self.of::<K>(dt) {
            cache.deleted(key, uid);
        }
    }

    fn of<K: Watched>(&self, dt: &K::DynamicType) -> Vec<(Cache<K>, Selection)> {
        let entries = self.entries();
        entries.iter().filter_map(|e| Some((e.cache_of::<K>(dt)?, e.selection.clone()))).collect()
    }

    /// Whether every cache that was asked for has its first list.
    pub fn are_synced(&self) -> bool {
        self.entries().iter().all(|e| e.objects.synced.initialized())
    }

    /// How much each cache holds, in the order in which they were made.
    pub fn sizes(&self) -> Vec<CacheSize> {
        let size = |e: &Entry| {
            let state = e.objects.read();
            CacheSize {
                resource: e.resource.clone(),
                metadata: e.metadata,
                selection: e.selection.clone(),
                objects: state.objects.len() as u64,
                json_bytes: state.bytes,
            }
        };
        self.entries().iter().map(size).collect()
    }

    /// Ends all watches and waits for that.
    pub async fn stop(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl Entry {
    fn cache_of<K: Watched>(&self, dt: &K::DynamicType) -> Option<Cache<K>> {
        if self.r#type != TypeId::of::<K>() || self.dt.downcast_ref::<K::DynamicType>() != Some(dt) {
            return None;
        }
        self.cache.downcast_ref::<Cache<K>>().cloned()
    }
}
