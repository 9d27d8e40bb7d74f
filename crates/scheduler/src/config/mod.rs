//! The scheduler's configuration: `KubeSchedulerConfiguration` of `kubescheduler.config.k8s.io/v1`.
//!
//! Read strictly: what isn't known is an error that says where it stands. What is about the process around a
//! scheduler (leader election, addresses, profiling) is accepted and has no effect here.

mod args;
mod extender;
mod profile;
mod registry;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Entropy;
use serde::Deserialize;
use serde_json::Value;

pub use extender::{ExtenderConfig, TlsConfig};
pub use registry::{DEFAULT_PLUGINS, Factory, Registry};

use crate::framework::Framework;
use profile::Profile;

/// The scheduler's name where pods and profiles give none.
pub const DEFAULT_NAME: &str = "default-scheduler";
/// Extenders at most.
const MOST_EXTENDERS: usize = 16;
/// Profiles at most.
const MOST_PROFILES: usize = 32;

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{}{text}", if .place.is_empty() { "" } else { ": " })]
pub struct ConfigurationError {
    /// Path of the field.
    pub place: String,
    /// What is wrong.
    pub text: String,
}

impl ConfigurationError {
    pub(crate) fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }
}

/// A configuration, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The profiles, each under its own scheduler's name.
    pub(crate) profiles: Vec<Profile>,
    /// Schedulers outside that are asked too.
    pub extenders: Vec<ExtenderConfig>,
    /// The first wait of a pod that could not be scheduled.
    pub initial_backoff: Duration,
    /// The longest.
    pub max_backoff: Duration,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            profiles: vec![Profile::default()],
            extenders: Vec::new(),
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    profiles: Vec<Profile>,
    #[serde(default)]
    extenders: Vec<ExtenderConfig>,
    #[serde(default)]
    percentage_of_nodes_to_score: Option<u32>,
    #[serde(default)]
    pod_initial_backoff_seconds: Option<i64>,
    #[serde(default)]
    pod_max_backoff_seconds: Option<i64>,
    /// About the process around it.
    #[serde(default, rename = "parallelism")]
    _parallelism: Option<i64>,
    #[serde(default, rename = "leaderElection")]
    _leader_election: Option<Value>,
    #[serde(default, rename = "clientConnection")]
    _client_connection: Option<Value>,
    #[serde(default, rename = "enableProfiling")]
    _profiling: Option<bool>,
    #[serde(default, rename = "enableContentionProfiling")]
    _contention: Option<bool>,
    #[serde(default, rename = "delayCacheUntilActive")]
    _delay: Option<bool>,
}

impl Configuration {
    /// Reads a configuration, as `--config` of kube-scheduler.
    ///
    /// ```
    /// let text = "
    /// apiVersion: kubescheduler.config.k8s.io/v1
    /// kind: KubeSchedulerConfiguration
    /// profiles:
    /// - schedulerName: packing
    ///   pluginConfig:
    ///   - name: NodeResourcesFit
    ///     args: {scoringStrategy: {type: MostAllocated}}
    /// ";
    /// assert!(homeostat_scheduler::Configuration::parse(text).is_ok());
    /// let why = homeostat_scheduler::Configuration::parse("kind: Pod").unwrap_err();
    /// assert!(why.to_string().contains("apiVersion"));
    /// ```
    ///
    /// # Errors
    /// Says what is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, ConfigurationError> {
        Self::parse_with(text, &Registry::default())
    }

    /// As [`parse`](Self::parse), with plugins of one's own.
    ///
    /// # Errors
    /// Says what is wrong, and where.
    pub fn parse_with(text: &str, registry: &Registry) -> Result<Self, ConfigurationError> {
        let fail = |place: &str, text: &str| ConfigurationError::new(place, text);
        let mut file: File = serde_saphyr::from_str(text).map_err(|e| fail("", &e.to_string()))?;
        if file.api_version != "kubescheduler.config.k8s.io/v1" || file.kind != "KubeSchedulerConfiguration" {
            let text = format!(
                "{}, Kind={} is not kubescheduler.config.k8s.io/v1, Kind=KubeSchedulerConfiguration",
                file.api_version, file.kind
            );
            return Err(fail("apiVersion", &text));
        }
        if file.profiles.is_empty() {
            file.profiles.push(Profile::default());
        }
        for (place, n, most) in [
            ("profiles", file.profiles.len(), MOST_PROFILES),
            ("extenders", file.extenders.len(), MOST_EXTENDERS),
        ] {
            if n > most {
                return Err(fail(place, &format!("must have at most {most} items")));
            }
        }
        let seconds = |place: &str, value: Option<i64>, default: i64| {
            let value = value.unwrap_or(default);
            match u64::try_from(value) {
                Ok(s) if s > 0 => Ok(Duration::from_secs(s)),
                _ => Err(fail(place, &format!("Invalid value: {value}: must be greater than 0"))),
            }
        };
        let initial_backoff = seconds("podInitialBackoffSeconds", file.pod_initial_backoff_seconds, 1)?;
        let max_backoff = seconds("podMaxBackoffSeconds", file.pod_max_backoff_seconds, 10)?;
        if max_backoff < initial_backoff {
            return Err(fail(
                "podMaxBackoffSeconds",
                "must be greater than or equal to podInitialBackoffSeconds",
            ));
        }
        percentage("percentageOfNodesToScore", file.percentage_of_nodes_to_score)?;
        for (i, profile) in file.profiles.iter_mut().enumerate() {
            let place = format!("profiles[{i}]");
            percentage(&format!("{place}.percentageOfNodesToScore"), profile.percentage_of_nodes_to_score)?;
            if profile.percentage_of_nodes_to_score.is_none() {
                profile.percentage_of_nodes_to_score = file.percentage_of_nodes_to_score;
            }
        }
        for (i, extender) in file.extenders.iter().enumerate() {
            extender.check(&format!("extenders[{i}]"))?;
        }
        if file.extenders.iter().filter(|e| e.bind_verb().is_some()).count() > 1 {
            return Err(fail("extenders", "found 2 extenders implementing bind: only one can bind"));
        }
        let configuration =
            Self { profiles: file.profiles, extenders: file.extenders, initial_backoff, max_backoff };
        // What can't be built is wrong, too.
        configuration.frameworks(registry, &Entropy::seeded(0))?;
        Ok(configuration)
    }

    /// The frameworks, one for each profile.
    pub(crate) fn frameworks(
        &self,
        registry: &Registry,
        entropy: &Entropy,
    ) -> Result<Vec<Arc<Framework>>, ConfigurationError> {
        let mut all: Vec<Arc<Framework>> = Vec::new();
        let mut sort = None;
        for (i, profile) in self.profiles.iter().enumerate() {
            let place = format!("profiles[{i}]");
            let ignored = self.extenders.iter().flat_map(ExtenderConfig::ignored_resources);
            let (framework, own) = profile.build(&place, registry, entropy, ignored)?;
            if all.iter().any(|f| f.name == framework.name) {
                let text = format!("Duplicate value: {:?}", &*framework.name);
                return Err(ConfigurationError::new(format!("{place}.schedulerName"), text));
            }
            if *sort.get_or_insert(own) != own {
                let text = "has to be the same for all profiles: there is one queue";
                return Err(ConfigurationError::new(format!("{place}.plugins.queueSort"), text));
            }
            all.push(Arc::new(framework));
        }
        Ok(all)
    }

    /// The scheduler names that it answers to.
    pub fn names(&self) -> Vec<&str> {
        self.profiles.iter().map(Profile::name).collect()
    }
}

fn percentage(place: &str, value: Option<u32>) -> Result<(), ConfigurationError> {
    match value {
        Some(p) if p > 100 => {
            let text = format!("Invalid value: {p}: not in valid range [0-100]");
            Err(ConfigurationError::new(place, text))
        }
        _ => Ok(()),
    }
}
