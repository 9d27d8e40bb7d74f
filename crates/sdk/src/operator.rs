//! What an operator is: a resource, the kinds it owns and reads, and a function that makes the world match.
//!
//! An operator holds no state about objects. It is given a whole object and what is cached of the rest, writes what
//! is missing, and says when to come again. It may be called at any time, for any key, any number of times.

use std::time::Duration;

use crate::context::Context;
use crate::error::Result;
use crate::key::Key;
use crate::kinds::Kinds;
use crate::object::Object;
use crate::queue::Backoff;
use crate::watches::Watches;
use crate::webhook::Webhook;

/// When to look at a key again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub(crate) after: Option<Duration>,
}

impl Next {
    /// When something changes.
    pub const fn done() -> Self {
        Self { after: None }
    }

    /// When something changes, and at the latest after `delay`.
    pub const fn after(delay: Duration) -> Self {
        Self { after: Some(delay) }
    }

    /// At the latest after the earlier of the two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { after: [self.after, other.after].into_iter().flatten().min() }
    }
}

/// How an operator is run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Reconciles of different keys at a time. One key is never in two.
    pub concurrency: usize,
    /// A reconcile that takes longer is dropped and counts as failed.
    pub timeout: Option<Duration>,
    /// Delays after failures.
    pub backoff: Backoff,
    /// How often every object is looked at again, with low priority, though nothing changed: a net under what the
    /// operator does outside of the cluster. `None` for never.
    pub resync: Option<Duration>,
    /// After a reconcile that went well, the key comes back after this at the earliest, and while changes keep coming,
    /// when none came for this long, or after five times as long; they are looked at together. For operators that count
    /// many children, whose every change would else be a write of a status. Zero, the default: as soon as something
    /// changes.
    pub gather: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 8,
            timeout: None,
            backoff: Backoff::default(),
            resync: Some(Duration::from_secs(10 * 3600)),
            gather: Duration::ZERO,
        }
    }
}

/// Makes the world match what a resource says.
///
/// ```
/// use std::time::Duration;
/// use homeostat_sdk::{Context, Next, Operator, Result};
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
///
/// struct Greeter;
///
/// impl Operator for Greeter {
///     type Resource = ServiceAccount;
///     type Owns = (ConfigMap,);
///     type Reads = (Secret,);
///
///     async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
///         let mut greeting = ConfigMap::default();
///         greeting.metadata.name = account.metadata.name.clone();
///         cx.apply(greeting).await?;
///         Ok(Next::after(Duration::from_secs(3600)))
///     }
/// }
/// ```
pub trait Operator: Send + Sync + Sized + 'static {
    /// What it reconciles.
    type Resource: Object;
    /// What it makes: watched, owner-referenced, garbage-collected, permitted. `()` for nothing.
    type Owns: Kinds;
    /// What it only reads: cached, watched, permitted to read. [`Edits`](crate::Edits) of a kind may be written too.
    type Reads: Kinds;

    /// The operator's name: field manager of its writes, reporter of its events, label of its metrics.
    ///
    /// Fields that it wrote are its own under this name, so it should not change. By default the type's own name.
    fn name() -> &'static str {
        let full = std::any::type_name::<Self>();
        let path = full.split_once('<').map_or(full, |(path, _)| path);
        path.rsplit("::").next().unwrap_or(path)
    }

    /// Makes the world match `object`.
    ///
    /// An error brings the key back after its backoff; so does a panic, which stays within this key.
    fn reconcile(
        &self,
        object: &Self::Resource,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<Next>> + Send;

    /// The finalizer that keeps an object from going before [`finalize`](Self::finalize) is done with it. It is added
    /// before the first reconcile and removed afterwards. `None`, the default: nothing outside needs cleaning up.
    fn finalizer() -> Option<&'static str> {
        None
    }

    /// Called instead of [`reconcile`](Self::reconcile) while the object is being deleted.
    ///
    /// With a [`finalizer`](Self::finalizer), [`Next::done`] lets the object go, [`Next::after`] keeps it for another
    /// look. What is owned needs nothing here: the garbage collector takes it.
    fn finalize(
        &self,
        object: &Self::Resource,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<Next>> + Send {
        let _ = (object, cx);
        async { Ok(Next::done()) }
    }

    /// Called instead of [`reconcile`](Self::reconcile) where there is no object of this key (any more).
    ///
    /// What is owned needs nothing here: the garbage collector takes it.
    fn absent(&self, key: &Key, cx: &Context<Self>) -> impl Future<Output = Result<Next>> + Send {
        let _ = (key, cx);
        async { Ok(Next::done()) }
    }

    /// Adds what should bring a key back beyond the operator's resource, what it owns, and what it has read.
    fn watches(&self, watches: &mut Watches<Self>) {
        let _ = watches;
    }

    /// Its webhooks. A manager serves them, and they are in the derived manifests.
    ///
    /// ```
    /// use homeostat_sdk::webhook::{Admission, Denied, Validator, Webhook};
    /// # use homeostat_sdk::{Context, Next, Operator, Result, field};
    /// # use k8s_openapi::api::core::v1::ServiceAccount;
    /// # struct Greeter;
    /// struct Rules;
    ///
    /// impl Validator for Rules {
    ///     type Resource = ServiceAccount;
    ///
    ///     async fn validate_create(&self, account: &ServiceAccount, _: &Admission) -> Result<(), Denied> {
    ///         match &account.secrets {
    ///             Some(_) => Err(field::Error::forbidden("secrets", "tokens are requested instead").into()),
    ///             None => Ok(()),
    ///         }
    ///     }
    /// }
    ///
    /// impl Operator for Greeter {
    /// #   type Resource = ServiceAccount;
    /// #   type Owns = ();
    /// #   type Reads = ();
    /// #   async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
    ///     // …
    ///     fn webhooks() -> Vec<Webhook> {
    ///         vec![Webhook::validating(Rules)]
    ///     }
    /// }
    /// ```
    fn webhooks() -> Vec<Webhook> {
        Vec::new()
    }

    /// How it is run.
    fn settings(&self) -> Settings {
        Settings::default()
    }
}
