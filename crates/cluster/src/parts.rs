//! The parts that work through the API: controllers, scheduler and simulated nodes, on one manager.
//!
//! Where the API server is does not matter to them, and is not known here: whoever starts them gives each a client for
//! the user that it acts as. Invariant: each acts as a user of its own, and only what is read for all comes through
//! [`Actor::Reader`].

use homeostat_access::User;
use homeostat_node::{Metrics, NodeOptions};
use homeostat_sdk::Manager;
use kube::Client;
use serde_json::Value;

use crate::ClusterOptions;

/// Who a part acts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// Whom all caches are fed as, and who makes the accounts' tokens; RBAC lets it list and watch everything.
    Reader,
    /// The scheduler.
    Scheduler,
    /// A controller or kubelet: the service account of this namespace and name.
    Account(&'static str, &'static str),
}

impl Actor {
    /// Its user, with the groups that an authenticated one has.
    pub(crate) fn user(self) -> User {
        let named = |name: &str| User { name: name.to_owned(), ..User::default() };
        let user = match self {
            Self::Reader => named("system:kube-controller-manager"),
            Self::Scheduler => named("system:kube-scheduler"),
            Self::Account(namespace, account) => User::service_account(namespace, account, ""),
        };
        user.authenticated()
    }
}

/// The roles that the parts need beyond those that every cluster has, and their bindings.
pub(crate) fn roles(nodes: bool) -> Vec<Value> {
    let mut roles = homeostat_controllers::roles();
    if nodes {
        roles.extend(homeostat_node::roles());
    }
    roles
}

/// What controllers have to be told: of the certificate authority (PEM) and its key, if that is known, and options.
pub(crate) fn config(
    options: &ClusterOptions,
    root_ca: String,
    root_ca_key: String,
) -> homeostat_controllers::Config {
    homeostat_controllers::Config {
        root_ca,
        root_ca_key,
        node_monitor_grace: options.cadence.grace(),
        terminated_pods: options.terminated_pods,
    }
}

/// A manager with the parts that the options name; each acts through the client that `client` gives it.
///
/// # Errors
/// Those of `client`.
pub(crate) fn manager<E>(
    options: &ClusterOptions,
    config: &homeostat_controllers::Config,
    usage: &Metrics,
    client: impl Fn(Actor) -> Result<Client, E>,
) -> Result<Manager, E> {
    let mut manager = Manager::new(client(Actor::Reader)?)
        .with_clock(options.clock.clone())
        .with_entropy(options.entropy.clone())
        .with_watch_timeout(options.cadence.watch);
    homeostat_controllers::add(&mut manager, &options.controllers, config, |controller| {
        let account = |name| Actor::Account(homeostat_controllers::NAMESPACE, name);
        client(controller.account.map_or(Actor::Reader, account))
    })?;
    if options.controllers.contains("scheduler") {
        manager.act_through(client(Actor::Scheduler)?);
        homeostat_scheduler::add_with(&mut manager, options.scheduler.clone());
    }
    if options.nodes > 0 {
        let nodes = NodeOptions { count: options.nodes, ..options.node.clone() };
        let (namespace, account) = homeostat_node::ACCOUNT;
        manager.act_through(client(Actor::Account(namespace, account))?);
        homeostat_node::add_with(&mut manager, nodes, options.cadence.heartbeat, usage);
    }
    Ok(manager)
}
