//! Behaviour of a resource beyond its schema: what is computed, checked or forgotten around a write.
//!
//! The default of every method is what a custom resource does, so that a built-in type overrides only what makes
//! it special. Strategies are pure: time, names and allocations come in through [`Cx`].
//! Invariant: a strategy never fails; it reports [`field::Error`]s.

use homeostat_model::{Entropy, GroupVersion, Timestamp, field};
use serde_json::Value;

/// What a strategy may know of the outside.
pub struct Cx<'a> {
    /// The time of the request.
    pub now: Timestamp,
    /// Chance, for the few types that draw from it.
    pub entropy: &'a Entropy,
    /// User name of the requester.
    pub user: &'a str,
    /// Groups of the requester.
    pub groups: &'a [String],
    /// `""` for the object itself, or the subresource (`status`, `scale`, `resize` …).
    pub subresource: &'a str,
}

/// How an object leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Children are collected afterwards.
    Background,
    /// Children first.
    Foreground,
    /// Children stay.
    Orphan,
}

/// Per-resource behaviour. Objects are in the request's version unless said otherwise.
pub trait Strategy: Send + Sync {
    /// Defaults that a schema cannot say (they depend on other fields). Runs after the schema's defaults, on writes
    /// and on reads of what an older definition stored; must be idempotent.
    fn default(&self, _gv: &GroupVersion, _object: &mut Value) {}

    /// The object of this type with nothing set, as Go's encoder writes it: what field management compares a new
    /// object to, so that nobody owns the structs that are always there. Null where the type has none.
    fn empty(&self, _gv: &GroupVersion) -> Value {
        Value::Null
    }

    /// Before a create: drops what clients may not set (status), sets what the server owns.
    fn prepare_create(&self, _cx: &Cx<'_>, _new: &mut Value) {}

    /// Before an update of the object: carries over what clients may not change (status).
    fn prepare_update(&self, _cx: &Cx<'_>, _new: &mut Value, _old: &Value) {}

    /// Before an update through a subresource whose body is the object (`status`, `approval`, `finalize`, `resize`,
    /// `ephemeralcontainers`; [`Cx::subresource`] says which): carries over what that door may not change.
    fn prepare_status(&self, _cx: &Cx<'_>, _new: &mut Value, _old: &Value) {}

    /// Rules of a new object, beyond the schema and object metadata.
    fn validate(&self, _cx: &Cx<'_>, _new: &Value) -> Vec<field::Error> {
        Vec::new()
    }

    /// Rules of a change (immutable fields and the like), in addition to nothing: call `validate` from here too.
    fn validate_update(&self, cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        self.validate(cx, new)
    }

    /// Rules of a status update.
    fn validate_status(&self, _cx: &Cx<'_>, _new: &Value, _old: &Value) -> Vec<field::Error> {
        Vec::new()
    }

    /// Warnings (header `Warning: 299`) for a write.
    fn warnings(&self, _cx: &Cx<'_>, _new: &Value, _old: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// Rules of `metadata.name`: DNS-1123 subdomain unless the type is stricter or laxer. Returns what is wrong.
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        homeostat_model::validation::dns1123_subdomain(name, prefix)
    }

    /// Whether `metadata.generation` is kept, and so grows when something outside metadata and status changes.
    fn has_generation(&self) -> bool {
        true
    }

    /// Whether `old` → `new` is a change of what the user means (then generation grows by one).
    fn spec_changed(&self, new: &Value, old: &Value) -> bool {
        let skip = |k: &str| matches!(k, "apiVersion" | "kind" | "metadata" | "status");
        let (Some(n), Some(o)) = (new.as_object(), old.as_object()) else { return new != old };
        n.iter().any(|(k, v)| !skip(k) && o.get(k) != Some(v))
            || o.keys().any(|k| !skip(k) && !n.contains_key(k))
    }

    /// Whether PUT to an absent name creates.
    fn create_on_update(&self) -> bool {
        false
    }

    /// Whether PUT without a resourceVersion is taken as "whatever is there".
    fn unconditional_update(&self) -> bool {
        false
    }

    /// Whether the answer to a DELETE is the object rather than a Status.
    fn delete_returns_object(&self) -> bool {
        false
    }

    /// Propagation where a DELETE names none.
    fn default_propagation(&self) -> Propagation {
        Propagation::Background
    }

    /// Seconds of graceful deletion for this object (pods); `requested` is what the client asked for.
    /// `None`: the resource has no graceful deletion.
    fn grace_period(&self, _object: &Value, _requested: Option<i64>) -> Option<i64> {
        None
    }

    /// Marks an object as being deleted where the type has its own way (a namespace's phase, a definition's
    /// condition). False: there is none, and the usual marks are set.
    fn mark_deleted(&self, _cx: &Cx<'_>, _object: &mut Value) -> bool {
        false
    }

    /// Whether a delete of this object must wait (a namespace with `spec.finalizers`), although no metadata
    /// finalizer is left.
    fn holds_deletion(&self, _object: &Value) -> bool {
        false
    }

    /// Cells of a built-in table row, one per column. Custom resources use their columns' JSON paths instead.
    fn row(&self, _object: &Value, _now: Timestamp) -> Option<Vec<Value>> {
        None
    }

    /// Values of built-in field selectors, e.g. `("spec.nodeName", "n1")`; `metadata.name` and `.namespace` are
    /// known without it. Every label that the type supports is returned, empty where unset.
    fn selectable(&self, _object: &Value) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The labels that `selectable` returns, to refuse unknown ones.
    fn selectable_labels(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a conversion between versions of a built-in type changes metadata.
    fn converts_metadata(&self) -> bool {
        false
    }

    /// Converts between versions of a built-in type (HPA v1 and v2, events). The default changes `apiVersion`.
    fn convert(&self, object: &mut Value, to: &GroupVersion) {
        if let Some(o) = object.as_object_mut() {
            o.insert("apiVersion".into(), to.to_string().into());
        }
    }
}

/// The strategy of custom resources: nothing special.
pub struct Plain;
impl Strategy for Plain {}
