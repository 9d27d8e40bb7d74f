//! What brings a key back, beyond what the types say.
//!
//! An operator's key comes back when its resource changes, when something it owns changes, and when something it read
//! in its last reconcile changes. Everything else is a mapping, from an object of a declared kind to keys.
//! Invariant: a mapping is called for the old and the new state, so a key that loses an object hears of it too.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};

use crate::cache::{Cache, Caches, Change, Selection};
use crate::key::Key;
use crate::kinds::{Has, Kinds, Sees, Visitor};
use crate::object::{Object, Watched};
use crate::operator::Operator;

/// The caches of an operator's kinds.
pub(crate) struct Handles {
    /// Looked up by type, never iterated.
    caches: BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>,
    /// In the order of declaration.
    synced: Vec<Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>>,
}

impl Handles {
    pub(crate) fn get<T: Object>(&self) -> Cache<T> {
        // Every declared kind has its cache, and the bounds admit no other; an unfed cache is what is left.
        self.caches
            .get(&TypeId::of::<T>())
            .and_then(|c| c.downcast_ref::<Cache<T>>())
            .cloned()
            .unwrap_or_default()
    }

    /// Waits until all have their first list.
    pub(crate) async fn synced(&self) {
        for synced in &self.synced {
            synced().await;
        }
    }
}

/// Makes the caches of all kinds of an operator.
pub(crate) struct Open<'a> {
    caches: &'a Caches,
    /// The only namespace that is looked at.
    namespace: Option<&'a str>,
    selections: &'a BTreeMap<TypeId, Selection>,
    pub(crate) handles: Handles,
}

impl<'a> Open<'a> {
    pub(crate) fn new<O: Operator>(
        caches: &'a Caches,
        namespace: Option<&'a str>,
        selections: &'a BTreeMap<TypeId, Selection>,
    ) -> Self {
        let handles = Handles { caches: BTreeMap::new(), synced: Vec::new() };
        let mut open = Self { caches, namespace, selections, handles };
        open.kind::<O::Resource>(false);
        O::Owns::visit(&mut open);
        O::Reads::visit(&mut open);
        open
    }
}

impl Visitor for Open<'_> {
    fn kind<T: Object>(&mut self, _edits: bool) {
        let id = TypeId::of::<T>();
        if self.handles.caches.contains_key(&id) {
            return;
        }
        let mut selection = self.selections.get(&id).cloned().unwrap_or_default();
        if let Some(namespace) = self.namespace.filter(|_| T::is_namespaced()) {
            selection.namespace.get_or_insert_with(|| namespace.to_owned());
        }
        let cache = self.caches.get::<T>(&selection);
        let synced = cache.clone();
        self.handles.synced.push(Box::new(move || {
            let cache = synced.clone();
            async move { cache.synced().await }.boxed()
        }));
        self.handles.caches.insert(id, Arc::new(cache));
    }
}

/// The caches of an operator's kinds, for mappings.
pub struct View<O> {
    pub(crate) handles: Arc<Handles>,
    pub(crate) operator: PhantomData<fn() -> O>,
}

impl<O> Clone for View<O> {
    fn clone(&self) -> Self {
        Self { handles: self.handles.clone(), operator: PhantomData }
    }
}

impl<O> fmt::Debug for View<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("View")
    }
}

impl<O: Operator> View<O> {
    /// The cache of a declared kind.
    pub fn cache<T: Object, P>(&self) -> Cache<T>
    where
        O: Sees<T, P>,
    {
        self.handles.get()
    }

    /// The cache of the operator's resource.
    pub fn resources(&self) -> Cache<O::Resource> {
        self.handles.get()
    }
}

/// Puts keys into the operator's queue.
pub(crate) type Enqueue = Arc<dyn Fn(Vec<Key>, bool) + Send + Sync>;
type Hook<O> = Box<dyn FnOnce(&View<O>, &Enqueue) + Send>;
type Filter<K> = Arc<dyn Fn(&Change<K>) -> bool + Send + Sync>;

/// Filters of owned kinds, by type.
#[derive(Default)]
pub(crate) struct Filters(BTreeMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Filters {
    pub(crate) fn of<T: Object>(&self) -> Option<Filter<T>> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref::<Filter<T>>().cloned()
    }
}

/// Collects an operator's mappings: see [`Operator::watches`].
pub struct Watches<O: Operator> {
    pub(crate) hooks: Vec<Hook<O>>,
    pub(crate) selections: BTreeMap<TypeId, Selection>,
    pub(crate) filter: Option<Filter<O::Resource>>,
    pub(crate) filters: Filters,
    pub(crate) sources: Vec<BoxStream<'static, Key>>,
}

impl<O: Operator> fmt::Debug for Watches<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches").field("mappings", &self.hooks.len()).finish_non_exhaustive()
    }
}

impl<O: Operator> Watches<O> {
    pub(crate) fn new() -> Self {
        Self {
            hooks: Vec::new(),
            selections: BTreeMap::new(),
            filter: None,
            filters: Filters::default(),
            sources: Vec::new(),
        }
    }

    /// When a `T` changes, the keys that `f` gives for it as it was and as it is come back.
    ///
    /// `f` must not block; it may read the caches in the view.
    pub fn map<T: Object, P>(&mut self, f: impl Fn(&T, &View<O>) -> Vec<Key> + Send + Sync + 'static)
    where
        O: Sees<T, P>,
    {
        self.changes(move |change: &Change<T>, view| {
            let mut keys = Vec::new();
            for object in change.each() {
                for key in f(object, view) {
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                }
            }
            keys
        });
    }

    /// As [`map`](Self::map), with the whole change.
    pub fn changes<T: Object, P>(
        &mut self,
        f: impl Fn(&Change<T>, &View<O>) -> Vec<Key> + Send + Sync + 'static,
    ) where
        O: Sees<T, P>,
    {
        self.hooks.push(Box::new(move |view, enqueue| {
            let (cache, view, enqueue) = (view.handles.get::<T>(), view.clone(), enqueue.clone());
            cache.subscribe(move |change| {
                let keys = f(change, &view);
                if !keys.is_empty() {
                    enqueue(keys, change.listed);
                }
            });
        }));
    }

    /// Changes of the operator's resource for which `f` is false bring nothing back.
    pub fn filter(&mut self, f: impl Fn(&Change<O::Resource>) -> bool + Send + Sync + 'static) {
        self.filter = Some(Arc::new(f));
    }

    /// Changes of owned objects of kind `T` for which `f` is false don't bring back their owner.
    ///
    /// ```
    /// # use homeostat_sdk::{Context, Next, Operator, Result, Watches};
    /// # use k8s_openapi::api::apps::v1::StatefulSet;
    /// # use k8s_openapi::api::core::v1::ServiceAccount;
    /// # struct Greeter;
    /// # impl Operator for Greeter {
    /// #     type Resource = ServiceAccount;
    /// #     type Owns = (StatefulSet,);
    /// #     type Reads = ();
    /// #     async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
    /// fn watches(&self, watches: &mut Watches<Self>) {
    ///     // Only what was asked for and how many are ready, not every count in between.
    ///     watches.filter_owned::<StatefulSet, _>(|change| {
    ///         change.differs(|s| (s.metadata.generation, s.status.as_ref().and_then(|s| s.ready_replicas)))
    ///     });
    /// }
    /// # }
    /// ```
    pub fn filter_owned<T: Object, I>(&mut self, f: impl Fn(&Change<T>) -> bool + Send + Sync + 'static)
    where
        O::Owns: Has<T, I>,
    {
        let filter: Filter<T> = Arc::new(f);
        self.filters.0.insert(TypeId::of::<T>(), Box::new(filter));
    }

    /// Brings back the keys that come out of `keys`: what happens outside of the cluster, a timer, another program.
    ///
    /// ```
    /// # use homeostat_sdk::{Context, Key, Next, Operator, Result, Watches};
    /// # use k8s_openapi::api::core::v1::ServiceAccount;
    /// use std::sync::Mutex;
    /// use futures::channel::mpsc;
    ///
    /// struct Greeter {
    ///     /// The other end is with whoever hears of the outside.
    ///     news: Mutex<Option<mpsc::Receiver<Key>>>,
    /// }
    ///
    /// impl Operator for Greeter {
    /// #   type Resource = ServiceAccount;
    /// #   type Owns = ();
    /// #   type Reads = ();
    /// #   async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
    ///     // …
    ///     fn watches(&self, watches: &mut Watches<Self>) {
    ///         if let Some(news) = self.news.lock().unwrap().take() {
    ///             watches.source(news);
    ///         }
    ///     }
    /// }
    /// ```
    pub fn source(&mut self, keys: impl Stream<Item = Key> + Send + 'static) {
        self.sources.push(keys.boxed());
    }

    /// When a `T` in `cache` changes, the keys that `f` gives come back. The cache may be any: of another cluster, of a
    /// kind known only at run time, of metadata only.
    ///
    /// ```
    /// # use homeostat_sdk::{Caches, Context, Entropy, Key, Next, Operator, Result, Selection, Watches};
    /// # use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
    /// struct Mirror {
    ///     /// The caches of another cluster's client.
    ///     elsewhere: Caches,
    /// }
    ///
    /// impl Operator for Mirror {
    /// #   type Resource = ServiceAccount;
    /// #   type Owns = ();
    /// #   type Reads = ();
    /// #   async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
    ///     // …
    ///     fn watches(&self, watches: &mut Watches<Self>) {
    ///         let secrets = self.elsewhere.get::<Secret>(&Selection::labels("mirror=yes"));
    ///         watches.elsewhere(&secrets, |change, _| change.key().into_iter().collect());
    ///     }
    /// }
    /// ```
    pub fn elsewhere<T: Watched>(
        &mut self,
        cache: &Cache<T>,
        f: impl Fn(&Change<T>, &View<O>) -> Vec<Key> + Send + Sync + 'static,
    ) {
        let cache = cache.clone();
        self.hooks.push(Box::new(move |view, enqueue| {
            let (view, enqueue) = (view.clone(), enqueue.clone());
            cache.subscribe(move |change| {
                let keys = f(change, &view);
                if !keys.is_empty() {
                    enqueue(keys, change.listed);
                }
            });
        }));
    }

    /// Caches only the objects of kind `T` that are selected. What isn't selected doesn't exist for this operator.
    pub fn select<T: Object, P>(&mut self, selection: Selection)
    where
        O: Sees<T, P>,
    {
        self.selections.insert(TypeId::of::<T>(), selection);
    }
}
