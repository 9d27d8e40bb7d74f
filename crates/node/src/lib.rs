//! Nodes: machines that run the pods bound to them.
//!
//! A pod's life is pure ([`lifecycle`], [`runtime`]); the controllers around it speak only the Kubernetes API. These
//! nodes are simulated: they cost memory for their objects and one lease update each, and no process runs.
//! Invariant: nothing here knows who bound a pod or who made it.

pub mod fleet;
mod heartbeat;
pub mod lifecycle;
mod pods;
pub mod runtime;

use homeostat_sdk::Manager;

use fleet::Fleet;
use pods::Kubelets;
use runtime::Delays;

/// Adds `size` simulated nodes to a manager: their heartbeats, and kubelets that run what is bound to them.
pub fn add(manager: &mut Manager, size: usize) {
    let fleet = Fleet::new(size);
    manager.add_task("kubelet", move |cx| heartbeat::keep(fleet, cx));
    manager.add(Kubelets::new(fleet, Delays::default()));
}
