//! Which process of several works: one leader, or all of them, each on its share of the keys.
//!
//! Both are kept in Leases (`coordination.k8s.io/v1`), as client-go's leader election keeps them. Nothing here decides
//! what is done with a key, only who does it.
//! Invariant: a process whose lease isn't renewed in time writes nothing more, whatever it is doing: its client
//! refuses to.

mod fence;
mod gate;
mod leader;
mod lease;
mod ring;
mod shards;

pub(crate) use fence::Fence;
pub(crate) use gate::{Gate, Keeper};
pub(crate) use leader::Candidate;
pub use leader::LeaderElection;
pub(crate) use shards::Member;
pub use shards::Sharding;
