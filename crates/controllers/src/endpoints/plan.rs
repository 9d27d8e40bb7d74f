//! What becomes of a Service's slices: those that a controller keeps, and the writes that make them what they should be.
//!
//! Which slices there should be is not decided here. Invariant: a slice of another manager is never among them.

use std::sync::Arc;

use homeostat_sdk::{Context, Error, Operator, Writes};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::common::pod_control;

/// The label of a slice that names its Service.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// The label of a slice that names who keeps it.
pub(super) const MANAGER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";

/// The writes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) create: Vec<EndpointSlice>,
    pub(super) update: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// A write that failed.
#[derive(Debug)]
pub(super) struct Failed {
    what: String,
    service: String,
    error: Error,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "failed to {} for Service {}: {}", self.what, self.service, self.error)
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

/// The slices of the reconciled object that `manager` keeps.
pub(super) fn existing<O>(cx: &Context<O>, manager: &str) -> Vec<Arc<EndpointSlice>>
where
    O: Operator<Owns = (EndpointSlice,)>,
{
    let keeper = |s: &EndpointSlice| s.metadata.labels.as_ref()?.get(MANAGER_LABEL).cloned();
    let mut slices = cx.owned::<EndpointSlice, _>();
    slices.retain(|s| keeper(s).as_deref() == Some(manager));
    slices
}

impl Plan {
    /// Carries it out. In a namespace that is ending nothing more is to be done.
    pub(super) async fn carry_out<O, P>(self, cx: &Context<O>) -> Result<(), Failed>
    where
        O: Operator + Writes<EndpointSlice, P>,
    {
        let failed = |what: &str, slice: Option<&EndpointSlice>, error: Error| {
            let name = slice.and_then(|s| s.metadata.name.as_deref()).map(|n| format!("{n} "));
            let what = format!("{what} {}EndpointSlice", name.unwrap_or_default());
            Failed { what, service: cx.key().to_string(), error }
        };
        for slice in self.create {
            match cx.create::<EndpointSlice, _>(slice).await {
                Err(e) if pod_control::is_namespace_terminating(&e) => return Ok(()),
                other => drop(other.map_err(|e| failed("create", None, e))?),
            }
        }
        for slice in &self.update {
            cx.update::<EndpointSlice, _>(slice).await.map_err(|e| failed("update", Some(slice), e))?;
        }
        for slice in &self.delete {
            let deleted = cx.delete::<EndpointSlice, _>(&**slice).await;
            deleted.map_err(|e| failed("delete", Some(slice), e))?;
        }
        Ok(())
    }
}
