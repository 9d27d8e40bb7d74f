//! Kinds that become known only at run time: a cache for each, opened when a reconcile first reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kube::core::{ApiResource, DynamicObject};

use crate::cache::{Cache, Caches, Change, Selection};
use crate::context::Shared;
use crate::dependencies::KindId;
use crate::runner::to_dependents;
use crate::watches::Enqueue;

/// Kinds that one operator may open. More than an operator has use for.
const MOST: usize = 256;

/// The caches of kinds that one operator opened.
pub(crate) struct Dynamic {
    caches: Caches,
    namespace: Option<Arc<str>>,
    enqueue: Enqueue,
    /// By path: `/apis/example.com/v1/widgets`.
    open: Mutex<BTreeMap<String, Cache<DynamicObject>>>,
}

/// How a kind is told from others.
pub(crate) fn id(resource: &ApiResource) -> KindId {
    KindId::at::<DynamicObject>(&path(resource))
}

fn path(resource: &ApiResource) -> String {
    format!("{}/{}", resource.api_version, resource.plural)
}

impl Dynamic {
    pub(crate) fn new(caches: Caches, namespace: Option<Arc<str>>, enqueue: Enqueue) -> Self {
        Self { caches, namespace, enqueue, open: Mutex::default() }
    }

    /// The cache of a kind. Its changes bring back whoever read them.
    pub(crate) fn cache(&self, resource: &ApiResource, shared: &Arc<Shared>) -> Option<Cache<DynamicObject>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path(resource);
        if let Some(cache) = open.get(&path) {
            return Some(cache.clone());
        }
        if open.len() >= MOST {
            return None;
        }
        let selection =
            Selection { namespace: self.namespace.as_deref().map(Into::into), ..Selection::all() };
        let cache = self.caches.get_with::<DynamicObject>(resource.clone(), &selection);
        open.insert(path, cache.clone());
        drop(open);
        let (id, enqueue, shared) = (id(resource), self.enqueue.clone(), Arc::downgrade(shared));
        cache.subscribe(move |change: &Change<DynamicObject>| {
            if let Some(shared) = Weak::upgrade(&shared) {
                to_dependents(&id, &shared, &enqueue, change);
            }
        });
        Some(cache)
    }
}
