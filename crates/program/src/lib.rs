//! A whole operator program: its kinds and operators, and around them flags, logs, signals, and manifests.
//!
//! [`Program`] is what a `main.rs` of one line needs; whoever wants another kind of program uses the SDK's `Manager`.
//! Invariant: what the program runs and what its manifests grant come from the same list.
//!
//! ```no_run
//! use homeostat_program::Program;
//! use homeostat_sdk::{Context, Next, Operator, Result};
//! use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
//!
//! struct Greeter;
//!
//! impl Operator for Greeter {
//!     type Resource = ServiceAccount;
//!     type Owns = (ConfigMap,);
//!     type Reads = ();
//!
//!     async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
//!         let mut greeting = ConfigMap::default();
//!         greeting.metadata.name = account.metadata.name.clone();
//!         cx.apply(greeting).await?;
//!         Ok(Next::done())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Program::new("greeter").operator(Greeter).main()
//! }
//! ```

#[cfg(feature = "opentelemetry")]
mod export;
mod flags;
mod logs;
mod run;

use std::fmt;
use std::process::ExitCode;

use homeostat_sdk::manifests::{Parts, definition};
use homeostat_sdk::webhook::{Conversion, Defaulter, Validator, Webhook};
use homeostat_sdk::{Manager, Object, Operator};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::{Client, CustomResourceExt};
use schemars::JsonSchema;

type Add = Box<dyn FnOnce(&mut Manager) + Send>;

/// A program of operators.
pub struct Program {
    version: &'static str,
    parts: Parts,
    adds: Vec<Add>,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("name", &self.parts.name()).finish_non_exhaustive()
    }
}

impl Program {
    /// A program that does nothing yet. `name` is a DNS label: `env!("CARGO_PKG_NAME")` as a rule. It names the
    /// Deployment, the ServiceAccount, the roles, the lease.
    pub fn new(name: &'static str) -> Self {
        Self { version: "", parts: Parts::new(name), adds: Vec::new() }
    }

    /// What `--version` says: `env!("CARGO_PKG_VERSION")` as a rule.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// Adds a kind, or a version of one, that the program brings along: its CustomResourceDefinition is among the
    /// manifests.
    #[must_use]
    pub fn kind<K: CustomResourceExt + JsonSchema>(mut self) -> Self {
        self.parts.definition(definition::<K>());
        self
    }

    /// Adds an operator.
    #[must_use]
    pub fn operator<O: Operator>(mut self, operator: O) -> Self {
        self.parts.operator::<O>();
        self.adds.push(Box::new(move |manager| {
            manager.add(operator);
        }));
        self
    }

    /// Adds a webhook that defaults.
    #[must_use]
    pub fn defaulting<D: Defaulter>(self, defaulter: D) -> Self {
        self.webhook(Webhook::defaulting(defaulter))
    }

    /// Adds a webhook that validates.
    #[must_use]
    pub fn validating<V: Validator>(self, validator: V) -> Self {
        self.webhook(Webhook::validating(validator))
    }

    /// Adds a conversion between the versions of a kind.
    #[must_use]
    pub fn converting<H: Object>(self, conversion: Conversion<H>) -> Self {
        self.webhook(Webhook::converting(conversion))
    }

    /// Adds a webhook.
    #[must_use]
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.parts.webhook(webhook.clone());
        self.adds.push(Box::new(move |manager| {
            manager.add_webhook(webhook);
        }));
        self
    }

    /// Adds rights that follow from no type: for what goes through a client directly.
    #[must_use]
    pub fn rights(mut self, rules: impl IntoIterator<Item = PolicyRule>) -> Self {
        self.parts.rights(rules);
        self
    }

    /// What it consists of, for manifests.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The manager that runs it, for tests and for programs that need more than [`main`](Self::main) gives.
    pub fn manager(self, client: Client) -> Manager {
        let mut manager = Manager::new(client).with_name(self.parts.name());
        self.add_to(&mut manager);
        manager
    }

    /// Adds its operators and webhooks to a manager.
    pub fn add_to(self, manager: &mut Manager) {
        for add in self.adds {
            add(manager);
        }
    }

    /// Runs the program with the flags that it was started with: until SIGTERM or Ctrl-C, or prints its manifests.
    ///
    /// With the feature `opentelemetry` it exports its traces where `OTEL_EXPORTER_OTLP_ENDPOINT` is set.
    pub fn main(self) -> ExitCode {
        run::main(self)
    }
}
