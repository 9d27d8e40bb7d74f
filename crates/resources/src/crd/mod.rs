//! CustomResourceDefinitions: what is filled in, what is refused, which names a definition gets, and the
//! [`Resource`](crate::Resource) it makes.
//!
//! Pure functions of definitions as JSON values (`apiextensions.k8s.io/v1`); storing them and waking up whoever
//! serves the new type is the API server's part.

mod resource;

pub use resource::{is_established, is_terminating, to_resource};
