//! The PersistentVolumeClaims of a set's pods: made before the pod, kept or collected as the retention policy says.
//!
//! A claim is never deleted here: an owner reference to the set, or to a pod that is scaled away, lets the garbage
//! collector take it. Without such a policy claims stay for ever.

use std::sync::Arc;

use homeostat_sdk::{Context, Event, Key, Result};
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::Patch;
use serde_json::json;

use super::{StatefulSets, identity, plan};

/// The names of the claims of a pod, in the order of the templates.
pub(super) fn names(set: &StatefulSet, spec: &StatefulSetSpec, ordinal: i32) -> Vec<String> {
    let set = set.metadata.name.as_deref().unwrap_or_default();
    let templates = spec.volume_claim_templates.iter().flatten();
    templates.filter_map(|t| t.metadata.name.as_deref()).map(|t| format!("{t}-{set}-{ordinal}")).collect()
}

/// Whether a claim is owned by a pod of this name, which lets it go with that pod.
pub(super) fn belongs_to_pod(claim: &PersistentVolumeClaim, pod: &str) -> bool {
    claim.metadata.owner_references.iter().flatten().any(|r| r.kind == "Pod" && r.name == pod)
}

/// Makes the claims of a pod that aren't there.
pub(super) async fn create(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    ordinal: i32,
    cx: &Context<StatefulSets>,
) -> Result<()> {
    let templates = spec.volume_claim_templates.as_deref().unwrap_or_default();
    for (template, name) in templates.iter().zip(names(set, spec, ordinal)) {
        if cx.read::<PersistentVolumeClaim, _>(&name).is_some() {
            continue;
        }
        let mut labels = template.metadata.labels.clone().unwrap_or_default();
        labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
        let owner = wanted_owner(set, spec, None);
        let claim = PersistentVolumeClaim {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: set.metadata.namespace.clone(),
                labels: Some(labels),
                annotations: template.metadata.annotations.clone(),
                owner_references: owner.map(|o| vec![o]),
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        };
        let (set_name, pod) = (cx.name(), identity::pod_name(set, ordinal));
        match cx.create::<PersistentVolumeClaim, _>(claim).await {
            Ok(_) => {
                let text = format!("create Claim {name} Pod {pod} in StatefulSet {set_name} success");
                cx.event(Event::normal("SuccessfulCreate", text)).await;
            }
            Err(e) if e.is_already_exists() => {}
            Err(e) => {
                let text =
                    format!("create Claim {name} for Pod {pod} in StatefulSet {set_name} failed error: {e}");
                cx.event(Event::warning("FailedCreate", text)).await;
                return Err(e);
            }
        }
    }
    Ok(())
}

/// Who should own a claim: nobody, the set, or the pod that is `condemned` to go.
fn wanted_owner(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    condemned: Option<&Pod>,
) -> Option<OwnerReference> {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref()?;
    let deletes = |p: &Option<String>| p.as_deref() == Some("Delete");
    if deletes(&policy.when_scaled)
        && let Some(pod) = condemned
    {
        return reference("v1", "Pod", &pod.metadata);
    }
    if deletes(&policy.when_deleted) { reference("apps/v1", "StatefulSet", &set.metadata) } else { None }
}

fn reference(api_version: &str, kind: &str, meta: &ObjectMeta) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: meta.name.clone()?,
        uid: meta.uid.clone()?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

/// The references that a claim should have, where they differ from those it has: ours (to the set, or to a pod of
/// this name) are replaced, others stay.
fn mended(
    claim: &PersistentVolumeClaim,
    set_uid: Option<&str>,
    pod: &str,
    wanted: Option<OwnerReference>,
) -> Option<Vec<OwnerReference>> {
    let has = claim.metadata.owner_references.clone().unwrap_or_default();
    let ours = |r: &OwnerReference| Some(r.uid.as_str()) == set_uid || (r.kind == "Pod" && r.name == pod);
    let mine: Vec<&OwnerReference> = has.iter().filter(|r| ours(r)).collect();
    let right = match (&wanted, mine.as_slice()) {
        (None, []) => true,
        (Some(w), [m]) => m.uid == w.uid,
        _ => false,
    };
    if right {
        return None;
    }
    Some(has.iter().filter(|r| !ours(r)).cloned().chain(wanted).collect())
}

/// Gives the claims of all pods the owners that the retention policy asks for.
pub(super) async fn keep_owners(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    cx: &Context<StatefulSets>,
) -> Result<()> {
    let Some(spec) = &set.spec else { return Ok(()) };
    if spec.volume_claim_templates.as_ref().is_none_or(Vec::is_empty) {
        return Ok(());
    }
    for pod in pods {
        let Some((_, ordinal)) = identity::parent_and_ordinal(pod) else { continue };
        let condemned = (!plan::ordinals(spec).contains(&ordinal)).then_some(&**pod);
        for name in names(set, spec, ordinal) {
            let Some(claim) = cx.read::<PersistentVolumeClaim, _>(&name) else { continue };
            let wanted = wanted_owner(set, spec, condemned);
            let pod = pod.metadata.name.as_deref().unwrap_or_default();
            let Some(owners) = mended(&claim, set.metadata.uid.as_deref(), pod, wanted) else { continue };
            let version = claim.metadata.resource_version.as_deref();
            let owners = if owners.is_empty() { serde_json::Value::Null } else { json!(owners) };
            let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": owners}});
            cx.patch::<PersistentVolumeClaim, _>(&Key::of(&*claim), &Patch::Merge(patch)).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(kind: &str, name: &str, uid: &str) -> OwnerReference {
        OwnerReference { kind: kind.into(), name: name.into(), uid: uid.into(), ..OwnerReference::default() }
    }

    #[track_caller]
    fn check(has: &[OwnerReference], wanted: Option<OwnerReference>, want: Option<&[&str]>) {
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.owner_references = Some(has.to_vec());
        let got = mended(&claim, Some("set"), "web-0", wanted);
        let got: Option<Vec<&str>> = got.as_ref().map(|l| l.iter().map(|r| r.uid.as_str()).collect());
        assert_eq!(got.as_deref(), want);
    }

    #[test]
    fn owners_follow_the_policy_and_leave_others_alone() {
        let set = || owner("StatefulSet", "web", "set");
        let pod = |uid: &str| owner("Pod", "web-0", uid);
        let other = || owner("Backup", "b", "other");
        check(&[], None, None);
        check(&[other()], None, None);
        check(&[], Some(set()), Some(&["set"]));
        check(&[set()], Some(set()), None);
        check(&[other(), set()], None, Some(&["other"]));
        check(&[other(), set()], Some(pod("p1")), Some(&["other", "p1"]));
        check(&[pod("p0")], Some(pod("p1")), Some(&["p1"]));
        check(&[set(), pod("p1")], Some(set()), Some(&["set"]));
    }

    #[test]
    fn the_policy_says_who_owns() {
        let mut set = StatefulSet::default();
        set.metadata.name = Some("web".into());
        set.metadata.uid = Some("set".into());
        let mut pod = Pod::default();
        pod.metadata.name = Some("web-3".into());
        pod.metadata.uid = Some("pod".into());
        let check = |deleted: &str, scaled: &str, condemned: bool, want: Option<&str>| {
            let spec: StatefulSetSpec = serde_json::from_value(json!({"selector": {}, "template": {},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}))
            .unwrap();
            let got = wanted_owner(&set, &spec, condemned.then_some(&pod));
            assert_eq!(got.as_ref().map(|r| r.uid.as_str()), want, "{deleted} {scaled} {condemned}");
        };
        check("Retain", "Retain", true, None);
        check("Delete", "Retain", false, Some("set"));
        check("Delete", "Retain", true, Some("set"));
        check("Retain", "Delete", false, None);
        check("Retain", "Delete", true, Some("pod"));
        check("Delete", "Delete", true, Some("pod"));
        check("Delete", "Delete", false, Some("set"));
    }
}
