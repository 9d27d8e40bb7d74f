//! The scheduler: gives each pending pod a node that can run it.
//!
//! [`framework`] and [`plugins`] are pure functions of a snapshot of nodes and pods; the loop around them speaks only
//! the Kubernetes API. It does not start pods. Invariant: a pod is bound at most once, and never to a node that a
//! filter refused.

mod binder;
pub mod framework;
pub mod plugins;
pub mod resources;
pub mod snapshot;

use homeostat_sdk::Manager;

/// Adds the scheduler to a manager.
pub fn add(manager: &mut Manager) {
    manager.add(binder::Scheduler::new());
}
