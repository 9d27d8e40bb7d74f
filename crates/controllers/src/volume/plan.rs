//! What a claim needs, and what a volume needs: pure functions of both, the classes, and the pods that wait.
//!
//! Reasons and messages of events are the reference's.

use std::sync::Arc;

use homeostat_sdk::{Error, Event, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;

use super::matching::{best, is_for, is_taken, mismatch, modes_agree};
use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE, SIMULATED, annotation, class_of,
    is_default, key, phase,
};
use crate::common::pods;

/// What else there is.
pub(super) struct World<'a> {
    /// All volumes, in the order of their names.
    pub(super) volumes: &'a [Arc<PersistentVolume>],
    pub(super) classes: &'a [Arc<StorageClass>],
    /// The pods of the claim's namespace that use the claim.
    pub(super) pods: &'a [Arc<Pod>],
}

/// What a claim needs.
#[derive(Debug)]
pub(super) enum Step {
    /// It stays pending, for now.
    Wait(Option<Event>),
    /// It is bound to this volume, or is to be.
    Bind(Arc<PersistentVolume>),
    /// It was bound, and is so no more.
    Lose(Event),
    /// It gets a class that has become the default after it was made.
    Classify(String),
    /// A volume is to be made for it here, for a node where one was chosen.
    Provision(Arc<StorageClass>, Option<String>),
    /// Somebody else is to make its volume.
    Elsewhere(String),
}

/// What a volume needs.
#[derive(Debug, PartialEq)]
pub(super) enum Fate {
    /// This phase.
    Phase(&'static str),
    /// Its claim has still to be bound to it.
    Wait,
    /// Its claim is another sort of volume: what to tell about the volume and about the claim.
    Mismatch(String, String),
    /// Its claim was bound elsewhere: it is let go.
    Unbind,
    /// Its claim is gone: it is released and then what its policy says.
    Release(Reclaim),
}

/// What the policy says about a released volume.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reclaim {
    /// It stays as it is.
    Keep,
    /// It is deleted.
    Delete,
    /// It can't be done: reason and message.
    Fail(&'static str, String),
}

fn is_delayed(class: Option<&Arc<StorageClass>>) -> bool {
    class.is_some_and(|c| c.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
}

/// What a claim needs.
pub(super) fn claim(claim: &PersistentVolumeClaim, world: &World<'_>) -> Result<Step> {
    let named = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref()).filter(|n| !n.is_empty());
    let volume = named.and_then(|n| world.volumes.iter().find(|v| v.metadata.name.as_deref() == Some(n)));
    if annotation(&claim.metadata, BIND_COMPLETED).is_some() {
        return Ok(bound(claim, named, volume));
    }
    let Some(name) = named else { return unbound(claim, world) };
    let Some(volume) = volume else { return Ok(Step::Wait(None)) };
    if !is_taken(volume) {
        return Ok(match mismatch(volume, claim) {
            None => Step::Bind(volume.clone()),
            Some(why) => {
                let text = format!("Cannot bind to requested volume {name:?}: {why}");
                Step::Wait(Some(Event::warning("VolumeMismatch", text)))
            }
        });
    }
    if is_for(volume, claim) {
        return Ok(Step::Bind(volume.clone()));
    }
    if annotation(&claim.metadata, BOUND_BY_CONTROLLER).is_none() {
        let text = format!("volume {name:?} already bound to a different claim.");
        return Ok(Step::Wait(Some(Event::warning("FailedBinding", text))));
    }
    let text =
        format!("invalid binding of claim {:?} to volume {name:?}: volume already claimed", key(claim));
    Err(Error::msg(text))
}

/// A claim whose binding was whole once.
fn bound(claim: &PersistentVolumeClaim, named: Option<&str>, volume: Option<&Arc<PersistentVolume>>) -> Step {
    let lost = |text: &str| Step::Lose(Event::warning("ClaimLost", text));
    if named.is_none() {
        return lost("Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
    }
    let Some(volume) = volume else {
        return lost("Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    };
    let uid = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref()).map(|r| r.uid.clone());
    if uid.is_none_or(|uid| uid == claim.metadata.uid) {
        return Step::Bind(volume.clone());
    }
    let text = "Two claims are bound to the same volume, this one is bound incorrectly";
    Step::Lose(Event::warning("ClaimMisbound", text))
}

/// A claim that takes any volume.
fn unbound(claim: &PersistentVolumeClaim, world: &World<'_>) -> Result<Step> {
    let name = class_of(claim);
    let class = world.classes.iter().find(|c| c.metadata.name.as_deref() == Some(name));
    let delayed = is_delayed(class);
    if let Some(volume) = best(world.volumes, claim, delayed)? {
        return Ok(Step::Bind(volume.clone()));
    }
    if claim.spec.as_ref().is_some_and(|s| s.storage_class_name.is_none())
        && name.is_empty()
        && let Some(class) = default_class(world.classes)
    {
        return Ok(Step::Classify(class));
    }
    let node = delayed.then(|| consumer(claim, world.pods)).flatten();
    if delayed && node.is_none() {
        return Ok(Step::Wait(Some(waiting(world.pods))));
    }
    if name.is_empty() {
        let text = "no persistent volumes available for this claim and no storage class is set";
        return Ok(Step::Wait(Some(Event::normal("FailedBinding", text))));
    }
    let failed = |text: String| Ok(Step::Wait(Some(Event::warning("ProvisioningFailed", text))));
    match class {
        None => failed(format!("storageclass.storage.k8s.io {name:?} not found")),
        Some(class) if class.provisioner.starts_with("kubernetes.io/") => {
            failed(format!("no volume plugin matched name: {}", class.provisioner))
        }
        Some(class) if class.provisioner != SIMULATED => Ok(Step::Elsewhere(class.provisioner.clone())),
        Some(class) => match cannot_make(claim) {
            Some(why) => failed(format!("failed to provision volume with StorageClass {name:?}: {why}")),
            None => Ok(Step::Provision(class.clone(), node)),
        },
    }
}

/// The class that is the default: the youngest, where there are several; of the same age the first by name.
fn default_class(classes: &[Arc<StorageClass>]) -> Option<String> {
    let age = |c: &&Arc<StorageClass>| c.metadata.creation_timestamp.as_ref().map(|t| t.0);
    let by_name = |c: &&Arc<StorageClass>| std::cmp::Reverse(c.metadata.name.clone());
    let all = classes.iter().filter(|c| is_default(c));
    all.max_by_key(|c| (age(c), by_name(c)))?.metadata.name.clone()
}

/// What the built-in provisioner can't do for a claim.
fn cannot_make(claim: &PersistentVolumeClaim) -> Option<&'static str> {
    let spec = claim.spec.as_ref()?;
    if spec.selector.is_some() {
        return Some("claim Selector is not supported");
    }
    (spec.data_source.is_some() || spec.data_source_ref.is_some())
        .then_some("a volume that begins with other data is not supported")
}

/// The node for which a claim's volume is to be made: the scheduler's choice, or that of a pod that already has one.
///
/// The reference waits for the scheduler alone; a pod that came to its node without it would then wait for ever.
fn consumer(claim: &PersistentVolumeClaim, pods: &[Arc<Pod>]) -> Option<String> {
    let chosen = annotation(&claim.metadata, SELECTED_NODE).filter(|n| !n.is_empty());
    chosen.map(str::to_owned).or_else(|| pods.iter().find_map(|p| pods::node(p)).map(str::to_owned))
}

fn waiting(pods: &[Arc<Pod>]) -> Event {
    let names: Vec<&str> = pods
        .iter()
        .filter(|p| pods::node(p).is_none() && pods::is_active(p))
        .filter_map(|p| p.metadata.name.as_deref())
        .collect();
    match names[..] {
        [] => {
            Event::normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
        }
        [one] => Event::normal("WaitForPodScheduled", format!("waiting for pod {one} to be scheduled")),
        _ => {
            let text = format!("waiting for pods {} to be scheduled", names.join(","));
            Event::normal("WaitForPodScheduled", text)
        }
    }
}

/// What a volume needs. `claim` is the one that it refers to, where that is there and has the uid that is meant.
pub(super) fn volume(volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>) -> Fate {
    let reference = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref());
    if reference.and_then(|r| r.uid.as_deref()).is_none_or(str::is_empty) {
        return Fate::Phase("Available");
    }
    let Some(claim) = claim else { return Fate::Release(reclaim(volume)) };
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let has = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref()).unwrap_or_default();
    if has == name {
        return Fate::Phase("Bound");
    }
    if has.is_empty() {
        if modes_agree(volume, claim) {
            return Fate::Wait;
        }
        let why = "due to incompatible volumeMode.";
        return Fate::Mismatch(
            format!(
                "Cannot bind PersistentVolume to requested PersistentVolumeClaim {:?} {why}",
                claim.metadata.name.as_deref().unwrap_or_default()
            ),
            format!("Cannot bind PersistentVolume {name:?} to requested PersistentVolumeClaim {why}"),
        );
    }
    // It was made for a claim that found another one in the meantime.
    if annotation(&volume.metadata, PROVISIONED_BY).is_some() && policy(volume) == "Delete" {
        return Fate::Release(reclaim(volume));
    }
    Fate::Unbind
}

fn policy(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|s| s.persistent_volume_reclaim_policy.as_deref()).unwrap_or("Retain")
}

/// What becomes of a volume that nobody claims any more.
fn reclaim(volume: &PersistentVolume) -> Reclaim {
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let by = annotation(&volume.metadata, PROVISIONED_BY);
    match policy(volume) {
        "Retain" => Reclaim::Keep,
        "Delete" => match by {
            Some(SIMULATED) => Reclaim::Delete,
            // Whoever made it deletes it.
            Some(by) if !by.starts_with("kubernetes.io/") => Reclaim::Keep,
            _ => delete_unprovisioned(volume, name),
        },
        "Recycle" => Reclaim::Fail("VolumeFailedRecycle", "No recycler plugin found for the volume!".into()),
        _ => Reclaim::Fail(
            "VolumeUnknownReclaimPolicy",
            "Volume has unrecognized PersistentVolumeReclaimPolicy".into(),
        ),
    }
}

/// Only host paths under `/tmp` can be deleted without whoever made them.
fn delete_unprovisioned(volume: &PersistentVolume, name: &str) -> Reclaim {
    let path = volume.spec.as_ref().and_then(|s| s.host_path.as_ref()).map(|h| h.path.as_str());
    match path {
        Some(path) if path.strip_prefix("/tmp/").is_some_and(|rest| !rest.is_empty()) => Reclaim::Delete,
        Some(path) => Reclaim::Fail(
            "VolumeFailedDelete",
            format!("host_path deleter only supports /tmp/.+ but received provided {path}"),
        ),
        None => Reclaim::Fail(
            "VolumeFailedDelete",
            format!(
                "error getting deleter volume plugin for volume {name:?}: no deletable volume plugin matched"
            ),
        ),
    }
}

/// Whether a released volume has been dealt with.
pub(super) fn is_released(volume: &PersistentVolume) -> bool {
    matches!(phase(volume), "Released" | "Failed")
}
