//! The simulated container runtime: what runs where, since when, how often.
//!
//! It is the state that a kubelet finds in its runtime, with the kubelet's own memory of it (backoffs, results of
//! probes); nothing here knows the API. [`Plan`] says what shall run and how it behaves, `advance` moves a [`Sandbox`]
//! from one event to the next.
//! Invariant: advancing depends only on its arguments, and called late does what it would have done in time.

mod advance;
mod backoff;
mod plan;
mod probes;
mod record;
mod stop;
#[cfg(test)]
pub(crate) mod tests;

use std::net::Ipv4Addr;
use std::time::Duration;

use homeostat_model::Timestamp;

pub use advance::{Advance, News, What};
pub use backoff::Backoff;
pub use plan::{ContainerPlan, Plan, ProbePlan, RestartPolicy};
pub use probes::{Kind as ProbeKind, Probe};
pub use record::{Phase, Record, Termination};
pub use stop::{Cause, Teardown, Why};

/// One pod's sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct Sandbox {
    /// When the pod was first seen.
    pub created: Timestamp,
    /// The pod's address.
    pub address: Ipv4Addr,
    /// How often its volumes could not be mounted, and when they are tried again.
    pub mounts: (u32, Option<Timestamp>),
    /// When the sandbox itself was made.
    pub made: Option<Timestamp>,
    /// The containers, in the order of the plan.
    pub containers: Vec<Record>,
    /// The end of the pod, once it has begun.
    pub teardown: Option<Teardown>,
    /// Nothing happens before: the last event, or news from outside.
    pub(crate) clock: Timestamp,
    /// New resources are in force from then on.
    pub resizing: Option<Timestamp>,
    /// Why its node wants it to go.
    pub eviction: Option<Box<str>>,
}

impl Sandbox {
    /// Whether it is there and nothing is to be started any more: each container runs, or is one of the first `init`
    /// and has done its work.
    pub fn all_run(&self, init: usize) -> bool {
        let mut all = self.containers.iter().enumerate();
        let is_up = |(i, c): (usize, &Record)| c.phase == Phase::Running || i < init && c.succeeded();
        self.made.is_some() && !self.containers.is_empty() && all.all(is_up)
    }

    /// A sandbox that is about to be made.
    pub fn new(now: Timestamp, address: Ipv4Addr) -> Self {
        Self {
            created: now,
            address,
            mounts: (0, None),
            made: None,
            containers: Vec::new(),
            teardown: None,
            clock: now,
            resizing: None,
            eviction: None,
        }
    }

    /// Something changed from outside at `now`: nothing that follows from it happens before.
    pub fn touch(&mut self, now: Timestamp) {
        self.clock = self.clock.max(now);
    }

    /// Whether the pod's end has come and every container has ended, or never began.
    pub fn is_stopped(&self) -> bool {
        self.teardown.is_some() && !self.containers.iter().any(Record::is_up)
    }

    /// Whether all init containers have done their part, so that main containers may begin.
    pub fn is_initialized(&self, plan: &Plan<'_>) -> bool {
        plan.containers.iter().zip(&self.containers).all(|(p, r)| r.lets_others_begin(p))
    }
}

/// `t` + `d`, or the end of time.
pub(crate) fn after(t: Timestamp, d: Duration) -> Timestamp {
    t.checked_add(d).unwrap_or(Timestamp::MAX)
}

/// How long after `then` `t` is; nothing where it isn't.
pub(crate) fn since(t: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(t.duration_since(then)).unwrap_or(Duration::ZERO)
}
