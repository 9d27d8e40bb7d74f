//! Rows of `kubectl get`: a function per type, from an object to the cells of its columns.

use homeostat_model::{GroupResource, Timestamp};
use serde_json::Value;

/// Cells of an object's row, one per column of the type.
pub(super) type Row = fn(&Value, Timestamp) -> Vec<Value>;

/// The row function of a type; `None` for reviews, which are never listed.
pub(super) fn row(_id: &GroupResource) -> Option<Row> {
    None
}
