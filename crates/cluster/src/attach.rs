//! Controllers, scheduler and simulated nodes for an API server that somebody else runs: an envtest's, say, which has
//! none of its own.
//!
//! Who attaches them must be allowed to impersonate, since each part acts as a user of its own here too. Invariant: they
//! work only while they hold the lease that kube-controller-manager works under, so that neither it nor a second copy of
//! them works against them. A cluster of ours ([`Cluster::with`](crate::Cluster::with)) runs its own parts without it.

use std::time::Duration;

use homeostat_model::Clock;
use homeostat_sdk::{LeaderElection, RunError};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Config};
use pem::{EncodeConfig, LineEnding, Pem};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ClusterOptions;
use crate::parts::{self, Actor};

/// The lease, namespace and name, that kube-controller-manager elects its leader by.
const LEASE: (&str, &str) = ("kube-system", "kube-controller-manager");
/// The field manager of the roles.
const MANAGER: &str = "homeostat";

/// Why the parts could not be attached, or ended otherwise than they should.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The configuration leads to no client.
    #[error("can't make a client for {0}: {1}")]
    Client(String, #[source] Box<kube::Error>),
    /// Impersonation is not permitted, or the server can't be reached.
    #[error(
        "the parts can't act as users of their own ({0}); it takes the right to impersonate, which a cluster's administrator has"
    )]
    Impersonation(#[source] Box<kube::Error>),
    /// The roles that the parts need can't be made.
    #[error("can't apply the roles that controllers and nodes need: {0}")]
    Roles(#[source] Box<kube::Error>),
    /// They ended badly.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Who leads at the moment, by the lease: somebody else, for whom [`attach`] would wait.
///
/// # Errors
/// If the server can't be reached, or doesn't let `client` see.
pub async fn leader(client: &Client, clock: &Clock) -> Result<Option<String>, kube::Error> {
    let (namespace, name) = LEASE;
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(name).await?;
    let Some(spec) = lease.and_then(|l| l.spec) else { return Ok(None) };
    let lasts =
        Duration::from_secs(spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).unwrap_or(0));
    let held =
        spec.renew_time.is_some_and(|t| t.0.saturating_add(lasts).is_ok_and(|until| until > clock.now()));
    Ok(spec.holder_identity.filter(|holder| held && !holder.is_empty()))
}

/// Runs the parts that `options` name on the API server that `config` leads to, until `shutdown` is cancelled: as soon
/// as no other kube-controller-manager leads there, and until one does. What the options say of the server is not
/// looked at.
///
/// The roles that the parts need beyond the reference's are applied first. Certificates are not signed, since the
/// authority's key is not known here; usage of nodes and pods is not served (`metrics.k8s.io`), since that takes a
/// server.
///
/// # Errors
/// If the server can't be reached, or `config` is not an administrator's.
pub async fn attach(
    config: &Config,
    options: &ClusterOptions,
    shutdown: CancellationToken,
) -> Result<(), AttachError> {
    let connect = |config: Config| {
        let url = config.cluster_url.to_string();
        Client::try_from(config).map_err(|e| AttachError::Client(url, Box::new(e)))
    };
    let client = |actor| connect(impersonating(config, actor));
    let reader = client(Actor::Reader)?;
    reader.apiserver_version().await.map_err(|e| AttachError::Impersonation(Box::new(e)))?;
    let own = connect(config.clone())?;
    for role in parts::roles(options.nodes > 0) {
        apply(&own, &role).await.map_err(|e| AttachError::Roles(Box::new(e)))?;
    }
    let controllers = parts::config(options, authorities(config), String::new());
    let usage = homeostat_node::Metrics::default();
    let (namespace, lease) = LEASE;
    let election = LeaderElection::new(lease).in_namespace(namespace);
    let manager = parts::manager(options, &controllers, &usage, client)?.with_leader_election(election);
    Ok(manager.run(shutdown).await?)
}

/// The configuration, as another user.
fn impersonating(config: &Config, actor: Actor) -> Config {
    let mut config = config.clone();
    config.auth_info.impersonate = Some(actor.user().name);
    // The server adds the groups that such a user has.
    config.auth_info.impersonate_groups = None;
    config
}

/// The certificates that the server is known by, PEM.
fn authorities(config: &Config) -> String {
    let encode = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let all = config.root_cert.iter().flatten();
    all.map(|der| pem::encode_config(&Pem::new("CERTIFICATE", der.clone()), encode)).collect()
}

/// Applies a role or a binding.
async fn apply(client: &Client, object: &Value) -> Result<(), kube::Error> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let (params, patch) = (PatchParams::apply(MANAGER).force(), Patch::Apply(object));
    if object["kind"] == "ClusterRole" {
        Api::<ClusterRole>::all(client.clone()).patch(name, &params, &patch).await?;
    } else {
        Api::<ClusterRoleBinding>::all(client.clone()).patch(name, &params, &patch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_parts_need_is_cluster_roles_and_their_bindings() {
        for role in parts::roles(true) {
            assert!(matches!(role["kind"].as_str(), Some("ClusterRole" | "ClusterRoleBinding")), "{role}");
        }
    }
}
