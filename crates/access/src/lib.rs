//! Who asks, and whether they may: users, how requests prove whose they are, impersonation, and RBAC.
//!
//! It is not the request path (that is `apiserver`) and keeps no objects: RBAC objects, service accounts and pods
//! come in as JSON values or through [`authn::Lookup`]. The rules of RBAC objects as resources belong to
//! `resources`.
//! Invariant: a decision is a pure function of the user, the attributes and the policy.

mod attributes;
pub mod authn;
pub mod bootstrap;
pub mod impersonation;
pub mod rbac;
pub mod review;
mod user;

pub use attributes::Attributes;
pub use rbac::{Decision, Policy};
pub use user::{
    ANONYMOUS, AUTHENTICATED, CREDENTIAL_ID, MASTERS, NODES, UNAUTHENTICATED, User, service_account_groups,
    service_account_username, split_service_account,
};
