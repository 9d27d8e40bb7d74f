//! Nodes: who is not heard of is not ready, conditions become taints, and taints drive pods away.
//!
//! Two controllers: [`lifecycle`] judges nodes and taints them, [`eviction`] deletes the pods that don't tolerate it.

pub(crate) mod eviction;
pub(crate) mod lifecycle;
