//! The caches of one client: one per kind and selection, made when first asked for.
//!
//! Whoever asks for the same kind, type and selection gets the same cache, so a process watches a kind once however
//! many operators need it. Caches live until the registry stops.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, PoisonError};

use homeostat_model::Entropy;
use homeostat_model::selector::Labels;
use kube::Client;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::feed::Feed;
use super::{Cache, matches};
use crate::key::Key;
use crate::object::Watched;

/// Which objects of a kind a cache holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// A label selector as kubectl takes it, such as `app=redis`. Empty: all.
    pub labels: String,
    /// A field selector, such as `spec.nodeName=a`. Empty: all.
    pub fields: String,
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

    fn config(&self) -> watcher::Config {
        let mut config = watcher::Config::default();
        if !self.labels.is_empty() {
            config = config.labels(&self.labels);
        }
        if !self.fields.is_empty() {
            config = config.fields(&self.fields);
        }
        config
    }
}

struct Entry {
    r#type: TypeId,
    selection: Selection,
    dt: Arc<dyn Any + Send + Sync>,
    cache: Arc<dyn Any + Send + Sync>,
    synced: Box<dyn Fn() -> bool + Send + Sync>,
}

struct Inner {
    client: Client,
    entropy: Entropy,
    entries: Mutex<Vec<Entry>>,
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
        let stop = CancellationToken::new();
        Self(Arc::new(Inner { client, entropy, entries: Mutex::default(), tasks: TaskTracker::new(), stop }))
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut entries = self.entries();
        let found = entries.iter().filter(|e| e.selection == *selection).find_map(|e| e.cache_of::<K>(&dt));
        if let Some(cache) = found {
            return cache;
        }
        let cache = Cache::<K>::with(*selection != Selection::all());
        let synced = cache.clone();
        entries.push(Entry {
            r#type: TypeId::of::<K>(),
            selection: selection.clone(),
            dt: Arc::new(dt.clone()),
            cache: Arc::new(cache.clone()),
            synced: Box::new(move || synced.is_synced()),
        });
        drop(entries);
        let feed = Feed {
            client: self.0.client.clone(),
            dt,
            config: selection.config(),
            entropy: self.0.entropy.clone(),
            stop: self.0.stop.clone(),
        };
        self.0.tasks.spawn(feed.run(cache.clone()));
        cache
    }

    /// A cache of only the metadata of a kind's objects.
    pub fn metadata<K: Watched>(
        &self,
        dt: K::DynamicType,
        selection: &Selection,
    ) -> Cache<PartialObjectMeta<K>> {
        self.get_with::<PartialObjectMeta<K>>(dt, selection)
    }

    /// Puts an object that was just written into the caches that hold such.
    pub(crate) fn wrote<K: Watched>(&self, dt: &K::DynamicType, object: &K) {
        for (cache, selection) in self.of::<K>(dt) {
            let belongs = selection.fields.is_empty()
                && (selection.labels.is_empty()
                    || Labels::parse(&selection.labels).is_ok_and(|l| matches(&l, object)));
            if belongs || cache.get(&Key::of(object)).is_some() {
                cache.wrote(object.clone());
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
        self.entries().iter().all(|e| (e.synced)())
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
