//! What a cluster is made of, with the checks that the command line and tests share.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use homeostat_apiserver::audit::Audit;
use homeostat_model::{Clock, Entropy};
use homeostat_node::{NodeOptionError, NodeOptions};
use ipnet::IpNet;

use crate::cadence::Cadence;
use crate::controllers::{self, UnknownController};
use crate::pace::Pace;

/// The reference's admission plugins. Leaving one out that this server never had changes nothing.
pub const ADMISSION_PLUGINS: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodSecurity",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// An option that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// A controller that there isn't.
    #[error("--controllers: {0}")]
    Controller(#[from] UnknownController),
    /// An admission plugin that there isn't.
    #[error("--disable-admission-plugins: there is no plugin {name:?}; there are {}", ADMISSION_PLUGINS.join(", "))]
    Admission {
        /// The name in question.
        name: String,
    },
    /// Something that is no range of addresses, or one of another size than the reference takes.
    #[error("--service-cluster-ip-range: {text:?} {why}; write one such as 10.96.0.0/16")]
    ServiceRange {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nodes that there can't be.
    #[error(transparent)]
    Nodes(#[from] NodeOptionError),
    /// A token file that isn't one.
    #[error("--token-auth-file: {0}")]
    Tokens(String),
    /// A file that doesn't configure a scheduler.
    #[error("--scheduler-config: {0}")]
    Scheduler(#[from] homeostat_scheduler::ConfigurationError),
}

/// What a cluster is made of. The default is a test's: one node, all controllers.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Simulated nodes.
    pub nodes: usize,
    /// What each of them has; how many there are `nodes` says.
    pub node: NodeOptions,
    /// Controllers that run, by name.
    pub controllers: BTreeSet<&'static str>,
    /// How many pods that ended may stay, kube-controller-manager's `--terminated-pod-gc-threshold`.
    pub terminated_pods: usize,
    /// How the scheduler decides.
    pub scheduler: homeostat_scheduler::Configuration,
    /// Admission plugins that are left out.
    pub disabled_admission: Vec<String>,
    /// Range of the Services' cluster addresses.
    pub service_range: IpNet,
    /// Text of a token file for further users.
    pub tokens: Option<String>,
    /// Is told of requests to the server.
    pub audit: Option<Arc<dyn Audit>>,
    /// Where clients outside will find the server; what the `kubernetes` Service points to.
    pub advertise: Option<SocketAddr>,
    /// Time.
    pub clock: Clock,
    /// Chance.
    pub entropy: Entropy,
    /// How often its parts show that they are alive.
    pub cadence: Cadence,
    /// How much faster than the machine's time it passes.
    pub pace: Pace,
    /// Whether even the certificate authority's key comes from `entropy`, so that a seed determines every byte. Such a
    /// key is no secret.
    pub simulated: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            nodes: 1,
            node: NodeOptions::default(),
            controllers: crate::known_controllers().iter().map(|k| k.name).collect(),
            terminated_pods: homeostat_controllers::Config::default().terminated_pods,
            scheduler: homeostat_scheduler::Configuration::default(),
            disabled_admission: Vec::new(),
            service_range: IpNet::V4(ipnet::Ipv4Net::new_assert([10, 96, 0, 0].into(), 16)),
            tokens: None,
            audit: None,
            advertise: None,
            clock: Clock::system(),
            entropy: Entropy::system(),
            cadence: Cadence::default(),
            pace: Pace::default(),
            simulated: false,
        }
    }
}

impl ClusterOptions {
    /// Takes `--time`: on a runtime of this pace, the cluster's clock begins now and follows it.
    pub fn paced(&mut self, pace: Pace) {
        self.clock = Clock::starting_at(Clock::system().now());
        self.pace = pace;
    }

    /// Takes the reference's `--controllers` list.
    pub fn controllers(&mut self, list: &str) -> Result<(), OptionError> {
        self.controllers = controllers::parse(list, &crate::known_controllers())?;
        Ok(())
    }

    /// Takes a number of nodes, what each has, such as `cpu=32,memory=128Gi,nvidia.com/gpu=8`, and labels, such as
    /// `zone=a|b|c`; the lists may be empty.
    pub fn nodes(&mut self, count: usize, capacity: &str, labels: &str) -> Result<(), OptionError> {
        self.node = NodeOptions::parse(count, capacity, labels)?;
        self.nodes = count;
        Ok(())
    }

    /// Takes the text of a `KubeSchedulerConfiguration`.
    pub fn scheduler(&mut self, yaml: &str) -> Result<(), OptionError> {
        self.scheduler = homeostat_scheduler::Configuration::parse(yaml)?;
        Ok(())
    }

    /// Takes the reference's `--disable-admission-plugins` list.
    pub fn disabled_admission(&mut self, plugins: &[String]) -> Result<(), OptionError> {
        if let Some(name) = plugins.iter().find(|p| !ADMISSION_PLUGINS.contains(&p.as_str())) {
            return Err(OptionError::Admission { name: name.clone() });
        }
        self.disabled_admission = plugins.to_vec();
        Ok(())
    }

    /// Plugins that make work for a controller, and so run only where that does.
    pub(crate) fn enabled_admission(&self) -> Vec<String> {
        let pairs = [
            ("StorageObjectInUseProtection", "persistentvolumeclaim-protection-controller"),
            ("TaintNodesByCondition", "node-lifecycle-controller"),
        ];
        let wanted = |plugin: &str, controller: &str| {
            self.controllers.contains(controller) && !self.disabled_admission.iter().any(|d| d == plugin)
        };
        pairs.iter().filter(|(p, c)| wanted(p, c)).map(|(p, _)| (*p).to_owned()).collect()
    }

    /// Takes the reference's `--service-cluster-ip-range`.
    pub fn service_range(&mut self, text: &str) -> Result<(), OptionError> {
        let fail = |why| OptionError::ServiceRange { text: text.to_owned(), why };
        let range: IpNet = text.parse().map_err(|_| fail("is no range of addresses"))?;
        // The reference: at least eight addresses, at most 2^20.
        match range.max_prefix_len() - range.prefix_len() {
            0..3 => Err(fail("is too small")),
            3..=20 => {
                self.service_range = range.trunc();
                Ok(())
            }
            _ => Err(fail("is too large (at most 20 bits)")),
        }
    }

    /// Takes the text of a token file: lines of `token,user,uid,"group1,group2"`.
    pub fn tokens(&mut self, csv: &str) -> Result<(), OptionError> {
        homeostat_access::authn::token_file::TokenFile::parse(csv)
            .map_err(|e| OptionError::Tokens(e.to_string()))?;
        self.tokens = Some(csv.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_ranges_have_the_references_sizes() {
        let mut options = ClusterOptions::default();
        for (text, ok) in [
            ("10.96.0.0/16", true),
            ("10.96.0.0/12", true),
            ("10.0.0.0/8", false),
            ("10.96.0.0/29", true),
            ("10.96.0.0/30", false),
            ("fd00::/112", true),
            ("10.96.0.0", false),
            ("services", false),
        ] {
            assert_eq!(options.service_range(text).is_ok(), ok, "{text}");
        }
    }

    #[test]
    fn unknown_plugins_are_refused_by_name() {
        let mut options = ClusterOptions::default();
        options.disabled_admission(&["ServiceAccount".into()]).unwrap();
        let why = options.disabled_admission(&["ServiceAcount".into()]).unwrap_err().to_string();
        assert!(
            why.starts_with("--disable-admission-plugins: there is no plugin \"ServiceAcount\"; there are "),
            "{why}"
        );
    }
}
