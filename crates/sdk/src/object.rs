//! What the SDK asks of an object's type.
//!
//! [`Object`] is what operators name in their types: a kind known at compile time. [`Watched`] is the weaker bound
//! of caches and plain writes, which also holds for `kube::core::DynamicObject` and metadata-only objects.

use std::any::TypeId;
use std::fmt::Debug;

use kube::Resource;
use kube::core::{ClusterResourceScope, ObjectMeta};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type that a cache can hold.
pub trait Watched:
    Resource<DynamicType: Clone + Debug + PartialEq + Send + Sync + 'static>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Watched for K
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + PartialEq + Send + Sync + 'static,
{
}

/// A kind known at compile time: built-in types of k8s-openapi, and types that derive `kube::CustomResource`.
pub trait Object: Watched + Resource<DynamicType = (), Scope: 'static> + Serialize {
    /// Whether objects of this kind live in namespaces.
    fn is_namespaced() -> bool {
        TypeId::of::<Self::Scope>() != TypeId::of::<ClusterResourceScope>()
    }

    /// The kind as error texts print it: `RedisCluster.cache.example.com`, or `Pod`.
    fn display_kind() -> String {
        display_kind::<Self>(&())
    }
}

impl<K> Object for K where K: Watched + Resource<DynamicType = (), Scope: 'static> + Serialize {}

/// The kind as error texts print it.
pub fn display_kind<K: Resource>(dt: &K::DynamicType) -> String {
    let (kind, group) = (K::kind(dt), K::group(dt));
    if group.is_empty() { kind.into_owned() } else { format!("{kind}.{group}") }
}

/// The resource as error texts print it: `redisclusters.cache.example.com`, or `pods`.
pub(crate) fn display_resource<K: Resource>(dt: &K::DynamicType) -> String {
    let (plural, group) = (K::plural(dt), K::group(dt));
    if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") }
}

/// `metadata.resourceVersion` as a number, which it is since Kubernetes 1.35 by contract and before by fact
/// (KEP-5504). `None` where it is absent or something else.
pub(crate) fn revision(meta: &ObjectMeta) -> Option<u64> {
    meta.resource_version.as_deref()?.parse().ok()
}
