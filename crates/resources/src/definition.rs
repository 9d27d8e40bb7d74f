//! What the server serves: a [`Resource`] for each group and plural, built-in or custom, with its versions.
//!
//! A definition is data plus a [`Strategy`]; the request path has no other knowledge of kinds. It does not hold
//! objects. Invariant: a `Resource` is immutable; a change makes a new one with another `epoch`.

use std::sync::Arc;

use homeostat_model::gvk::GroupKind;
use homeostat_model::{GroupResource, GroupVersion};
use homeostat_schema::Schema;

use crate::strategy::Strategy;

/// One API resource with all its versions.
pub struct Resource {
    /// Group and plural.
    pub id: GroupResource,
    /// Lower-case singular.
    pub singular: String,
    /// Kind.
    pub kind: Arc<str>,
    /// Kind of lists; the kind + `List` unless a CRD says otherwise.
    pub list_kind: String,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Served and stored versions, in discovery order (preferred first).
    pub versions: Vec<Version>,
    /// Index in `versions` of the one that is stored.
    pub storage: usize,
    /// The store's collection; two resources that are views of one set of objects (events) share it.
    pub collection: Arc<str>,
    /// Built in, or made by a CRD.
    pub origin: Origin,
    /// Grows with each change of the definition; objects encoded under another epoch are defaulted on read.
    pub epoch: u64,
    /// Behaviour beyond the schema.
    pub strategy: Arc<dyn Strategy>,
}

impl Resource {
    /// The version with this name, served or not.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|v| &*v.gv.version == name)
    }

    /// The version that objects are stored in.
    pub fn storage_version(&self) -> &Version {
        &self.versions[self.storage]
    }

    /// Group and kind, as error texts print them.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.id.group.clone(), self.kind.clone())
    }
}

/// Where a definition comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in.
    BuiltIn,
    /// Made by the CustomResourceDefinition `plural.group`.
    Custom {
        /// The CRD is being deleted: no creates, fewer verbs.
        terminating: bool,
        /// How versions are converted.
        conversion: Conversion,
    },
}

/// `spec.conversion` of a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    /// A webhook converts; the value is `spec.conversion.webhook`.
    Webhook(serde_json::Value),
}

/// One version of a resource.
pub struct Version {
    /// Group and version.
    pub gv: GroupVersion,
    /// Whether requests may use it.
    pub served: bool,
    /// The text of the Warning header, if it is deprecated.
    pub deprecation: Option<String>,
    /// Schema, compiled on first use.
    pub schema: LazySchema,
    /// Verbs of the main resource in discovery order.
    pub verbs: Vec<&'static str>,
    /// Subresources, `status` and `scale` included.
    pub subresources: Vec<Subresource>,
    /// Printer columns of tables.
    pub columns: Vec<Column>,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`: (label, JSON path as in a CRD `.spec.x`).
    pub selectable: Vec<(String, String)>,
    /// What OpenAPI publishes for this version: the schema as JSON, before compilation. Built-ins name their
    /// definition (`io.k8s.api.apps.v1.Deployment`); custom resources carry `openAPIV3Schema`.
    pub openapi: OpenApi,
}

impl Version {
    /// The subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}

/// A schema that is compiled when it is first asked for.
pub type LazySchema = Arc<std::sync::LazyLock<Arc<Schema>, Box<dyn FnOnce() -> Arc<Schema> + Send>>>;

/// Source of the published OpenAPI schema.
#[derive(Clone, Debug)]
pub enum OpenApi {
    /// Name of a built-in definition.
    Definition(String),
    /// A CRD's `openAPIV3Schema`.
    Inline(Arc<serde_json::Value>),
}

/// A subresource.
#[derive(Clone, Debug, PartialEq)]
pub struct Subresource {
    /// `status`, `scale`, `binding` …
    pub name: String,
    /// Kind of its bodies, with group and version where they differ from the parent's.
    pub kind: String,
    /// Group and version of its bodies, where they differ from the parent's.
    pub gv: Option<GroupVersion>,
    /// Verbs.
    pub verbs: Vec<&'static str>,
    /// Paths of a custom resource's scale: (spec, status, label selector).
    pub scale: Option<ScalePaths>,
}

/// `spec.versions[].subresources.scale` of a CRD, or the built-ins' equivalent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// `.spec.replicas`
    pub spec: String,
    /// `.status.replicas`
    pub status: String,
    /// `.status.selector`
    pub selector: Option<String>,
}

/// A printer column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// OpenAPI type: string, integer, number, boolean, date.
    pub kind: String,
    /// OpenAPI format; may be empty.
    pub format: String,
    /// What it shows.
    pub description: String,
    /// 0 is always shown; above only with `-o wide`.
    pub priority: i64,
    /// JSON path of a custom column; built-in columns are computed by the strategy.
    pub path: Option<String>,
}
