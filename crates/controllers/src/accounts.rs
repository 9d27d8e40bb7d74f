//! The `default` ServiceAccount of every namespace.
//!
//! It is made where it is missing, and never changed. A namespace that is being deleted gets none.

use homeostat_sdk::{Context, Edits, Key, Next, Operator, Result, Selection, Watches};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::common::pod_control;

const ACCOUNT: &str = "default";

/// The controller.
pub(crate) struct ServiceAccounts;

impl Operator for ServiceAccounts {
    type Resource = Namespace;
    type Owns = ();
    type Reads = (Edits<ServiceAccount>,);

    fn name() -> &'static str {
        "serviceaccount-controller"
    }

    async fn reconcile(&self, _: &Namespace, cx: &Context<Self>) -> Result<Next> {
        if cx.read_key::<ServiceAccount, _>(&Key::namespaced(cx.name(), ACCOUNT)).is_some() {
            return Ok(Next::done());
        }
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some(ACCOUNT.into()),
                namespace: Some(cx.name().into()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        match cx.create::<ServiceAccount, _>(account).await {
            Ok(_) => Ok(Next::done()),
            Err(e) if e.is_already_exists() || pod_control::is_namespace_terminating(&e) => Ok(Next::done()),
            Err(e) => Err(e),
        }
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.select::<ServiceAccount, _>(Selection::fields(format!("metadata.name={ACCOUNT}")));
    }
}
