//! Pods that nobody else will take away: those of nodes that are gone, and those on their way out without ever having
//! had a node.
//!
//! A node that vanishes may come back, so its pods wait; whether it is gone is asked of the server before they go.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Index, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::json;

use crate::common::pods;

/// How long a node may be missing before its pods go (the reference's quarantine).
const QUARANTINE: Duration = Duration::from_secs(40);

/// The controller.
#[derive(Default)]
pub(crate) struct PodGc {
    /// Since when a node is missing.
    missing: Mutex<BTreeMap<String, Timestamp>>,
}

impl Operator for PodGc {
    type Resource = Pod;
    type Owns = ();
    type Reads = (Node,);

    fn name() -> &'static str {
        "pod-garbage-collector-controller"
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        let Some(node) = pods::node(pod) else {
            return if pods::is_terminating(pod) { remove(pod, cx).await } else { Ok(Next::done()) };
        };
        let key = Key::cluster(node);
        if cx.cache::<Node, _>().get(&key).is_some() {
            self.missing.lock().unwrap_or_else(PoisonError::into_inner).remove(node);
            return Ok(Next::done());
        }
        let now = cx.clock().now();
        let since = *self
            .missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(node.to_owned())
            .or_insert(now);
        let left =
            QUARANTINE.saturating_sub(Duration::try_from(now.duration_since(since)).unwrap_or_default());
        if !left.is_zero() {
            return Ok(Next::after(left));
        }
        if cx.writer().get::<Node>(&key).await?.is_some() {
            return Ok(Next::done());
        }
        if !pods::is_over(pod) {
            let now = homeostat_model::clock::seconds(now);
            let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists", "lastTransitionTime": now});
            let patch = json!({"metadata": {"uid": pod.metadata.uid},
                "status": {"phase": "Failed", "conditions": [condition]}});
            cx.writer().patch_status::<Pod, _>(cx.key(), &Patch::Strategic(patch)).await?;
        }
        remove(pod, cx).await
    }

    async fn finalize(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(pod, cx).await
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.filter(|change| {
            change.new.is_some()
                && change.differs(|p| (pods::node(p).map(str::to_owned), pods::is_terminating(p)))
        });
        let index: OnceLock<Index<Pod>> = OnceLock::new();
        watches.changes::<Node, _>(move |change, view| {
            let (Some(node), None) = (&change.old, &change.new) else { return Vec::new() };
            let index = index.get_or_init(|| pods::by_node(&view.resources()));
            let name = node.metadata.name.as_deref().unwrap_or_default();
            index.get(name).iter().map(|p| Key::of(&**p)).collect()
        });
    }
}

/// Removes a pod at once: there is no kubelet to wait for.
async fn remove(pod: &Pod, cx: &Context<PodGc>) -> Result<Next> {
    let preconditions = Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default() }.grace_period(0);
    match cx.writer().delete::<Pod>(cx.key(), &params).await {
        Err(e) if !e.is_conflict() => Err(e),
        _ => Ok(Next::done()),
    }
}
