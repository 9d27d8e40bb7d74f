//! Names and values that every layer of Homeostat shares: groups, versions and resources, API errors, field
//! errors, selectors, quantities, and the two doors to the outside that make runs replayable: [`Clock`] and
//! [`Entropy`].
//!
//! It is not a set of typed Kubernetes objects (those are k8s-openapi's, used by `sdk` and above) and does no I/O.
//! Invariant: nothing outside [`clock`] and [`entropy`] asks the machine for time or chance.

pub mod clock;
pub mod duration;
pub mod entropy;
pub mod field;
pub mod gvk;
pub mod quantity;
pub mod quota;
pub mod selector;
pub mod status;
pub mod validation;

pub use clock::{Clock, Timestamp};
pub use entropy::Entropy;
pub use gvk::{GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use status::Status;
