//! Webhooks: what an operator says of objects before they are stored, and between versions of a kind.
//!
//! A [`Defaulter`] fills in what a person left open, a [`Validator`] accepts or denies, a [`Conversion`] turns one
//! version into another. They are declared with the operator ([`Operator::webhooks`](crate::Operator::webhooks)) or
//! given to a manager ([`Manager::with_webhook`](crate::Manager::with_webhook)), are served by the same process, and
//! the rest follows: paths, certificates, and the configurations that make the API server ask.
//! Invariant: nothing that a request holds ends the process; a panic is the answer 500 to one request.
//!
//! ```
//! use homeostat_sdk::field;
//! use homeostat_sdk::webhook::{Admission, Defaulter, Denied, Validator, Webhook};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! struct Rules;
//!
//! impl Defaulter for Rules {
//!     type Resource = ConfigMap;
//!
//!     async fn default(&self, map: &mut ConfigMap, _: &Admission) -> Result<(), Denied> {
//!         map.immutable.get_or_insert(false);
//!         Ok(())
//!     }
//! }
//!
//! impl Validator for Rules {
//!     type Resource = ConfigMap;
//!
//!     async fn validate_create(&self, map: &ConfigMap, cx: &Admission) -> Result<(), Denied> {
//!         if map.data.is_none() {
//!             cx.warn("a ConfigMap without data does nothing");
//!         }
//!         Ok(())
//!     }
//!
//!     async fn validate_update(&self, old: &ConfigMap, new: &ConfigMap, _: &Admission) -> Result<(), Denied> {
//!         if old.data.is_some() && new.data.is_none() {
//!             return Err(field::Error::required("data", "it can't be taken away").into());
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let webhooks = [Webhook::defaulting(Rules), Webhook::validating(Rules)];
//! assert_eq!(webhooks[0].path(), "/mutate--v1-configmap");
//! ```

mod admission;
mod certificates;
mod configuration;
mod conversion;
mod options;
mod overlay;
mod review;
mod server;
mod upkeep;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use serde_json::Value;

pub use admission::{Admission, Denied, Operation};
pub use configuration::{Configurations, Reach, configurations, rules};
pub use conversion::Conversion;
pub use options::WebhookOptions;
pub(crate) use options::{Webhooks, start};

use crate::object::Object;

/// Fills in what the author of an object left open, before it is validated and stored.
///
/// It is asked for creations and updates. It must be idempotent: what it has defaulted it may be shown again.
pub trait Defaulter: Send + Sync + 'static {
    /// What it is asked about.
    type Resource: Object;

    /// Changes `object` as it should be. Only what this function changes is changed in the request: fields that the
    /// type doesn't know stay.
    fn default(
        &self,
        object: &mut Self::Resource,
        cx: &Admission,
    ) -> impl Future<Output = Result<(), Denied>> + Send;
}

/// Accepts or denies what is asked of the API server. What isn't overridden is accepted.
pub trait Validator: Send + Sync + 'static {
    /// What it is asked about.
    type Resource: Object;

    /// The operations that it is asked about.
    ///
    /// Deletions aren't among them by default: while the operator is down, nothing that a webhook must see can be
    /// deleted, nor can its namespace. Add [`Operation::Delete`] where [`validate_delete`](Self::validate_delete) is
    /// written.
    const OPERATIONS: &'static [Operation] = &[Operation::Create, Operation::Update];

    /// Whether `object` may be created.
    fn validate_create(
        &self,
        object: &Self::Resource,
        cx: &Admission,
    ) -> impl Future<Output = Result<(), Denied>> + Send {
        let _ = (object, cx);
        async { Ok(()) }
    }

    /// Whether `old` may become `new`.
    fn validate_update(
        &self,
        old: &Self::Resource,
        new: &Self::Resource,
        cx: &Admission,
    ) -> impl Future<Output = Result<(), Denied>> + Send {
        let _ = (old, new, cx);
        async { Ok(()) }
    }

    /// Whether `object` may be deleted. It is asked only where [`OPERATIONS`](Self::OPERATIONS) say so.
    fn validate_delete(
        &self,
        object: &Self::Resource,
        cx: &Admission,
    ) -> impl Future<Output = Result<(), Denied>> + Send {
        let _ = (object, cx);
        async { Ok(()) }
    }
}

/// What kind of question a webhook answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// [`Defaulter`].
    Mutating,
    /// [`Validator`].
    Validating,
    /// [`Conversion`].
    Converting,
}

/// The kind that a webhook is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// API group; empty for the core group.
    pub group: String,
    /// Version; of a conversion, the version that all others go through.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Plural, as the path has it.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Target {
    fn of<K: Object>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespaced: K::is_namespaced(),
        }
    }
}

/// The Secret that keeps the certificate of the webhooks of the manager `name`.
pub fn secret_name(name: &str) -> String {
    format!("{name}-webhook-cert")
}

/// The Service by which the webhooks of the manager `name` are reached, where nothing else is said.
pub fn service_name(name: &str) -> String {
    format!("{name}-webhook")
}

/// Answers the review in `request` (the inside of an AdmissionReview or ConversionReview) with a response.
type Handler = Arc<dyn Fn(Value, Option<Client>) -> BoxFuture<'static, Value> + Send + Sync>;

/// A webhook of any kind: what it is about, how it is asked, and who answers. Cheap to clone.
#[derive(Clone)]
pub struct Webhook {
    pub(crate) role: Role,
    pub(crate) target: Target,
    pub(crate) operations: Vec<Operation>,
    pub(crate) ignore_failures: bool,
    pub(crate) timeout: Duration,
    pub(crate) match_conditions: Vec<MatchCondition>,
    pub(crate) namespace_selector: Option<LabelSelector>,
    pub(crate) object_selector: Option<LabelSelector>,
    handler: Handler,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("role", &self.role)
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl Webhook {
    fn new(role: Role, target: Target, operations: &[Operation], handler: Handler) -> Self {
        Self {
            role,
            target,
            operations: operations.to_vec(),
            ignore_failures: false,
            timeout: Duration::from_secs(10),
            match_conditions: Vec::new(),
            namespace_selector: None,
            object_selector: None,
            handler,
        }
    }

    /// A webhook that defaults.
    pub fn defaulting<D: Defaulter>(defaulter: D) -> Self {
        let defaulter = Arc::new(defaulter);
        let target = Target::of::<D::Resource>();
        let about = target.clone();
        let handler: Handler = Arc::new(move |request, client| {
            let (defaulter, about) = (defaulter.clone(), about.clone());
            review::defaulting::<D>(defaulter, about, request, client).boxed()
        });
        Self::new(Role::Mutating, target, &[Operation::Create, Operation::Update], handler)
    }

    /// A webhook that validates.
    pub fn validating<V: Validator>(validator: V) -> Self {
        let validator = Arc::new(validator);
        let target = Target::of::<V::Resource>();
        let about = target.clone();
        let handler: Handler = Arc::new(move |request, client| {
            let (validator, about) = (validator.clone(), about.clone());
            review::validating::<V>(validator, about, request, client).boxed()
        });
        Self::new(Role::Validating, target, V::OPERATIONS, handler)
    }

    /// A webhook that converts between the versions of a kind.
    pub fn converting<H: Object>(conversion: Conversion<H>) -> Self {
        let target = conversion.target();
        let conversion = Arc::new(conversion);
        let handler: Handler = Arc::new(move |request, _| {
            let conversion = conversion.clone();
            async move { conversion.review(&request) }.boxed()
        });
        Self::new(Role::Converting, target, &[], handler)
    }

    /// Lets requests through unanswered where the operator can't be reached, rather than failing them. Not for rules
    /// that must hold.
    #[must_use]
    pub fn ignore_failures(mut self) -> Self {
        self.ignore_failures = true;
        self
    }

    /// How long the API server waits for an answer: 1 s to 30 s, 10 s where it isn't said.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.clamp(Duration::from_secs(1), Duration::from_secs(30));
        self
    }

    /// Only what this CEL expression holds for is asked about, such as `object.spec.replicas > 1`. `name` tells it
    /// from others.
    #[must_use]
    pub fn when(mut self, name: impl Into<String>, expression: impl Into<String>) -> Self {
        self.match_conditions.push(MatchCondition { name: name.into(), expression: expression.into() });
        self
    }

    /// Only objects in namespaces with these labels are asked about.
    #[must_use]
    pub fn in_namespaces(mut self, selector: LabelSelector) -> Self {
        self.namespace_selector = Some(selector);
        self
    }

    /// Only objects with these labels are asked about.
    #[must_use]
    pub fn labelled(mut self, selector: LabelSelector) -> Self {
        self.object_selector = Some(selector);
        self
    }

    /// What kind of question it answers.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What it is about.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The path that it is served under: controller-runtime's `/mutate-<group>-<version>-<kind>`, `/validate-…`, and
    /// `/convert` for all conversions.
    pub fn path(&self) -> String {
        let prefix = match self.role {
            Role::Mutating => "mutate",
            Role::Validating => "validate",
            Role::Converting => return "/convert".to_owned(),
        };
        let Target { group, version, kind, .. } = &self.target;
        format!("/{prefix}-{}-{version}-{}", group.replace('.', "-"), kind.to_lowercase())
    }

    /// Its name within its configuration, such as `default.v1.redisclusters.cache.example.com`.
    pub fn name(&self) -> String {
        let verb = match self.role {
            Role::Mutating => "default",
            Role::Validating => "validate",
            Role::Converting => "convert",
        };
        let Target { group, version, plural, .. } = &self.target;
        let group = if group.is_empty() { "core" } else { group };
        format!("{verb}.{version}.{plural}.{group}")
    }

    /// Answers one review as the server would: `review` is a whole AdmissionReview or ConversionReview (v1), and so is
    /// the answer. For tests of webhooks without a server.
    ///
    /// ```
    /// # use homeostat_sdk::webhook::{Admission, Denied, Validator, Webhook};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # struct Nothing;
    /// # impl Validator for Nothing { type Resource = ConfigMap; }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let review = serde_json::json!({
    ///     "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
    ///     "request": {"uid": "1", "operation": "CREATE", "object": {"metadata": {"name": "a"}}},
    /// });
    /// let answer = Webhook::validating(Nothing).answer(review, None).await;
    /// assert_eq!(answer["response"]["allowed"], true);
    /// # }
    /// ```
    pub async fn answer(&self, review: Value, client: Option<Client>) -> Value {
        review::answer(self, review, client).await.0
    }
}
