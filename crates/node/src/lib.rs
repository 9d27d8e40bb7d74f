//! Nodes: machines that run the pods bound to them.
//!
//! A pod's life is pure ([`lifecycle`], [`runtime`]); the controllers around it speak only the Kubernetes API. These
//! nodes are simulated: they cost memory for their objects and one lease update each, and no process runs.
//! Invariant: nothing here knows who bound a pod or who made it.

pub mod lifecycle;
pub mod runtime;
