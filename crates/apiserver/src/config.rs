//! What an API server is made of: everything that differs between a test, a laptop and a shared store is a field
//! here. It holds no running thing but the store, the clock and the entropy.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::{Clock, Entropy};
use homeostat_store::Store;

use crate::audit::Audit;
use crate::computed::Computed;
use crate::meta::Meta;

/// Plugins that need a controller to undo what they do.
const NEED_CONTROLLERS: [&str; 2] = ["StorageObjectInUseProtection", "TaintNodesByCondition"];

/// Time between the bookmarks of a watch, as the reference has it.
pub const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// Configuration of an [`crate::ApiServer`].
#[derive(Clone)]
pub struct Config {
    /// Where objects are kept.
    pub store: Arc<dyn Store<Meta>>,
    /// Time.
    pub clock: Clock,
    /// Chance: uids, generated names, watch timeouts.
    pub entropy: Entropy,
    /// Who may be whom.
    pub authentication: Authentication,
    /// Range of cluster addresses for Services, such as `10.96.0.0/16`.
    pub service_cluster_ip_range: ipnet::IpNet,
    /// Range of node ports, inclusive.
    pub service_node_ports: (u16, u16),
    /// Names of built-in admission plugins that are off, such as `ServiceAccount`.
    pub disabled_admission_plugins: Vec<String>,
    /// Names of built-in admission plugins that are off unless named here, because what they add is taken away again
    /// by a controller: `StorageObjectInUseProtection`, `TaintNodesByCondition`.
    pub enabled_admission_plugins: Vec<String>,
    /// Address (`host:port`) that `/api` tells clients and the `kubernetes` Service points to.
    pub advertise: String,
    /// What `/version` says.
    pub version: Version,
    /// Roles and bindings that a fresh server has besides the reference's: for parts of a cluster that come with it.
    pub roles: Vec<serde_json::Value>,
    /// Resources that are computed, not stored.
    pub computed: Vec<Arc<dyn Computed>>,
    /// Time between the bookmarks of a watch.
    pub bookmark_every: Duration,
    /// Is told of requests.
    pub audit: Option<Arc<dyn Audit>>,
    /// Requests that may be under way at a time.
    pub most: InFlight,
}

/// Requests that may be under way at a time; those beyond are told to come back (429).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Reading requests, watches aside; the reference's default.
    pub reading: usize,
    /// Writing requests; the reference's default.
    pub writing: usize,
    /// Watches and other long-running requests. The reference has no number for them (it only slows down how many may
    /// begin at a time); here each costs some kilobytes, so there is one.
    pub watching: usize,
}

impl Default for InFlight {
    fn default() -> Self {
        Self { reading: 400, writing: 200, watching: 50_000 }
    }
}

impl Config {
    /// A server on this store with the system's clock and chance, and defaults as the reference has them.
    pub fn new(store: Arc<dyn Store<Meta>>) -> Self {
        Self {
            store,
            clock: Clock::system(),
            entropy: Entropy::system(),
            authentication: Authentication::default(),
            service_cluster_ip_range: ipnet::IpNet::V4(ipnet::Ipv4Net::new_assert([10, 96, 0, 0].into(), 16)),
            service_node_ports: (30_000, 32_767),
            disabled_admission_plugins: Vec::new(),
            enabled_admission_plugins: Vec::new(),
            advertise: "127.0.0.1:6443".to_owned(),
            version: Version::default(),
            roles: Vec::new(),
            computed: Vec::new(),
            bookmark_every: BOOKMARK_EVERY,
            audit: None,
            most: InFlight::default(),
        }
    }

    /// Whether a built-in admission plugin is on.
    pub fn admits(&self, plugin: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|p| p == plugin);
        let asked = !NEED_CONTROLLERS.contains(&plugin) || named(&self.enabled_admission_plugins);
        asked && !named(&self.disabled_admission_plugins)
    }
}

/// Sources of identity besides client certificates (which the TLS edge has verified) and in-process users.
#[derive(Clone, Default)]
pub struct Authentication {
    /// Text of a token file: lines of `token,user,uid,"group1,group2"`.
    pub token_file: Option<String>,
    /// Key that signs service account tokens, in PEM (PKCS#8, P-256); without it one is made when first needed.
    pub service_account_key: Option<String>,
    /// Issuer of service account tokens.
    pub issuer: Option<String>,
}

/// What `/version` says.
#[derive(Clone, Debug)]
pub struct Version {
    /// Semantic version with a leading `v`.
    pub git_version: String,
    /// Commit, or empty.
    pub git_commit: String,
    /// Build date in RFC 3339, or empty.
    pub build_date: String,
}

impl Default for Version {
    fn default() -> Self {
        Self {
            git_version: format!("v1.36.2+homeostat.{}", env!("CARGO_PKG_VERSION")),
            git_commit: String::new(),
            build_date: "1970-01-01T00:00:00Z".to_owned(),
        }
    }
}
