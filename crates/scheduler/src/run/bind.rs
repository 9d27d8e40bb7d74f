//! What is done beside the loop: binding a pod that has its place, and making others go.
//!
//! Both only write; what they lead to comes back as notes.

use std::sync::Arc;

use homeostat_sdk::Recorder;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, Preconditions};
use serde_json::json;

use super::report;
use crate::extender::Extenders;
use crate::framework::{CycleState, Framework, Io, Status};
use crate::snapshot::PodInfo;

/// Everything that writes under one profile's name.
#[derive(Clone)]
pub(super) struct Voice {
    pub(super) io: Io,
    pub(super) recorder: Recorder,
}

/// A pod that is to be bound.
pub(super) struct Placement {
    pub(super) framework: Arc<Framework>,
    pub(super) state: CycleState,
    pub(super) pod: Arc<PodInfo>,
    pub(super) node: Arc<str>,
}

/// Binds a pod: what has to be done before, the binding, what follows.
pub(super) async fn bind(voice: &Voice, extenders: &Extenders, placement: &Placement) -> Result<(), Status> {
    let Placement { framework, state, pod, node } = placement;
    if framework.has_work(state, pod, node) {
        nominate(&voice.io, pod, node).await;
    }
    for i in &framework.points.pre_bind {
        let Some(plugin) = framework.plugins.get(*i) else { continue };
        if let Some(point) = plugin.pre_bind() {
            point.pre_bind(&voice.io, state, pod, node).await.map_err(|s| s.at("PreBind", plugin.name()))?;
        }
    }
    let mut bound = extenders.bind(pod, node).await?;
    for i in &framework.points.bind {
        let Some(plugin) = framework.plugins.get(*i).filter(|_| !bound) else { break };
        if let Some(point) = plugin.bind() {
            bound = point.bind(&voice.io, state, pod, node).await.map_err(|s| s.at("Bind", plugin.name()))?;
        }
    }
    if !bound {
        return Err(Status::error("no bind plugin is responsible for the pod"));
    }
    report::scheduled(&voice.recorder, pod, node).await;
    for i in &framework.points.post_bind {
        if let Some(point) = framework.plugins.get(*i).and_then(|p| p.post_bind()) {
            point.post_bind(state, pod, node);
        }
    }
    Ok(())
}

/// Makes a pod go for another one.
pub(super) async fn evict(
    voice: &Voice,
    victim: &PodInfo,
    pod: &PodInfo,
    node: &str,
) -> homeostat_sdk::Result<()> {
    let io = &voice.io;
    if victim.class.terminating {
        return Ok(());
    }
    let mut condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
        "message": format!("{}: preempting to accommodate a higher priority pod", io.scheduler),
        "lastProbeTime": null, "lastTransitionTime": io.clock.now_seconds()});
    if let Some(generation) = victim.pod.metadata.generation {
        condition["observedGeneration"] = generation.into();
    }
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    match io.writer.patch_status::<Pod, _>(&victim.key, &patch).await {
        Ok(_) => {}
        Err(e) if e.is_not_found() => return Ok(()),
        Err(e) => return Err(e),
    }
    let preconditions = Preconditions { uid: Some(victim.uid.to_string()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    io.writer.delete::<Pod>(&victim.key, &params).await?;
    report::preempted(&voice.recorder, victim, pod, node).await;
    Ok(())
}

/// Tells others, an autoscaler say, where a pod will go, while it can't be bound at once
/// (NominatedNodeNameForExpectation). That this fails holds up nothing.
pub(super) async fn nominate(io: &Io, pod: &PodInfo, node: &str) {
    if pod.nominated() == Some(node) {
        return;
    }
    let patch =
        Patch::Strategic(json!({"metadata": {"uid": &*pod.uid}, "status": {"nominatedNodeName": node}}));
    if let Err(error) = io.writer.patch_status::<Pod, _>(&pod.key, &patch).await
        && !error.is_not_found()
    {
        tracing::warn!(pod = %pod.key, %error, "cannot tell the pod's nominatedNodeName");
    }
}

/// Takes back the nomination of a pod that can no longer count on its room.
pub(super) async fn denominate(io: &Io, pod: &PodInfo) {
    let patch = Patch::Strategic(json!({"status": {"nominatedNodeName": null}}));
    if let Err(error) = io.writer.patch_status::<Pod, _>(&pod.key, &patch).await
        && !error.is_not_found()
    {
        tracing::warn!(pod = %pod.key, %error, "cannot clear the pod's nominatedNodeName");
    }
}
