//! A whole control plane in one process: API server, controllers, scheduler and nodes, wired together.
//!
//! Tests start one each ([`Cluster::start`], no sockets) and talk to it through an ordinary kube client; `homeostat up`
//! serves the same thing over TLS. It only wires: what a part does is that part's business.
//! Invariant: controllers, scheduler, nodes and operators reach the state through the API alone.

mod attach;
mod cadence;
pub mod controllers;
mod endpoint;
mod inprocess;
pub mod kubeconfig;
mod metrics;
mod options;
mod pace;
mod parts;
pub mod pki;
mod simulation;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use homeostat_access::User;
use homeostat_apiserver::serve::{Limits, serve};
use homeostat_apiserver::{ApiServer, Authentication, Config};
use homeostat_model::Clock;
use homeostat_store::Memory;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use attach::{AttachError, attach, leader};
pub use cadence::Cadence;
use controllers::Known;
pub use homeostat_apiserver::audit;

pub use endpoint::{Endpoint, ServeError};
pub use options::{ADMISSION_PLUGINS, ClusterOptions, OptionError};
pub use pace::{Pace, PaceError};
use parts::Actor;
use pki::Authority;
pub use simulation::simulate;

/// Issuer of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc";
/// The group of cluster administrators.
const MASTERS: &str = "system:masters";

/// The controllers that there are, the scheduler among them.
pub fn known_controllers() -> Vec<Known> {
    let mut known: Vec<Known> =
        homeostat_controllers::CONTROLLERS.iter().map(|c| Known { name: c.name, alias: c.alias }).collect();
    known.push(Known { name: "scheduler", alias: "kube-scheduler" });
    known
}

/// Why a cluster could not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a certificate authority")]
pub struct StartError(#[from] rcgen::Error);

/// A running control plane. Dropping it ends it at once; [`Cluster::stop`] ends it in order.
pub struct Cluster {
    server: ApiServer,
    clock: Clock,
    service_range: ipnet::IpNet,
    pace: Pace,
    authority: Arc<Authority>,
    /// Ends controllers, scheduler and nodes.
    parts: CancellationToken,
    /// Ends the server's edges.
    edges: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.parts.cancel();
        self.edges.cancel();
        self.server.drain();
    }
}

impl Cluster {
    /// A cluster for a test: one simulated node, all controllers, no sockets.
    ///
    /// # Errors
    /// As [`Cluster::with`].
    pub async fn start() -> Result<Self, StartError> {
        Self::with(ClusterOptions::default()).await
    }

    /// A cluster of one's own making. It is ready when this returns: the server answers, and what a fresh server
    /// makes for itself is there; controllers are starting.
    ///
    /// # Errors
    /// If no certificate authority can be made.
    pub async fn with(options: ClusterOptions) -> Result<Self, StartError> {
        let name = "homeostat-ca";
        let authority = Arc::new(if options.simulated {
            Authority::simulated(name, options.clock.now(), &options.entropy)?
        } else {
            Authority::new(name, options.clock.now())?
        });
        let store = Arc::new(Memory::new());
        let mut config = Config::new(store);
        config.clock = options.clock.clone();
        config.entropy = options.entropy.clone();
        config.service_cluster_ip_range = options.service_range;
        config.disabled_admission_plugins = options.disabled_admission.clone();
        config.enabled_admission_plugins = options.enabled_admission();
        config.authentication = Authentication {
            token_file: options.tokens.clone(),
            issuer: Some(ISSUER.to_owned()),
            ..Authentication::default()
        };
        config.audit.clone_from(&options.audit);
        config.bookmark_every = options.cadence.bookmark;
        config.roles = parts::roles(options.nodes > 0);
        let usage = homeostat_node::Metrics::default();
        if options.nodes > 0 {
            config.computed = metrics::resources(&usage);
        }
        if let Some(address) = options.advertise {
            config.advertise = address.to_string();
        }
        let cluster = Self {
            server: ApiServer::new(config),
            clock: options.clock.clone(),
            service_range: options.service_range,
            pace: options.pace,
            authority,
            parts: CancellationToken::new(),
            edges: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        cluster.run_parts(&options, &usage);
        Ok(cluster)
    }

    fn run_parts(&self, options: &ClusterOptions, usage: &homeostat_node::Metrics) {
        let config = parts::config(options, self.authority.pem().to_owned(), self.authority.key_pem());
        let client = |actor: Actor| Ok(inprocess::client(self.server.clone(), actor.user()));
        let Ok(manager) = parts::manager::<Infallible>(options, &config, usage, client);
        let stop = self.parts.clone();
        self.tasks.spawn(async move {
            if let Err(e) = manager.run(stop).await {
                tracing::error!(error = %e, "the cluster's own controllers ended");
            }
        });
    }

    /// A client with all rights, inside this process.
    pub fn client(&self) -> kube::Client {
        self.client_as("kubernetes-admin", &[MASTERS])
    }

    /// A client that acts as a user; `system:authenticated` is added to the groups.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> kube::Client {
        let groups =
            groups.iter().map(|g| (*g).to_owned()).chain(["system:authenticated".to_owned()]).collect();
        inprocess::client(self.server.clone(), User { name: user.to_owned(), groups, ..User::default() })
    }

    /// The cluster's time.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The API server itself, a tower service.
    pub fn server(&self) -> ApiServer {
        self.server.clone()
    }

    /// Serves over TLS on `listener`, with a certificate authority of its own.
    pub async fn serve(&self, listener: TcpListener) -> Result<Endpoint, ServeError> {
        let (endpoint, tls) = Endpoint::new(
            self.authority.clone(),
            listener.local_addr()?,
            self.service_range,
            self.clock.now(),
        )?;
        let usual = Limits::default();
        let limits = Limits {
            handshake: self.pace.outside(usual.handshake),
            head: self.pace.outside(usual.head),
            drain: self.pace.outside(usual.drain),
            ..usual
        };
        let edge = serve(self.server.clone(), listener, Some(tls), limits, self.edges.clone());
        self.tasks.spawn(async move {
            if let Err(e) = edge.await {
                tracing::error!(error = %e, "the TLS edge ended");
            }
        });
        Ok(endpoint)
    }

    /// Ends it in order: first the parts, then the server's watches and connections; at the latest after `patience` of
    /// the machine's time.
    pub async fn stop(self, patience: Duration) {
        let end = async {
            self.parts.cancel();
            self.server.drain();
            self.edges.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        };
        let _ = tokio::time::timeout(self.pace.outside(patience), end).await;
    }
}
