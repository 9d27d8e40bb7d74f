//! Claims that pods use and volumes that are bound don't go before they are free.
//!
//! Admission gives them a finalizer; these two controllers take it off when a deletion has begun and nothing holds
//! the object any more.

use homeostat_sdk::{Context, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::Patch;
use serde_json::{Value, json};

use crate::common::pods;

const CLAIM_FINALIZER: &str = "kubernetes.io/pvc-protection";
const VOLUME_FINALIZER: &str = "kubernetes.io/pv-protection";

/// Lets claims go that no pod uses.
pub(crate) struct ClaimProtection;

/// Lets volumes go that aren't bound.
pub(crate) struct VolumeProtection;

/// Takes a finalizer off, if the object is still as it was seen.
fn without(finalizers: Option<&Vec<String>>, version: Option<&str>, finalizer: &str) -> Option<Patch<Value>> {
    let all = finalizers.filter(|l| l.iter().any(|f| f == finalizer))?;
    let rest: Vec<&String> = all.iter().filter(|f| *f != finalizer).collect();
    let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
    Some(Patch::Merge(json!({"metadata": {"resourceVersion": version, "finalizers": rest}})))
}

/// The names of the claims that a pod uses, generic ephemeral ones included.
pub(crate) fn claims(pod: &Pod) -> Vec<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|s| s.volumes.iter().flatten());
    volumes
        .filter_map(|v| match (&v.persistent_volume_claim, &v.ephemeral) {
            (Some(claim), _) => Some(claim.claim_name.clone()),
            (None, Some(_)) => Some(format!("{name}-{}", v.name)),
            (None, None) => None,
        })
        .collect()
}

impl Operator for ClaimProtection {
    type Resource = PersistentVolumeClaim;
    type Owns = ();
    type Reads = (Pod,);

    fn name() -> &'static str {
        "persistentvolumeclaim-protection-controller"
    }

    async fn reconcile(&self, _: &PersistentVolumeClaim, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    async fn finalize(&self, claim: &PersistentVolumeClaim, cx: &Context<Self>) -> Result<Next> {
        let meta = &claim.metadata;
        let patch = without(meta.finalizers.as_ref(), meta.resource_version.as_deref(), CLAIM_FINALIZER);
        let Some(patch) = patch else { return Ok(Next::done()) };
        // A pod that has no node yet has mounted nothing.
        let uses = |p: &Pod| pods::node(p).is_some() && claims(p).iter().any(|c| c == cx.name());
        let pods = cx.cache::<Pod, _>().in_namespace(cx.namespace().unwrap_or_default());
        if !pods.iter().any(|p| uses(p)) {
            cx.patch_resource(&patch).await?;
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.changes::<Pod, _>(|change, view| {
            let (Some(pod), None) = (&change.old, &change.new) else { return Vec::new() };
            let namespace = pod.metadata.namespace.as_deref();
            let keys = claims(pod).into_iter().map(|c| Key::new(namespace, &c));
            keys.filter(|k| view.resources().get(k).is_some()).collect()
        });
    }
}

impl Operator for VolumeProtection {
    type Resource = PersistentVolume;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "persistentvolume-protection-controller"
    }

    async fn reconcile(&self, _: &PersistentVolume, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    async fn finalize(&self, volume: &PersistentVolume, cx: &Context<Self>) -> Result<Next> {
        let meta = &volume.metadata;
        let patch = without(meta.finalizers.as_ref(), meta.resource_version.as_deref(), VOLUME_FINALIZER);
        let bound = volume.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Bound");
        if let Some(patch) = patch.filter(|_| !bound) {
            cx.patch_resource(&patch).await?;
        }
        Ok(Next::done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_finalizer_is_taken_off() {
        let patch = |list: &[&str]| {
            let list: Vec<String> = list.iter().map(|f| (*f).to_owned()).collect();
            match without(Some(&list), Some("7"), CLAIM_FINALIZER) {
                Some(Patch::Merge(patch)) => Some(patch["metadata"]["finalizers"].clone()),
                _ => None,
            }
        };
        assert_eq!(patch(&["a/b"]), None);
        assert_eq!(patch(&[CLAIM_FINALIZER]), Some(Value::Null));
        assert_eq!(patch(&["a/b", CLAIM_FINALIZER]), Some(json!(["a/b"])));
    }

    #[test]
    fn pods_use_claims_by_name() {
        let pod: Pod =
            serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": [], "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}}, {"name": "b", "ephemeral": {}},
            {"name": "c", "emptyDir": {}}]}}))
            .unwrap();
        assert_eq!(claims(&pod), ["data", "p-b"]);
    }
}
