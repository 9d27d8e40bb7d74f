//! Nodes: machines that run the pods bound to them.
//!
//! A pod's life is pure ([`runtime`], [`status`]), and so is what makes it go wrong ([`behavior`]); the controllers
//! around it speak only the Kubernetes API. These nodes are simulated: they cost memory for their objects and one lease
//! update each, and no process runs.
//! Invariant: nothing here knows who bound a pod or who made it.

mod accelerators;
mod admission;
pub mod behavior;
mod behaviors;
mod events;
pub mod fleet;
mod heartbeat;
mod machines;
mod options;
mod pods;
mod pressure;
mod references;
mod resize;
pub mod runtime;
pub mod status;
mod usage;
mod world;

use std::sync::Arc;
use std::time::Duration;

use homeostat_sdk::Manager;
use homeostat_sdk::rbac::{grant, rule};
use serde_json::Value;

pub use behavior::crd;
pub use options::{NodeOptionError, NodeOptions};
pub use usage::Metrics;

use behavior::choice::Delays;
use fleet::Fleet;
use pods::Kubelets;
use world::World;

/// Time between two renewals of a node's lease, as kubelets have it.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// The service account that simulated kubelets act as: namespace and name.
pub const ACCOUNT: (&str, &str) = ("kube-system", "simulated-kubelet");

/// The role that simulated kubelets need, and its binding: what a kubelet does, for all nodes, and the definition of
/// [`Behavior`](behavior::Behavior): applied, so that it may be there already, which takes `create` and `patch`.
pub fn roles() -> Vec<Value> {
    let rules = [
        rule("", "nodes", &["create", "get"]),
        rule("", "nodes/status", &["patch"]),
        rule("coordination.k8s.io", "leases", &["create", "patch"]),
        rule("", "pods", &["delete"]),
        rule("", "pods/status", &["patch"]),
        rule("", "configmaps", &["get"]),
        rule("", "secrets", &["get"]),
        rule("events.k8s.io", "events", &["create", "patch"]),
        rule("apiextensions.k8s.io", "customresourcedefinitions", &["create", "patch"]),
    ];
    let (namespace, account) = ACCOUNT;
    grant("homeostat:simulated-kubelet", namespace, account, &rules).into()
}

/// Adds simulated nodes to a manager: their heartbeats, kubelets that run what is bound to them, and a watch on the
/// Behaviors that say how. They define the `Behavior` resource themselves.
///
/// What the nodes and their pods use is then to be had from what this returns, for whoever serves `metrics.k8s.io`.
pub fn add(manager: &mut Manager, options: impl Into<NodeOptions>) -> Metrics {
    let metrics = Metrics::default();
    add_with(manager, options, HEARTBEAT, &metrics);
    metrics
}

/// As [`add`], with another heartbeat (a second at least) and metrics that somebody has already. Leases hold for four
/// heartbeats.
pub fn add_with(
    manager: &mut Manager,
    options: impl Into<NodeOptions>,
    heartbeat: Duration,
    metrics: &Metrics,
) {
    let delays = Delays::default();
    let (world, woken) =
        World::new(Fleet::new(options.into()), heartbeat.max(Duration::from_secs(1)), delays);
    let world = Arc::new(world);
    let (beating, choosing, metrics) = (world.clone(), world.clone(), metrics.clone());
    manager.add_task("kubelet", move |cx| heartbeat::keep(beating.clone(), cx));
    manager.add_task("kubelet", move |cx| behaviors::keep(choosing.clone(), delays, metrics.clone(), cx));
    manager.add(Kubelets::new(world, woken));
}
