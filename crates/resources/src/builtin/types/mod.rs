//! The strategies of the built-in types, one file per family, and the table that says whose is whose.
//!
//! A strategy says only what makes its type special; [`BuiltIn`] wraps it and does what holds for all: the form in
//! which Go writes objects, the status subresource, and tables. The small differences are lists in [`facts`].

mod facts;
mod wrapper;

use std::sync::Arc;

use homeostat_model::{GroupResource, GroupVersion};

use crate::strategy::Strategy;
use wrapper::BuiltIn;

/// The strategy of a built-in resource; `definitions` are its versions with the names of their schemas.
pub(super) fn strategy(
    id: &GroupResource,
    definitions: Vec<(GroupVersion, String)>,
    status: bool,
) -> Arc<dyn Strategy> {
    let inner: Box<dyn Strategy> = match (&*id.group, &*id.resource) {
        _ => Box::new(crate::Plain),
    };
    Arc::new(BuiltIn { definitions, inner, facts: facts::facts(id, status), row: super::tables::row(id) })
}
