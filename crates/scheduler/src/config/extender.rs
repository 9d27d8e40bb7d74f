//! How an extender is reached and what it is asked: an item of `extenders`.

use std::time::Duration;

use serde::Deserialize;

use super::ConfigurationError;

/// The reference's `DefaultExtenderTimeout`.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A resource that an extender looks after.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Managed {
    name: String,
    #[serde(default)]
    ignored_by_scheduler: bool,
}

/// TLS towards an extender. Data is base64.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsConfig {
    /// Don't check the server's certificate.
    #[serde(default)]
    pub insecure: bool,
    /// The name that the certificate must have.
    #[serde(default)]
    pub server_name: Option<String>,
    /// File with the client's certificate.
    #[serde(default)]
    pub cert_file: Option<String>,
    /// File with its key.
    #[serde(default)]
    pub key_file: Option<String>,
    /// File with the authorities to trust.
    #[serde(default, rename = "caFile")]
    pub ca_file: Option<String>,
    /// The client's certificate.
    #[serde(default)]
    pub cert_data: Option<String>,
    /// Its key.
    #[serde(default)]
    pub key_data: Option<String>,
    /// The authorities to trust.
    #[serde(default, rename = "caData")]
    pub ca_data: Option<String>,
}

/// A scheduler outside that is asked too.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtenderConfig {
    /// Where it is.
    pub url_prefix: String,
    #[serde(default)]
    filter_verb: Option<String>,
    #[serde(default)]
    preempt_verb: Option<String>,
    #[serde(default)]
    prioritize_verb: Option<String>,
    #[serde(default)]
    bind_verb: Option<String>,
    /// How much its scores count.
    #[serde(default)]
    pub weight: i64,
    /// Whether it is reached over TLS.
    #[serde(default, rename = "enableHTTPS")]
    pub enable_https: bool,
    /// How.
    #[serde(default)]
    pub tls_config: Option<TlsConfig>,
    #[serde(default, rename = "httpTimeout")]
    http_timeout: Option<String>,
    /// Whether it knows the nodes itself, so that names will do.
    #[serde(default)]
    pub node_cache_capable: bool,
    #[serde(default)]
    managed_resources: Vec<Managed>,
    /// Whether scheduling goes on without it where it doesn't answer.
    #[serde(default)]
    pub ignorable: bool,
}

fn set(verb: Option<&String>) -> Option<&str> {
    verb.map(String::as_str).filter(|v| !v.is_empty())
}

impl ExtenderConfig {
    /// The path of its filter, where it has one.
    pub fn filter_verb(&self) -> Option<&str> {
        set(self.filter_verb.as_ref())
    }

    /// The path of its preemption.
    pub fn preempt_verb(&self) -> Option<&str> {
        set(self.preempt_verb.as_ref())
    }

    /// The path of its scores.
    pub fn prioritize_verb(&self) -> Option<&str> {
        set(self.prioritize_verb.as_ref())
    }

    /// The path of its binding.
    pub fn bind_verb(&self) -> Option<&str> {
        set(self.bind_verb.as_ref())
    }

    /// Whether it looks after a resource.
    pub fn manages(&self, resource: &str) -> bool {
        self.managed_resources.iter().any(|m| m.name == resource)
    }

    /// Whether it looks after particular resources only.
    pub fn is_selective(&self) -> bool {
        !self.managed_resources.is_empty()
    }

    /// Resources that only it looks after.
    pub fn ignored_resources(&self) -> impl Iterator<Item = &str> {
        self.managed_resources.iter().filter(|m| m.ignored_by_scheduler).map(|m| m.name.as_str())
    }

    /// How long it may take to answer.
    pub fn timeout(&self) -> Duration {
        let parsed = self.http_timeout.as_deref().and_then(|t| t.parse::<jiff::SignedDuration>().ok());
        parsed.and_then(|d| Duration::try_from(d).ok()).filter(|d| !d.is_zero()).unwrap_or(TIMEOUT)
    }

    /// Checks what the reference checks.
    pub(super) fn check(&self, place: &str) -> Result<(), ConfigurationError> {
        let fail = |field: &str, text: String| Err(ConfigurationError::new(format!("{place}.{field}"), text));
        let url = self.url_prefix.parse::<http::Uri>();
        if !url.is_ok_and(|u| u.authority().is_some() && matches!(u.scheme_str(), Some("http" | "https"))) {
            return fail("urlPrefix", format!("Invalid value: {:?}: must be a URL", self.url_prefix));
        }
        if self.prioritize_verb().is_some() && self.weight <= 0 {
            let text = format!("Invalid value: {}: must have a positive weight applied to it", self.weight);
            return fail("weight", text);
        }
        if let Some(text) = &self.http_timeout
            && text.parse::<jiff::SignedDuration>().is_err()
        {
            return fail("httpTimeout", format!("Invalid value: {text:?}: no duration such as 5s"));
        }
        for (i, managed) in self.managed_resources.iter().enumerate() {
            if !managed.name.contains('/') || !crate::resources::is_extended(&managed.name) {
                let text = format!("Invalid value: {:?}: must be an extended resource", managed.name);
                return fail(&format!("managedResources[{i}].name"), text);
            }
            if self.managed_resources.iter().take(i).any(|m| m.name == managed.name) {
                let text = format!("duplicate extender managed resource name {}", managed.name);
                return fail(&format!("managedResources[{i}].name"), text);
            }
        }
        Ok(())
    }
}
