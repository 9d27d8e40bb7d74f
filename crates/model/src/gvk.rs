//! Groups, versions, kinds and resources, as in apimachinery's `schema` package.
//!
//! Texts follow the reference: the core group is the empty string and leaves no trace in what is printed.

use std::fmt;
use std::sync::Arc;

/// An API group with a version: `apps/v1`; `v1` for the core group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// Group; empty for core.
    pub group: Arc<str>,
    /// Version, such as `v1beta1`.
    pub version: Arc<str>,
}

impl GroupVersion {
    /// From its two parts.
    pub fn new(group: impl Into<Arc<str>>, version: impl Into<Arc<str>>) -> Self {
        Self { group: group.into(), version: version.into() }
    }

    /// Parses an `apiVersion`: `v1` or `group/version`. `None` when empty or with more than one slash.
    pub fn parse(api_version: &str) -> Option<Self> {
        match api_version.split_once('/') {
            None if api_version.is_empty() => None,
            None => Some(Self::new("", api_version)),
            Some((_, v)) if v.contains('/') => None,
            Some((g, v)) => Some(Self::new(g, v)),
        }
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

/// A kind in a group and version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// Group and version.
    pub gv: GroupVersion,
    /// Kind in CamelCase.
    pub kind: Arc<str>,
}

impl GroupVersionKind {
    /// From its three parts.
    pub fn new(group: impl Into<Arc<str>>, version: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        Self { gv: GroupVersion::new(group, version), kind: kind.into() }
    }
}

/// A resource (lower-case plural) in a group and version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// Group and version.
    pub gv: GroupVersion,
    /// Lower-case plural.
    pub resource: Arc<str>,
}

/// A resource in a group, whatever its version; prints as `widgets.example.com`, or `pods`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// Group; empty for core.
    pub group: Arc<str>,
    /// Lower-case plural.
    pub resource: Arc<str>,
}

impl GroupResource {
    /// From its two parts.
    pub fn new(group: impl Into<Arc<str>>, resource: impl Into<Arc<str>>) -> Self {
        Self { group: group.into(), resource: resource.into() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.resource)
        } else {
            write!(f, "{}.{}", self.resource, self.group)
        }
    }
}

/// A kind in a group; prints as `Widget.example.com`, or `Pod`, as error texts do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// Group; empty for core.
    pub group: Arc<str>,
    /// Kind in CamelCase.
    pub kind: Arc<str>,
}

impl GroupKind {
    /// From its two parts.
    pub fn new(group: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.kind)
        } else {
            write!(f, "{}.{}", self.kind, self.group)
        }
    }
}
