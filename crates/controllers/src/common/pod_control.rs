//! Makes and deletes pods for a controller, with the reference's events about its owner.
//!
//! Many pods are made in growing batches, so that a quota or a broken template costs one request rather than
//! hundreds. What was made or deleted is in the cache on return, so nothing is done twice.

use std::sync::Arc;

use futures::future::join_all;
use homeostat_sdk::{Context, Error, Event, Has, Operator, Result};
use k8s_openapi::api::core::v1::Pod;

/// The most pods that one reconcile makes or deletes (the reference's burst).
pub(crate) const BURST: usize = 500;

/// Makes pods; stops after the first batch with an error. Returns how many were made, and the error.
pub(crate) async fn create<O, I>(cx: &Context<O>, pods: Vec<Pod>) -> (usize, Result<()>)
where
    O: Operator,
    O::Owns: Has<Pod, I>,
{
    let mut rest = pods.into_iter();
    let (mut made, mut size) = (0, 1);
    loop {
        let batch: Vec<Pod> = rest.by_ref().take(size).collect();
        if batch.is_empty() {
            return (made, Ok(()));
        }
        let results = join_all(batch.into_iter().map(|pod| create_one(cx, pod))).await;
        let mut failure = None;
        for result in results {
            match result {
                Ok(()) => made += 1,
                Err(e) => failure = Some(failure.unwrap_or(e)),
            }
        }
        if let Some(e) = failure {
            return (made, Err(e));
        }
        size = (2 * size).min(BURST);
    }
}

/// Makes a pod and tells of it.
pub(crate) async fn create_one<O, I>(cx: &Context<O>, pod: Pod) -> Result<()>
where
    O: Operator,
    O::Owns: Has<Pod, I>,
{
    match cx.create::<Pod, _>(pod).await {
        Ok(made) => {
            let name = made.metadata.name.unwrap_or_default();
            cx.event(Event::normal("SuccessfulCreate", format!("Created pod: {name}"))).await;
            Ok(())
        }
        Err(e) if is_namespace_terminating(&e) => Err(e),
        Err(e) => {
            cx.event(Event::warning("FailedCreate", format!("Error creating: {e}"))).await;
            Err(e)
        }
    }
}

/// Deletes pods side by side.
pub(crate) async fn delete<O, I>(cx: &Context<O>, pods: Vec<Arc<Pod>>) -> Result<()>
where
    O: Operator,
    O::Owns: Has<Pod, I>,
{
    let results = join_all(pods.iter().map(|pod| delete_one(cx, pod))).await;
    results.into_iter().collect()
}

/// Deletes a pod and tells of it. One that is gone already is no error.
pub(crate) async fn delete_one<O, I>(cx: &Context<O>, pod: &Pod) -> Result<()>
where
    O: Operator,
    O::Owns: Has<Pod, I>,
{
    let name = pod.metadata.name.clone().unwrap_or_default();
    match cx.delete::<Pod, _>(pod).await {
        Ok(_) => {
            cx.event(Event::normal("SuccessfulDelete", format!("Deleted pod: {name}"))).await;
            Ok(())
        }
        Err(e) if e.is_conflict() || e.is_not_found() => Ok(()),
        Err(e) => {
            cx.event(Event::warning("FailedDelete", format!("Error deleting: {e}"))).await;
            Err(e)
        }
    }
}

/// The namespace is on its way out, and so is whatever would make something in it: no reason to try again.
pub(crate) fn is_namespace_terminating(error: &Error) -> bool {
    let causes = error.status().and_then(|s| s.details.as_ref()).map(|d| d.causes.as_slice());
    causes.unwrap_or_default().iter().any(|c| c.reason == "NamespaceTerminating")
}
