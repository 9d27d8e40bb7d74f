//! The controllers of a Kubernetes control plane: each keeps one promise of the API, on the SDK that operators use.
//!
//! In each folder a pure planner says what should happen next, and a thin operator carries it out through the API.
//! Nothing here knows the API server or the store, so the same code runs against any cluster.
//! Invariant: a reconcile that finds everything as it should be writes nothing.

mod accounts;
mod aggregation;
mod autoscaler;
mod certificates;
mod common;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
mod garbage;
mod identity;
mod job;
mod namespace;
mod node;
mod pod_gc;
mod quota;
mod replicaset;
mod root_ca;
mod statefulset;
mod storage_protection;
mod tokens;
mod ttl;
mod volume;

use std::collections::BTreeSet;
use std::time::Duration;

use homeostat_sdk::Manager;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::ReplicationController;
use kube::Client;

pub use identity::{CONTROLLERS, Controller, NAMESPACE, Right, roles};

/// What controllers have to be told.
#[derive(Clone)]
pub struct Config {
    /// The certificate authority of the API server, PEM; what `kube-root-ca.crt` publishes. May be empty.
    pub root_ca: String,
    /// Its private key, PEM; what certificates are signed with. May be empty: then none are.
    pub root_ca_key: String,
    /// How long a node may be silent, kube-controller-manager's `--node-monitor-grace-period`.
    pub node_monitor_grace: Duration,
    /// How many pods that ended may stay, kube-controller-manager's `--terminated-pod-gc-threshold`. Zero: all of them.
    pub terminated_pods: usize,
}

impl Default for Config {
    /// The reference's defaults, and no certificate authority.
    fn default() -> Self {
        let node_monitor_grace = Duration::from_secs(50);
        Self {
            root_ca: String::new(),
            root_ca_key: String::new(),
            node_monitor_grace,
            terminated_pods: 12_500,
        }
    }
}

impl std::fmt::Debug for Config {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("root_ca", &self.root_ca).finish_non_exhaustive()
    }
}

/// Adds the controllers with these names to a manager; each acts through the client that `client` gives it, as a user
/// who may do what [`roles`] and the reference's `system:controller:` roles say. What they read comes through the
/// manager's own client, who may list and watch everything.
///
/// # Errors
/// Those of `client`.
pub fn add<E>(
    manager: &mut Manager,
    names: &BTreeSet<&'static str>,
    config: &Config,
    client: impl Fn(&Controller) -> Result<Client, E>,
) -> Result<(), E> {
    for controller in CONTROLLERS.iter().filter(|c| names.contains(c.name)) {
        add_one(manager.act_through(client(controller)?), controller.name, config);
    }
    Ok(())
}

fn add_one(manager: &mut Manager, name: &str, config: &Config) {
    match name {
        "certificatesigningrequest-approving-controller" => manager.add(certificates::approve::Approving),
        "certificatesigningrequest-cleaner-controller" => manager.add(certificates::clean::Cleaning),
        "certificatesigningrequest-signing-controller" => {
            manager.add(certificates::sign::Signing::new(&config.root_ca, &config.root_ca_key))
        }
        "clusterrole-aggregation-controller" => manager.add(aggregation::Aggregation),
        "cronjob-controller" => manager.add(cronjob::CronJobs),
        "daemonset-controller" => manager.add(daemonset::DaemonSets::default()),
        "deployment-controller" => manager.add(deployment::Deployments::default()),
        "disruption-controller" => {
            manager.add(disruption::Disruption::default()).add(disruption::stale::StaleDisruptions)
        }
        "endpoints-controller" => manager.add(endpoints::subsets::Subsets::default()),
        "endpointslice-controller" => manager.add(endpoints::slices::EndpointSlices::default()),
        "endpointslice-mirroring-controller" => manager.add(endpoints::mirror::Mirror),
        "ephemeral-volume-controller" => manager.add(volume::ephemeral::EphemeralVolumes),
        garbage::NAME => manager.add_task(garbage::NAME, garbage::run),
        "horizontal-pod-autoscaler-controller" => manager.add(autoscaler::Autoscalers::default()),
        "job-controller" => manager.add(job::Jobs::default()),
        "namespace-controller" => manager.add(namespace::Namespaces),
        "node-lifecycle-controller" => {
            manager.add(node::lifecycle::NodeLifecycle::new(config.node_monitor_grace))
        }
        "persistentvolume-binder-controller" => manager
            .add(volume::claims::Claims)
            .add(volume::volumes::Volumes)
            .add_task("persistentvolume-binder-controller", volume::make_standard_class),
        "persistentvolume-expander-controller" => manager.add(volume::grow::Growth),
        "persistentvolume-protection-controller" => manager.add(storage_protection::VolumeProtection),
        "persistentvolumeclaim-protection-controller" => manager.add(storage_protection::ClaimProtection),
        "pod-garbage-collector-controller" => manager.add(pod_gc::PodGc::new(config.terminated_pods)),
        "replicaset-controller" => manager.add(replicaset::Replicas::<ReplicaSet>::default()),
        "replicationcontroller-controller" => {
            manager.add(replicaset::Replicas::<ReplicationController>::default())
        }
        "resourcequota-controller" => manager.add(quota::Quotas),
        "root-ca-certificate-publisher-controller" => {
            manager.add(root_ca::RootCa { pem: config.root_ca.clone() })
        }
        "serviceaccount-controller" => manager.add(accounts::ServiceAccounts),
        "serviceaccount-token-controller" => manager.add(tokens::Tokens { root_ca: config.root_ca.clone() }),
        "statefulset-controller" => manager.add(statefulset::StatefulSets::default()),
        "taint-eviction-controller" => manager.add(node::eviction::TaintEviction::default()),
        "ttl-after-finished-controller" => manager.add(ttl::TtlAfterFinished),
        "ttl-controller" => manager.add(node::ttl::NodeTtl::default()),
        "volumeattributesclass-protection-controller" => {
            manager.add(volume::attributes::AttributesClassProtection)
        }
        _ => manager,
    };
}
