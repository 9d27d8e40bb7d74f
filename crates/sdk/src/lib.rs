//! The SDK of Homeostat: operators whose watches, owner references and rights follow from their types.
//!
//! An [`Operator`] names its resource and what it owns and reads. From these types follow the watches, the caches,
//! the owner references, the RBAC rules, and what compiles: applying a kind that isn't declared as owned does not.
//!
//! ```compile_fail
//! # use homeostat_sdk::{Context, Next, Operator, Result};
//! # use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
//! # struct Greeter;
//! impl Operator for Greeter {
//!     type Resource = ServiceAccount;
//!     type Owns = (ConfigMap, Secret);
//!     type Reads = ();
//!
//!     async fn reconcile(&self, _: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
//!         cx.apply(Service::default()).await?; // `Service` is not among the kinds that this operator owns
//!         Ok(Next::done())
//!     }
//! }
//! ```
//!
//! A kind that is only read can't be applied, and a kind that isn't declared can't even be read:
//!
//! ```compile_fail
//! # use homeostat_sdk::{Context, Next, Operator, Result};
//! # use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
//! # struct Greeter;
//! impl Operator for Greeter {
//!     type Resource = ServiceAccount;
//!     type Owns = (ConfigMap,);
//!     type Reads = (Secret,);
//!
//!     async fn reconcile(&self, _: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
//!         cx.apply(Secret::default()).await?;
//!         Ok(Next::done())
//!     }
//! }
//! ```
//!
//! ```compile_fail
//! # use homeostat_sdk::{Context, Next, Operator, Result};
//! # use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
//! # struct Greeter;
//! impl Operator for Greeter {
//!     type Resource = ServiceAccount;
//!     type Owns = (ConfigMap,);
//!     type Reads = (Secret,);
//!
//!     async fn reconcile(&self, _: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
//!         let service = cx.read::<Service, _>("web");
//!         Ok(Next::done())
//!     }
//! }
//! ```
//!
//! With the declarations right, all of it compiles; a kind that is written without being owned says so with
//! [`Edits`]:
//!
//! ```
//! # use homeostat_sdk::{Context, Edits, Next, Operator, Result};
//! # use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret, Service, ServiceAccount};
//! # struct Greeter;
//! impl Operator for Greeter {
//!     type Resource = ServiceAccount;
//!     type Owns = (ConfigMap, Service);
//!     type Reads = (Secret, Edits<Node>);
//!
//!     async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
//!         let secret = cx.read::<Secret, _>("password");
//!         let service = cx.apply(Service::default()).await?;
//!         let mine = cx.owned::<ConfigMap, _>();
//!         let accounts = cx.list::<ServiceAccount, _>();
//!         if let Some(node) = cx.read::<Node, _>("a") {
//!             cx.update(&*node).await?;
//!         }
//!         Ok(Next::done())
//!     }
//! }
//! ```
//!
//! Around operators there is the [`Manager`]: it shares caches, elects a leader ([`LeaderElection`]) or shares the keys
//! among replicas ([`Sharding`]), serves [webhooks](webhook), probes and metrics, and ends in order.
//!
//! kube-rs gives the client and the types; lists and watches, the cache, the queue and the runner are here. Nothing here
//! reads the system's clock or a random source: the same seed gives the same run.

mod apply;
mod cache;
pub mod conditions;
mod context;
mod dependencies;
mod dynamic;
mod election;
mod error;
mod event;
mod guard;
mod health;
mod key;
mod kinds;
mod manager;
pub mod manifests;
mod metrics;
mod object;
mod observe;
mod operator;
mod panics;
#[doc(hidden)]
pub mod placement;
mod probes;
pub mod process;
pub mod queue;
pub mod rbac;
mod recent;
mod runner;
mod serve;
mod span;
mod task;
mod watches;
pub mod webhook;
mod write;

pub use apply::{Applies, sparse, strip_nulls};
pub use cache::{Cache, CacheSize, Caches, Change, Index, Selection, WATCH_TIMEOUT};
pub use context::Context;
pub use election::{LeaderElection, Sharding};
pub use error::{Error, Result};
pub use event::{Event, Recorder};
pub use health::Health;
pub use key::Key;
pub use kinds::{Edits, Has, InOwns, Kinds, Sees, Visitor, Writes};
pub use manager::{Manager, RunError};
pub use metrics::Snapshot;
pub use object::{Object, Watched, display_kind};
pub use observe::Observer;
pub use operator::{Next, Operator, Settings};
pub use rbac::rules;
pub use task::TaskContext;
pub use tokio_util::sync::CancellationToken;
pub use watches::{View, Watches};
pub use write::{NoStatusSubresource, Writer};

pub use homeostat_model::{Clock, Entropy, Timestamp, field, selector};
