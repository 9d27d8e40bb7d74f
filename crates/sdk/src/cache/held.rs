//! An object of any kind, as the inside of a cache holds it.
//!
//! The machinery of a cache is compiled once and not for each kind; only what touches an object's fields is. So the
//! inside knows an object by its metadata, and the typed outside turns it back into what it is.
//! Invariant: a cache's objects are all of the type that the cache is of.

use std::any::Any;
use std::sync::Arc;

use kube::core::ObjectMeta;

use crate::object::Watched;

/// An object of a kind that its holder knows.
pub(super) trait Held: Any + Send + Sync {
    /// `metadata`.
    fn metadata(&self) -> &ObjectMeta;
}

impl<K: Watched> Held for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }
}

/// The object as what it is. `None` can't be where the invariant holds.
pub(super) fn typed<K: Watched>(object: &Arc<dyn Held>) -> Option<Arc<K>> {
    let object: Arc<dyn Any + Send + Sync> = object.clone();
    object.downcast::<K>().ok()
}

/// As [`typed`], to look at.
pub(super) fn typed_ref<K: Watched>(object: &dyn Held) -> Option<&K> {
    let object: &dyn Any = object;
    object.downcast_ref::<K>()
}
