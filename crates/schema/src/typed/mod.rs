//! Objects under a schema, as ownership sees them: their fields, what changed, merging, removing.
//!
//! The rules are structured-merge-diff's: list types map, set and atomic, map types granular and atomic, deduced
//! types where the schema keeps unknown fields. No managers here (see `managed`) and no patches. Invariant: what
//! is not changed keeps its order and its form.

mod atomics;
mod compare;
mod exact;
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
pub(crate) use fieldset::Owner;
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
///
/// Items of the live object that have no key, which its schema doesn't allow, are lost where they would merge.
pub fn merge(live: &mut Value, applied: &Value, schema: &Schema) {
    let _ = merge::merge(live, applied, root(schema));
}

/// Where an object, which was checked, has lists, maps or objects that are replaced as a whole: `.spec.list`.
pub fn atomics(object: &Value, schema: &Schema) -> Vec<String> {
    atomics::atomics(object, root(schema))
}

/// The object without the fields and items of a set.
#[must_use]
pub fn remove(mut object: Value, gone: &FieldSet, schema: &Schema) -> Value {
    remove::remove(&mut object, gone, root(schema));
    object
}

/// Only the fields and items of a set: what a manager applied, read back from the object.
#[must_use]
pub fn extract(object: &Value, kept: &FieldSet, schema: &Schema) -> Value {
    remove::extract(object, kept, root(schema))
}

/// What changed from one object to the other.
pub(crate) fn compare(old: &Value, new: &Value, schema: &Schema, ignored: &FieldSet) -> Comparison {
    compare::compare(old, new, root(schema), ignored)
}

/// See [`fieldset::with_empty_lists`].
pub(crate) fn with_empty_lists(object: &Value, schema: &Schema) -> FieldSet {
    fieldset::with_empty_lists(object, root(schema))
}

/// Of the fields of a set, and the named fields that they are in, those that no one else owns.
pub(crate) fn unowned(set: &FieldSet, owners: &[Owner<'_>], schema: &Schema) -> FieldSet {
    fieldset::unowned(set, owners, Some(root(schema)))
}

/// See [`fieldset::with_named_parents`].
pub(crate) fn with_named_parents(set: &FieldSet, schema: &Schema) -> FieldSet {
    fieldset::with_named_parents(set, Some(root(schema)))
}

/// The fields of an object that is applied, or why it can't be.
pub(crate) fn checked_field_set(object: &Value, schema: &Schema) -> Result<FieldSet, TypeErrors> {
    if let Some(set) = fieldset::strict(object, root(schema)) {
        return Ok(set);
    }
    check(object, schema, false)?;
    // Nothing is wrong after all; take what there is.
    Ok(field_set(object, schema))
}

/// Whether the values of an object are of their types, if its items are known to be named and to stand once.
pub(crate) fn fits(object: &Value, schema: &Schema) -> bool {
    validate::fits_named(object, root(schema))
}

/// [`merge`], or why the live object doesn't fit its schema.
pub(crate) fn checked_merge(live: &mut Value, applied: &Value, schema: &Schema) -> Result<(), TypeErrors> {
    match merge::merge(live, applied, root(schema)) {
        Ok(()) => Ok(()),
        Err(merge::Unnamed) => check(live, schema, true),
    }
}

/// Whether merging `applied` would leave `live` as it is; may say no where it would.
pub(crate) fn covers(live: &Value, applied: &Value, schema: &Schema) -> bool {
    merge::covers(live, applied, root(schema))
}

/// Whether an object names exactly the fields of a set that is given as fieldsV1, if those of `reset` (and what is
/// below them) and of `unowned` don't count; may say no where it would.
pub(crate) fn is_exactly(
    object: &Value,
    schema: &Schema,
    set: &Value,
    reset: &FieldSet,
    unowned: &FieldSet,
) -> bool {
    exact::is_exactly(object, root(schema), set, reset, unowned)
}

/// See [`reconcile::is_stale`].
pub(crate) fn is_stale(set: &Value, schema: &Schema) -> bool {
    reconcile::is_stale(set, root(schema))
}

/// See [`reconcile::reconcile`].
pub(crate) fn reconcile(set: &FieldSet, schema: &Schema) -> Option<FieldSet> {
    reconcile::reconcile(set, root(schema))
}
