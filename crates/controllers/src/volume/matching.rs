//! Which volume fits a claim. Pure.
//!
//! Of several that fit, the one with the fewest ways of access comes first, then the smallest, then the first by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use homeostat_sdk::Result;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::{capacity, class_of, class_of_volume, phase, requested};
use crate::common::claim as selectors;

/// Whether a volume refers to this claim; a reference without a uid is a reservation by name.
pub(super) fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let Some(to) = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref()) else { return false };
    to.name == claim.metadata.name
        && to.namespace == claim.metadata.namespace
        && to.uid.as_ref().is_none_or(|uid| uid.is_empty() || Some(uid) == claim.metadata.uid.as_ref())
}

/// Whether anybody has reserved a volume.
pub(super) fn is_taken(volume: &PersistentVolume) -> bool {
    volume.spec.as_ref().is_some_and(|s| s.claim_ref.is_some())
}

/// Whether both are file systems, or both are blocks.
pub(super) fn modes_agree(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let of = |mode: Option<&String>| mode.cloned().unwrap_or_else(|| "Filesystem".into());
    of(volume.spec.as_ref().and_then(|s| s.volume_mode.as_ref()))
        == of(claim.spec.as_ref().and_then(|s| s.volume_mode.as_ref()))
}

fn access(modes: Option<&Vec<String>>) -> BTreeSet<&str> {
    modes.into_iter().flatten().map(String::as_str).collect()
}

fn access_of(volume: &PersistentVolume) -> BTreeSet<&str> {
    access(volume.spec.as_ref().and_then(|s| s.access_modes.as_ref()))
}

fn offers(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    access(claim.spec.as_ref().and_then(|s| s.access_modes.as_ref())).is_subset(&access_of(volume))
}

fn same_attributes(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let of = |name: Option<&String>| name.cloned().unwrap_or_default();
    of(volume.spec.as_ref().and_then(|s| s.volume_attributes_class_name.as_ref()))
        == of(claim.spec.as_ref().and_then(|s| s.volume_attributes_class_name.as_ref()))
}

/// Why a claim can't have the volume that it names. The texts are the reference's.
pub(super) fn mismatch(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<&'static str> {
    if capacity(volume) < requested(claim) {
        return Some("requested PV is too small");
    }
    if class_of_volume(volume) != class_of(claim) {
        return Some("storageClassName does not match");
    }
    if !same_attributes(volume, claim) {
        return Some("volumeAttributesClassName does not match");
    }
    if !modes_agree(volume, claim) {
        return Some("incompatible volumeMode");
    }
    (!offers(volume, claim)).then_some("incompatible accessMode")
}

/// The volume for a claim that names none: one that is reserved for it, else, unless the claim waits for a consumer
/// (`delayed`), the closest that is available. `volumes` in the order of their names.
pub(super) fn best<'a>(
    volumes: &'a [Arc<PersistentVolume>],
    claim: &PersistentVolumeClaim,
    delayed: bool,
) -> Result<Option<&'a Arc<PersistentVolume>>> {
    let selector = claim.spec.as_ref().and_then(|s| s.selector.as_ref());
    let selector = selector.map(|s| selectors::labels(Some(s))).transpose()?;
    let selected = |v: &PersistentVolume| {
        let labels = v.metadata.labels.as_ref();
        selector.as_ref().is_none_or(|s| s.matches(|k| labels.and_then(|l| l.get(k)).map(String::as_str)))
    };
    let wanted = requested(claim);
    let possible = |v: &&Arc<PersistentVolume>| {
        v.metadata.deletion_timestamp.is_none()
            && capacity(v) >= wanted
            && offers(v, claim)
            && modes_agree(v, claim)
            && same_attributes(v, claim)
    };
    let reserved = volumes.iter().filter(possible).find(|v| is_for(v, claim));
    if reserved.is_some() || delayed {
        return Ok(reserved);
    }
    let free = volumes.iter().filter(possible).filter(|v| {
        !is_taken(v) && phase(v) == "Available" && class_of_volume(v) == class_of(claim) && selected(v)
    });
    Ok(free.min_by(|a, b| {
        let modes = access_of(a).len().cmp(&access_of(b).len());
        modes.then_with(|| capacity(a).cmp(&capacity(b)))
    }))
}
