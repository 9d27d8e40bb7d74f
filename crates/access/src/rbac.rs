//! Role-based access control: rules, the policy compiled from roles and bindings, aggregation, escalation.
//!
//! Source: kubernetes `plugin/pkg/auth/authorizer/rbac` and `pkg/registry/rbac`. Rules only ever allow.
//! Invariant: what an object that is malformed would allow, nobody is allowed.

mod aggregate;
pub mod escalation;
mod policy;
mod rule;

pub use aggregate::aggregated_rules;
pub use policy::{Decision, Policy};
pub use rule::Rule;

/// The API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";
