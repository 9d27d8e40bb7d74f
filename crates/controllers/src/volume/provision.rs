//! Volumes of the built-in provisioner: an object for each claim, as an external provisioner would make it. Pure.
//!
//! The name follows from the claim's uid, so that one claim never gets two.

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{PROVISIONED_BY, SIMULATED, class_of};

/// Where the volumes would lie on a node that has disks.
const FOLDER: &str = "/var/lib/homeostat/volumes";

/// The name of a claim's own volume.
pub(super) fn name(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default())
}

/// A reference to a claim.
pub(super) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("PersistentVolumeClaim".into()),
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The volume for a claim.
pub(super) fn volume(claim: &PersistentVolumeClaim, class: &StorageClass) -> PersistentVolume {
    let spec = claim.spec.clone().unwrap_or_default();
    let name = name(claim);
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            annotations: Some([(PROVISIONED_BY.to_owned(), SIMULATED.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes,
            capacity: spec.resources.and_then(|r| r.requests),
            claim_ref: Some(reference(claim)),
            host_path: Some(HostPathVolumeSource {
                path: format!("{FOLDER}/{name}"),
                type_: Some("DirectoryOrCreate".into()),
            }),
            mount_options: class.mount_options.clone(),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: Some(class_of(claim).to_owned()),
            volume_mode: spec.volume_mode,
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}
