//! What the plugins about volumes share: the claims of a pod, and which volume would do for a claim.
//!
//! Pure reads of the snapshot's objects.

use std::sync::Arc;

use homeostat_model::selector::Labels;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;

use super::node_affinity::{Place, matches};
use crate::resources::units;
use crate::snapshot::{NodeInfo, Objects, PodInfo, Snapshot, selector};

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// A pod's claims, sorted by what is to be done about them.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// Bound ones, with their volumes where those are known.
    pub(super) bound: Vec<(Arc<PersistentVolumeClaim>, Option<Arc<PersistentVolume>>)>,
    /// Ones that are to be bound where the pod goes.
    pub(super) delayed: Vec<Arc<PersistentVolumeClaim>>,
    /// Whether one is to be bound by somebody else first.
    pub(super) immediate: bool,
}

/// Whether a claim has its volume for good.
pub(super) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let volume = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref()).unwrap_or_default();
    let done = claim.metadata.annotations.as_ref().is_some_and(|a| a.contains_key(BIND_COMPLETED));
    !volume.is_empty() && done
}

pub(super) fn class_of(claim: &PersistentVolumeClaim) -> &str {
    let annotated = claim.metadata.annotations.as_ref().and_then(|a| a.get(CLASS));
    let named = claim.spec.as_ref().and_then(|s| s.storage_class_name.as_ref());
    annotated.or(named).map(String::as_str).unwrap_or_default()
}

fn waits_for_consumer(class: Option<&Arc<StorageClass>>) -> bool {
    class.is_some_and(|c| c.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
}

/// The claims of a pod; `Err` says what is missing.
pub(super) fn claims(snapshot: &Snapshot, pod: &PodInfo) -> Result<Claims, String> {
    let mut claims = Claims::default();
    for name in &pod.claims {
        let Some(claim) = snapshot.objects.claim(pod.namespace(), name) else {
            let volumes = pod.spec().and_then(|s| s.volumes.as_deref()).unwrap_or_default();
            let ephemeral = volumes
                .iter()
                .any(|v| v.ephemeral.is_some() && format!("{}-{}", pod.key.name(), v.name) == *name);
            return Err(if ephemeral {
                format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{name}\""
                )
            } else {
                format!("persistentvolumeclaim \"{name}\" not found")
            });
        };
        let volume = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref()).unwrap_or_default();
        if claim.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Lost") {
            return Err(format!(
                "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
            ));
        }
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
        }
        if is_bound(claim) {
            claims.bound.push((claim.clone(), snapshot.objects.volumes.get(volume).cloned()));
        } else if volume.is_empty() && waits_for_consumer(snapshot.objects.classes.get(class_of(claim))) {
            claims.delayed.push(claim.clone());
        } else {
            claims.immediate = true;
        }
    }
    Ok(claims)
}

/// Whether a node can reach a volume.
pub(super) fn reaches(volume: &PersistentVolume, node: &NodeInfo) -> bool {
    let required = volume.spec.as_ref().and_then(|s| s.node_affinity.as_ref()?.required.as_ref());
    required.is_none_or(|r| matches(r, Place::of(&node.node)))
}

fn capacity(volume: &PersistentVolume) -> i64 {
    units(volume.spec.as_ref().and_then(|s| s.capacity.as_ref()), "storage")
}

/// The smallest free volume that a node reaches and that does for a claim.
pub(super) fn find(
    objects: &Objects,
    claim: &PersistentVolumeClaim,
    node: &NodeInfo,
    taken: &[String],
) -> Option<Arc<PersistentVolume>> {
    let spec = claim.spec.as_ref()?;
    let wanted = units(spec.resources.as_ref().and_then(|r| r.requests.as_ref()), "storage");
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    let labels = spec.selector.as_ref().map(|s| selector(Some(s)));
    let mode = |m: Option<&String>| m.map_or("Filesystem", String::as_str).to_owned();
    let does = |volume: &&Arc<PersistentVolume>| {
        let Some(has) = volume.spec.as_ref() else { return false };
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        let ours = match &has.claim_ref {
            Some(r) => {
                r.name == claim.metadata.name
                    && r.namespace == claim.metadata.namespace
                    && (r.uid.is_none() || r.uid == claim.metadata.uid)
            }
            None => volume.status.as_ref().and_then(|s| s.phase.as_deref()).is_none_or(|p| p == "Available"),
        };
        ours && !taken.iter().any(|t| t == name)
            && volume.metadata.deletion_timestamp.is_none()
            && has.storage_class_name.as_deref().unwrap_or_default() == class_of(claim)
            && mode(has.volume_mode.as_ref()) == mode(spec.volume_mode.as_ref())
            && modes.iter().all(|m| has.access_modes.iter().flatten().any(|h| h == m))
            && labels.as_ref().is_none_or(|l| {
                let have = volume.metadata.labels.as_ref();
                l.matches(|k| have.and_then(|h| h.get(k)).map(String::as_str))
            })
            && capacity(volume) >= wanted
            && reaches(volume, node)
    };
    objects.volumes.values().filter(does).min_by_key(|v| capacity(v)).cloned()
}

/// Whether a volume can be made for a claim where the node is.
pub(super) fn provisionable(objects: &Objects, claim: &PersistentVolumeClaim, node: &NodeInfo) -> bool {
    let Some(class) = objects.classes.get(class_of(claim)) else { return false };
    if class.provisioner.is_empty() || class.provisioner == "kubernetes.io/no-provisioner" {
        return false;
    }
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    topologies.is_empty()
        || topologies.iter().any(|t| {
            t.match_label_expressions
                .iter()
                .flatten()
                .all(|r| node.label(&r.key).is_some_and(|v| r.values.iter().any(|x| x == v)))
        })
}

/// Whether the driver that makes a claim's volume can still hold it where the node is. Only drivers that tell how much
/// they can hold are asked.
pub(super) fn has_room(objects: &Objects, claim: &PersistentVolumeClaim, node: &NodeInfo) -> bool {
    let requests = claim.spec.as_ref().and_then(|s| s.resources.as_ref()?.requests.as_ref());
    let class = class_of(claim);
    let provisioner = objects.classes.get(class).map_or("", |c| c.provisioner.as_str());
    let tells = objects.drivers.get(provisioner).is_some_and(|d| d.spec.storage_capacity == Some(true));
    if !tells || requests.is_none_or(|r| !r.contains_key("storage")) {
        return true;
    }
    let wanted = units(requests, "storage");
    let reached = |segment: &Labels| segment.matches(|key| node.label(key));
    objects.capacities.values().any(|room| {
        room.class == class
            && room.most.is_some_and(|most| most >= wanted)
            && room.segment.as_ref().is_some_and(reached)
    })
}
