//! Nodes: who is not heard of is not ready, conditions become taints, and taints drive pods away.
//!
//! Three controllers: [`lifecycle`] judges nodes by how long [`silence`] heard nothing of them, taints them and has
//! [`marking`] say so of their pods, as fast as [`zones`] allow; [`eviction`] deletes the pods that don't tolerate it. And
//! [`ttl`] tells kubelets how long they may keep what they read.

pub(crate) mod eviction;
pub(crate) mod lifecycle;
mod marking;
mod silence;
pub(crate) mod ttl;
mod zones;
