//! The name of an object within its kind: namespace and name.
//!
//! A key says nothing about uid or version; whoever holds one looks the object up again. Keys order by namespace,
//! then name, which is the order in which caches list.

use std::fmt;
use std::sync::Arc;

use kube::Resource;

/// Namespace and name of an object. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Namespace; `None` for cluster-scoped objects.
    pub namespace: Option<Arc<str>>,
    /// Name.
    pub name: Arc<str>,
}

impl Key {
    /// A key in a namespace.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: Some(namespace.into()), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// A key from optional namespace and name.
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self { namespace: namespace.filter(|n| !n.is_empty()).map(Arc::from), name: name.into() }
    }

    /// The key of `object`; its name is empty where the object has none yet.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
    }

    /// The namespace as a plain string.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name as a plain string.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(ns) => write!(f, "{ns}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
