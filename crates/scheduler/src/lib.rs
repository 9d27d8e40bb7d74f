//! The scheduler: gives each pending pod a node that can run it.
//!
//! [`framework`] and [`plugins`] are pure functions of a [`snapshot`] of nodes and pods; the loop around them speaks
//! only the Kubernetes API. Plugins of one's own come in through a [`Registry`], other programs through extenders,
//! and a [`Configuration`] says what is in force. It does not start pods.
//! Invariant: a pod is bound at most once, and never to a node that a filter refused.

pub mod config;
pub mod extender;
pub mod framework;
pub mod plugins;
pub mod queue;
pub mod resources;
mod run;
pub mod snapshot;

use homeostat_sdk::Manager;

pub use config::{Configuration, ConfigurationError, Registry};

/// Adds the scheduler to a manager, as the reference's is without a configuration.
pub fn add(manager: &mut Manager) {
    add_with(manager, Configuration::default());
}

/// Adds the scheduler with a configuration.
pub fn add_with(manager: &mut Manager, configuration: Configuration) {
    add_with_plugins(manager, configuration, Registry::default());
}

/// Adds the scheduler with a configuration and plugins of one's own, against which it was read
/// ([`Configuration::parse_with`]).
pub fn add_with_plugins(manager: &mut Manager, configuration: Configuration, registry: Registry) {
    manager.add_task(config::DEFAULT_NAME, move |cx| run::run(cx, configuration.clone(), registry.clone()));
}
