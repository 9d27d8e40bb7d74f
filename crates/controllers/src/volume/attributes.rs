//! VolumeAttributesClasses that claims or volumes name don't go before they are free.
//!
//! Each is given a finalizer, which is taken off when its deletion has begun and nothing names it any more. Source:
//! kube-controller-manager's `pkg/controller/volume/vacprotection`.

use homeostat_sdk::{Context, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;

const FINALIZER: &str = "kubernetes.io/vac-protection";

/// The controller.
pub(crate) struct AttributesClassProtection;

/// The classes that a claim wants, has, or is on its way to.
fn of_claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    let status = claim.status.as_ref();
    let wants = claim.spec.as_ref().and_then(|s| s.volume_attributes_class_name.clone());
    let has = status.and_then(|s| s.current_volume_attributes_class_name.clone());
    let becomes = status
        .and_then(|s| s.modify_volume_status.as_ref())
        .and_then(|m| m.target_volume_attributes_class_name.clone());
    [wants, has, becomes].into_iter().flatten().filter(|n| !n.is_empty()).collect()
}

fn of_volume(volume: &PersistentVolume) -> Vec<String> {
    let name = volume.spec.as_ref().and_then(|s| s.volume_attributes_class_name.clone());
    name.into_iter().filter(|n| !n.is_empty()).collect()
}

fn is_protected(class: &VolumeAttributesClass) -> bool {
    class.metadata.finalizers.iter().flatten().any(|f| f == FINALIZER)
}

impl Operator for AttributesClassProtection {
    type Resource = VolumeAttributesClass;
    type Owns = ();
    type Reads = (PersistentVolumeClaim, PersistentVolume);

    fn name() -> &'static str {
        "volumeattributesclass-protection-controller"
    }

    async fn reconcile(&self, class: &VolumeAttributesClass, cx: &Context<Self>) -> Result<Next> {
        if !is_protected(class) {
            let mut new = class.clone();
            new.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
            cx.writer().update(&new).await?;
        }
        Ok(Next::done())
    }

    async fn finalize(&self, class: &VolumeAttributesClass, cx: &Context<Self>) -> Result<Next> {
        let uses = |names: Vec<String>| names.iter().any(|n| n == cx.name());
        let used = || {
            cx.cache::<PersistentVolumeClaim, _>().list().iter().any(|c| uses(of_claim(c)))
                || cx.cache::<PersistentVolume, _>().list().iter().any(|v| uses(of_volume(v)))
        };
        if is_protected(class) && !used() {
            let mut new = class.clone();
            new.metadata.finalizers.get_or_insert_default().retain(|f| f != FINALIZER);
            cx.writer().update(&new).await?;
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // What a claim or a volume named before it changed or went may be free now.
        watches.changes::<PersistentVolumeClaim, _>(|change, _| {
            let before = change.old.as_ref().filter(|_| change.differs(of_claim));
            before.map(|c| of_claim(c)).into_iter().flatten().map(Key::cluster).collect()
        });
        watches.changes::<PersistentVolume, _>(|change, _| {
            let before = change.old.as_ref().filter(|_| change.differs(of_volume));
            before.map(|v| of_volume(v)).into_iter().flatten().map(Key::cluster).collect()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_holds_what_it_wants_has_and_becomes() {
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "spec": {"volumeAttributesClassName": "a"},
            "status": {"currentVolumeAttributesClassName": "b",
                "modifyVolumeStatus": {"status": "Pending", "targetVolumeAttributesClassName": "c"}}}))
        .unwrap();
        assert_eq!(of_claim(&claim), ["a", "b", "c"]);
        assert!(of_claim(&PersistentVolumeClaim::default()).is_empty());
        let volume: PersistentVolume =
            serde_json::from_value(json!({"spec": {"volumeAttributesClassName": "a"}})).unwrap();
        assert_eq!(of_volume(&volume), ["a"]);
    }
}
