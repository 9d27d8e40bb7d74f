//! Field managers: who owns which fields of an object, kept in `metadata.managedFields`.
//!
//! [`update`] follows a create, update or patch; [`apply`] is server-side apply. Both are pure: the object comes
//! in and goes out as a value, the time is given, other versions are asked of [`Versions`]. Defaulting, validation
//! and storing are the caller's. Invariant: `metadata.managedFields` never names itself, the object's identity or
//! what the server keeps in metadata.

mod apply;
mod conflict;
mod entries;
mod last_applied;
mod names;
mod prune;
pub mod scale;
mod times;
mod unchanged;
mod update;

use serde_json::Value;

pub use apply::apply;
pub use conflict::{ApplyError, Conflict};
pub use names::{check_entries, check_name, name};
pub use times::keep_times;
pub use update::update;

use crate::fields::FieldSet;
use crate::schema::Schema;

/// The request that changes an object, as far as ownership is concerned.
#[derive(Clone, Copy)]
pub struct ManagerCx<'a> {
    /// Schema of the version that the request uses.
    pub schema: &'a Schema,
    /// That version, `apps/v1`; objects are given in it.
    pub api_version: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The field manager; see [`name`].
    pub manager: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The time, RFC 3339 in seconds and UTC.
    pub now: &'a str,
    /// Fields that this request doesn't change, whatever its body says, and so never owns: `status` for a write
    /// to an object with that subresource.
    pub reset: &'a FieldSet,
    /// Other versions of the resource.
    pub versions: &'a dyn Versions,
}

/// The versions that managers may have written their fields in.
pub trait Versions {
    /// The schema of a version; `None` if the resource doesn't have it (any more), which drops its managers.
    fn schema(&self, api_version: &str) -> Option<Schema>;

    /// The object in another version; an error is a failed conversion.
    ///
    /// This is synchronous. Where conversion needs I/O, answer an error, remember what was asked, convert, and
    /// call again with the result at hand: the functions here have no effects that a second call would double.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
}

/// For resources of one version.
pub struct OneVersion;

impl Versions for OneVersion {
    fn schema(&self, _: &str) -> Option<Schema> {
        None
    }

    fn convert(&self, _: &Value, api_version: &str) -> Result<Value, String> {
        Err(format!("no version {api_version:?}"))
    }
}

/// `metadata.managedFields`, if it is there.
fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields").filter(|v| !v.is_null())
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str).unwrap_or_default()
}
