//! The manager with operators written for it, against a server in memory, in paused time.

mod operators;
mod server;

mod context;
mod election;
mod events;
mod lifecycle;
mod metrics;
mod reading;
mod watching;

use std::time::Duration;

use homeostat_sdk::{CancellationToken, Clock, Entropy, Health, Manager, RunError};
use server::Server;
use tokio::task::JoinHandle;

pub(crate) const MAPS: &str = "/api/v1/namespaces/a/configmaps";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/a/secrets";
pub(crate) const ACCOUNTS: &str = "/api/v1/namespaces/a/serviceaccounts";

/// A manager at work.
pub(crate) struct Running {
    pub(crate) health: Health,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), RunError>>,
}

pub(crate) fn manager(server: &Server) -> Manager {
    manager_of(server.client())
}

pub(crate) fn manager_of(client: kube::Client) -> Manager {
    Manager::new(client)
        .with_clock(Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()))
        .with_entropy(Entropy::seeded(1))
}

pub(crate) fn run(manager: Manager) -> Running {
    let (health, stop) = (manager.health(), CancellationToken::new());
    let task = tokio::spawn(manager.run(stop.clone()));
    Running { health, stop, task }
}

impl Running {
    /// Lets a little (virtual) time pass: all that is due has happened then.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    pub(crate) async fn stopped(self) -> Result<(), RunError> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}
