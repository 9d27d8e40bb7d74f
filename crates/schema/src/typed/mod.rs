//! Objects under a schema, as ownership sees them: their fields, what changed, merging, removing.
//!
//! The rules are structured-merge-diff's: list types map, set and atomic, map types granular and atomic, deduced
//! types where the schema keeps unknown fields. No managers here (see `managed`) and no patches. Invariant: what
//! is not changed keeps its order and its form.

mod compare;
mod fieldset;
pub(crate) mod go;
mod items;
mod merge;
mod reconcile;
mod remove;
mod types;
mod validate;

use serde_json::Value;

pub(crate) use compare::Comparison;
pub(crate) use types::Type;
pub use validate::TypeErrors;

use crate::fields::FieldSet;
use crate::schema::Schema;

fn root(schema: &Schema) -> Type<'_> {
    Type::root(schema.root())
}

/// Checks that an object fits the schema: declared fields, expected types, and (unless `allow_duplicates`) no
/// list item twice.
pub fn check(object: &Value, schema: &Schema, allow_duplicates: bool) -> Result<(), TypeErrors> {
    validate::check(object, root(schema), allow_duplicates)
}

/// The fields that an object names, which is what applying it owns.
pub fn field_set(object: &Value, schema: &Schema) -> FieldSet {
    fieldset::field_set(object, root(schema))
}

/// The object with another merged into it, as apply merges before it removes what was given up.
pub fn merge(live: &mut Value, applied: &Value, schema: &Schema) {
    merge::merge(live, applied, root(schema));
}

/// The object without the fields and items of a set.
#[must_use]
pub fn remove(object: Value, gone: &FieldSet, schema: &Schema) -> Value {
    remove::remove(object, gone, root(schema))
}

/// Only the fields and items of a set: what a manager applied, read back from the object.
#[must_use]
pub fn extract(object: &Value, kept: &FieldSet, schema: &Schema) -> Value {
    remove::extract(object, kept, root(schema))
}

/// What changed from one object to the other.
pub(crate) fn compare(old: &Value, new: &Value, schema: &Schema) -> Comparison {
    compare::compare(old, new, root(schema))
}

/// See [`fieldset::with_named_parents`].
pub(crate) fn with_named_parents(set: &FieldSet, schema: &Schema) -> FieldSet {
    fieldset::with_named_parents(set, Some(root(schema)))
}

/// See [`reconcile::reconcile`].
pub(crate) fn reconcile(set: &FieldSet, schema: &Schema) -> Option<FieldSet> {
    reconcile::reconcile(set, root(schema))
}
