//! VolumeBinding: a pod goes where its volumes are or can be, and claims that wait for it are bound there.
//!
//! A claim of a class that waits for its first consumer gets a free volume that the node reaches, or the annotation
//! that tells a provisioner to make one for that node, where its driver can still hold it. Binding the pod
//! waits until all its claims are bound.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use homeostat_sdk::{Key, Selection};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::Patch;
use serde_json::json;

use super::volumes::{self, Claims, find, has_room, is_bound, provisionable, reaches};
use crate::framework::{
    Cycle, CycleState, Event, Filter, Io, Plugin, PreBind, PreFilter, PreFiltered, Reserve, Status,
};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The annotation that tells a provisioner where the volume is needed.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// How often the claims are looked at while a pod waits for them.
const LOOK: Duration = Duration::from_millis(100);

/// The plugin.
#[derive(Clone, Copy, Debug)]
pub struct VolumeBinding {
    /// How long a pod waits for its claims to be bound.
    pub timeout: Duration,
}

impl Default for VolumeBinding {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(600) }
    }
}

/// What a pod's claims get, once it has its node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisions {
    /// Volumes that claims are bound to.
    pub(crate) volumes: Vec<(String, Arc<PersistentVolumeClaim>)>,
    /// Claims for which volumes are made.
    provision: Vec<Arc<PersistentVolumeClaim>>,
}

impl VolumeBinding {
    /// What the claims would get on a node; the reason where it can't be.
    fn decide(snapshot: &Snapshot, claims: &Claims, node: &NodeInfo) -> Result<Decisions, &'static str> {
        let mut decisions = Decisions::default();
        let mut taken: Vec<String> = snapshot.objects.promised.values().flatten().cloned().collect();
        for claim in &claims.delayed {
            let selected = claim.metadata.annotations.as_ref().and_then(|a| a.get(SELECTED_NODE));
            if let Some(selected) = selected.filter(|s| !s.is_empty()) {
                // A provisioner works for another node already.
                if **selected != *node.name {
                    return Err("node(s) didn't find available persistent volumes to bind");
                }
                decisions.provision.push(claim.clone());
                continue;
            }
            if let Some(volume) = find(&snapshot.objects, claim, node, &taken) {
                let name = volume.metadata.name.clone().unwrap_or_default();
                taken.push(name.clone());
                decisions.volumes.push((name, claim.clone()));
            } else if !provisionable(&snapshot.objects, claim, node) {
                return Err("node(s) didn't find available persistent volumes to bind");
            } else if !has_room(&snapshot.objects, claim, node) {
                return Err("node(s) did not have enough free storage");
            } else {
                decisions.provision.push(claim.clone());
            }
        }
        Ok(decisions)
    }
}

impl Plugin for VolumeBinding {
    fn name(&self) -> &'static str {
        "VolumeBinding"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::Claim(claim) => {
                claim.metadata.namespace.as_deref() == Some(pod.namespace())
                    && pod.claims.iter().any(|c| Some(c) == claim.metadata.name.as_ref())
            }
            Event::Volume | Event::StorageClass | Event::StorageNode | Event::StorageCapacity => true,
            _ => event.node(|c| c.labels).is_some(),
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }

    fn reserve(&self) -> Option<&dyn Reserve> {
        Some(self)
    }

    fn pre_bind(&self) -> Option<&dyn PreBind> {
        Some(self)
    }
}

impl PreFilter for VolumeBinding {
    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        if pod.claims.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        let claims = volumes::claims(cx.snapshot, pod).map_err(Status::unresolvable)?;
        if claims.immediate {
            return Err(Status::unresolvable("pod has unbound immediate PersistentVolumeClaims"));
        }
        // Local volumes name their node.
        let mut only: Option<BTreeSet<String>> = None;
        for (_, volume) in &claims.bound {
            if let Some(host) = volume.as_ref().and_then(|v| host_of(v))
                && let Some(node) =
                    cx.snapshot.nodes().find(|n| n.label("kubernetes.io/hostname") == Some(host))
            {
                let one = BTreeSet::from([node.name.to_string()]);
                only = Some(only.map_or(one.clone(), |o| o.intersection(&one).cloned().collect()));
            }
        }
        state.write(claims);
        Ok(only.map_or(PreFiltered::Any, PreFiltered::Only))
    }
}

/// The one host of a local volume.
fn host_of(volume: &PersistentVolume) -> Option<&str> {
    let spec = volume.spec.as_ref()?;
    spec.local.as_ref()?;
    let terms = &spec.node_affinity.as_ref()?.required.as_ref()?.node_selector_terms;
    let [term] = &terms[..] else { return None };
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let r = expressions.iter().find(|r| r.key == "kubernetes.io/hostname" && r.operator == "In")?;
    match r.values.as_deref() {
        Some([one]) => Some(one),
        _ => None,
    }
}

impl Filter for VolumeBinding {
    fn filter(&self, cx: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        let Some(claims) = state.read::<Claims>() else { return Ok(()) };
        for (_, volume) in &claims.bound {
            match volume {
                None => {
                    return Err(Status::unresolvable(
                        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
                    ));
                }
                Some(volume) if !reaches(volume, node) => {
                    return Err(Status::unresolvable(
                        "node(s) didn't match PersistentVolume's node affinity",
                    ));
                }
                Some(_) => {}
            }
        }
        Self::decide(cx.snapshot, claims, node).map(drop).map_err(Status::unresolvable)
    }
}

impl Reserve for VolumeBinding {
    fn reserve(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        _: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status> {
        let Some(claims) = state.read::<Claims>() else { return Ok(()) };
        let decisions = Self::decide(cx.snapshot, claims, node).map_err(Status::unresolvable)?;
        state.write(decisions);
        Ok(())
    }
}

impl PreBind for VolumeBinding {
    fn has_work(&self, state: &CycleState, _: &PodInfo, _: &str) -> bool {
        state.read::<Decisions>().is_some_and(|d| !d.volumes.is_empty() || !d.provision.is_empty())
    }

    fn pre_bind<'a>(
        &'a self,
        io: &'a Io,
        state: &'a CycleState,
        pod: &'a PodInfo,
        node: &'a str,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let Some(decisions) = state.read::<Decisions>().filter(|_| self.has_work(state, pod, node)) else {
            return async { Ok(()) }.boxed();
        };
        async move {
            write(io, decisions, node).await.map_err(|e| Status::error(format!("binding volumes: {e}")))?;
            let bound = wait(io, pod, decisions, node);
            match tokio::time::timeout(self.timeout, bound).await {
                Ok(result) => result.map_err(|e| Status::error(format!("binding volumes: {e}"))),
                Err(_) => Err(Status::error("binding volumes: context deadline exceeded")),
            }
        }
        .boxed()
    }
}

async fn write(io: &Io, decisions: &Decisions, node: &str) -> homeostat_sdk::Result<()> {
    for (volume, claim) in &decisions.volumes {
        let meta = &claim.metadata;
        let reference = json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": meta.namespace,
            "name": meta.name, "uid": meta.uid, "resourceVersion": meta.resource_version});
        let patch = json!({"metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
            "spec": {"claimRef": reference}});
        io.writer.patch::<PersistentVolume, _>(&Key::cluster(volume.as_str()), &Patch::Merge(&patch)).await?;
    }
    for claim in &decisions.provision {
        let has = claim.metadata.annotations.as_ref().and_then(|a| a.get(SELECTED_NODE));
        if has.is_some_and(|n| n == node) {
            continue;
        }
        let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
        io.writer.patch::<PersistentVolumeClaim, _>(&Key::of(&**claim), &Patch::Merge(&patch)).await?;
    }
    Ok(())
}

/// Waits until all claims are bound.
async fn wait(io: &Io, pod: &PodInfo, decisions: &Decisions, node: &str) -> Result<(), String> {
    let cache = io.caches.get::<PersistentVolumeClaim>(&Selection::all());
    let made: BTreeSet<Key> = decisions.provision.iter().map(|c| Key::of(&**c)).collect();
    loop {
        let mut bound = true;
        for name in &pod.claims {
            let key = Key::namespaced(pod.namespace(), name.as_str());
            let Some(claim) = cache.get(&key) else {
                return Err(format!("persistentvolumeclaim \"{name}\" not found"));
            };
            if is_bound(&claim) {
                continue;
            }
            bound = false;
            let selected = claim.metadata.annotations.as_ref().and_then(|a| a.get(SELECTED_NODE));
            if made.contains(&key) && selected.is_none_or(|s| s != node) {
                // The provisioner can't, there.
                return Err(format!("provisioning failed for PVC \"{name}\""));
            }
        }
        if bound {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}
