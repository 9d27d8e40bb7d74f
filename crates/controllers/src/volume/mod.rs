//! Persistent volumes and the claims on them: bound to each other, made on demand, grown, and reclaimed.
//!
//! [`matching`] finds the volume for a claim and [`plan`] says what a claim or a volume needs, both pure; [`claims`],
//! [`volumes`] and [`grow`] carry it out. Volumes of the class `standard` are made by [`provision`]: objects only, no
//! disk stands behind them.
//! Invariant: a binding is written first into the volume and then into the claim, so that what was interrupted is
//! finished by whoever looks next, and no volume serves two claims.

pub(crate) mod attributes;
pub(crate) mod claims;
pub(crate) mod ephemeral;
pub(crate) mod grow;
mod matching;
mod plan;
mod provision;
#[cfg(test)]
mod tests;
pub(crate) mod volumes;

use std::collections::BTreeMap;

use homeostat_model::quantity::Quantity;
use homeostat_sdk::{Result, TaskContext};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;

/// The binding of a claim is whole; what is missing later is lost.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The binding was made here, not by a person.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Who made a volume.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Who shall make a claim's volume, under its name and the one before.
const PROVISIONER: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
/// The node for which a claim's volume shall be made: the scheduler's word.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// The class of a claim or a volume before there was a field for it.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// The provisioner that is built in.
const SIMULATED: &str = "homeostat.dev/simulated";
/// The name of the class that uses it.
const STANDARD: &str = "standard";
/// The only resource that volumes have.
const STORAGE: &str = "storage";

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// Sets an annotation; whether that changed anything.
fn annotate(meta: &mut ObjectMeta, key: &str, value: &str) -> bool {
    let all = meta.annotations.get_or_insert_default();
    all.insert(key.into(), value.into()).as_deref() != Some(value)
}

/// The class of a claim; empty where it has none.
fn class_of(claim: &PersistentVolumeClaim) -> &str {
    let named = claim.spec.as_ref().and_then(|s| s.storage_class_name.as_deref());
    annotation(&claim.metadata, OLD_CLASS).or(named).unwrap_or_default()
}

/// The class of a volume; empty where it has none.
fn class_of_volume(volume: &PersistentVolume) -> &str {
    let named = volume.spec.as_ref().and_then(|s| s.storage_class_name.as_deref());
    annotation(&volume.metadata, OLD_CLASS).or(named).unwrap_or_default()
}

fn amount(of: Option<&BTreeMap<String, Amount>>) -> Quantity {
    of.and_then(|m| m.get(STORAGE)).and_then(|q| Quantity::parse(&q.0).ok()).unwrap_or_default()
}

/// What a claim asks for.
fn requested(claim: &PersistentVolumeClaim) -> Quantity {
    amount(claim.spec.as_ref().and_then(|s| s.resources.as_ref()).and_then(|r| r.requests.as_ref()))
}

/// What a volume holds.
fn capacity(volume: &PersistentVolume) -> Quantity {
    amount(volume.spec.as_ref().and_then(|s| s.capacity.as_ref()))
}

fn phase(volume: &PersistentVolume) -> &str {
    volume.status.as_ref().and_then(|s| s.phase.as_deref()).unwrap_or_default()
}

fn key(claim: &PersistentVolumeClaim) -> String {
    let meta = &claim.metadata;
    format!("{}/{}", meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

fn is_default(class: &StorageClass) -> bool {
    DEFAULT_CLASS.iter().any(|a| annotation(&class.metadata, a) == Some("true"))
}

/// Makes the class `standard` where no class is the default one: once, at the start. Who deletes it is obeyed.
///
/// It binds at once (`Immediate`), since the volumes are of no node.
pub(crate) async fn make_standard_class(cx: TaskContext) -> Result<()> {
    let all = Api::<StorageClass>::all(cx.client().clone()).list(&ListParams::default()).await?;
    if all.items.iter().any(|c| is_default(c) || c.metadata.name.as_deref() == Some(STANDARD)) {
        return Ok(());
    }
    let class = StorageClass {
        metadata: ObjectMeta {
            name: Some(STANDARD.into()),
            annotations: Some([(DEFAULT_CLASS[0].to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        provisioner: SIMULATED.into(),
        reclaim_policy: Some("Delete".into()),
        volume_binding_mode: Some("Immediate".into()),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    };
    match cx.writer().create(&class).await {
        Err(e) if !e.is_already_exists() => Err(e),
        _ => Ok(()),
    }
}
