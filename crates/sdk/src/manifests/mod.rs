//! Manifests from types: CRDs, RBAC, and all that runs a program in a cluster, as pure functions.
//!
//! [`Parts`] says what a program consists of, and [`Parts::files`] what to apply for it. Nothing is read from comments
//! or from disk, so manifests can't drift from the code. The files are JSON values; whoever writes them chooses YAML.
//!
//! ```
//! # use homeostat_sdk::{Context, Next, Operator, Result};
//! # use homeostat_sdk::manifests::{Options, Parts};
//! # use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
//! # struct Greeter;
//! # impl Operator for Greeter {
//! #     type Resource = ServiceAccount;
//! #     type Owns = (ConfigMap,);
//! #     type Reads = (Secret,);
//! #     async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
//! # }
//! let mut parts = Parts::new("greeter");
//! parts.operator::<Greeter>();
//! let files = parts.files(&Options::of("greeter")).unwrap();
//! assert!(files.iter().any(|f| f.path == "rbac/role.yaml"));
//! ```

mod access;
mod definition;
mod files;
mod rights;
mod schema;
mod union;
mod workload;

#[cfg(test)]
mod tests;

use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use definition::{DefinitionError, conditions, definition, merge, union};
pub use rights::compact;
pub use schema::Fault;

use crate::operator::Operator;
use crate::webhook::Webhook;
use definition::by_kind;

/// Where metrics are served.
pub const METRICS_PORT: u16 = 8080;
/// Where probes are answered.
pub const HEALTH_PORT: u16 = 8081;
/// Where the API server asks webhooks.
pub const WEBHOOK_PORT: u16 = 9443;

/// How a program is to be run. Nothing here follows from types.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// The namespace that it runs in.
    pub namespace: String,
    /// The image of its container.
    pub image: String,
    /// Pods. One leads, the others wait.
    pub replicas: u32,
    /// It works in its own namespace only, with a Role rather than a ClusterRole.
    pub namespaced: bool,
}

impl Options {
    /// One pod of `<name>:latest` in the namespace `<name>-system`, for the whole cluster.
    pub fn of(name: &str) -> Self {
        Self {
            namespace: format!("{name}-system"),
            image: format!("{name}:latest"),
            replicas: 1,
            namespaced: false,
        }
    }
}

/// A file of manifests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// Where it belongs under `config/`, such as `rbac/role.yaml`.
    pub path: String,
    /// The objects in it.
    pub documents: Vec<Value>,
}

/// What a program consists of.
#[derive(Debug, Default)]
pub struct Parts {
    name: String,
    definitions: Vec<CustomResourceDefinition>,
    faults: Vec<DefinitionError>,
    rules: Vec<PolicyRule>,
    webhooks: Vec<Webhook>,
}

impl Parts {
    /// Nothing yet. `name` is a DNS label: it names the ServiceAccount, the Deployment, the roles.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a definition that the program brings along, from [`definition()`]. Several versions of a kind become one
    /// definition.
    pub fn definition(&mut self, definition: Result<CustomResourceDefinition, DefinitionError>) {
        match definition {
            Ok(definition) => self.definitions.push(definition),
            Err(fault) => self.faults.push(fault),
        }
    }

    /// The definitions that the program brings along, one for each kind.
    ///
    /// # Errors
    /// If a kind has no definition; all that are wrong.
    pub fn definitions(&self) -> Result<Vec<CustomResourceDefinition>, Vec<String>> {
        if !self.faults.is_empty() {
            return Err(self.faults.iter().map(ToString::to_string).collect());
        }
        by_kind(&self.definitions).map_err(|fault| vec![fault.to_string()])
    }

    /// Adds what an operator needs: its rights, and its webhooks.
    pub fn operator<O: Operator>(&mut self) {
        self.rules.extend(crate::rules::<O>());
        self.webhooks.extend(O::webhooks());
    }

    /// Adds a webhook.
    pub fn webhook(&mut self, webhook: Webhook) {
        self.webhooks.push(webhook);
    }

    /// Adds rights that follow from no type: for what goes through a client directly.
    pub fn rights(&mut self, rules: impl IntoIterator<Item = PolicyRule>) {
        self.rules.extend(rules);
    }
}
