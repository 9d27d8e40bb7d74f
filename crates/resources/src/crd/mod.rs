//! CustomResourceDefinitions: what is filled in, what is refused, which names a definition gets, and the
//! [`Resource`](crate::Resource) it makes.
//!
//! Pure functions of definitions as JSON values (`apiextensions.k8s.io/v1`); storing them and waking up whoever
//! serves the new type is the API server's part. Schemas are walked recursively only once they are known to be
//! shallow enough: [`validate_create`] refuses deeper ones first.

mod approval;
mod cel_rules;
mod columns;
mod conversion;
mod default_values;
mod defaults;
mod field_path;
mod gotext;
mod naming;
mod pattern;
mod props;
mod resource;
mod review;
mod schema_rules;
mod spec;
mod strategy;
mod structural;
mod validate;
mod warnings;

pub use defaults::{default, prepare_create, prepare_status, prepare_update};
pub use naming::{Deletion, FINALIZER, reconcile, set_condition, set_deletion};
pub use resource::{is_established, is_terminating, to_resource};
pub use review::{converted, review_request, review_version};
pub use strategy::CrdStrategy;
pub use validate::{validate_create, validate_status, validate_update};
pub use warnings::warnings;
