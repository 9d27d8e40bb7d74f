//! What makes a pod the n-th of its set: its name, labels, host name and volumes.
//!
//! Pure. The names of claims follow from the template's, the set's and the ordinal.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Pod, PodSpec, PodTemplateSpec, Volume};

use crate::common::{history, template};

use super::claims;

const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// `web-3` is the third pod of `web`.
pub(super) fn parent_and_ordinal(pod: &Pod) -> Option<(&str, i32)> {
    let (parent, ordinal) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    if ordinal.is_empty() || !ordinal.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((parent, ordinal.parse().ok()?))
}

/// The name of the pod with this ordinal.
pub(super) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", set.metadata.name.as_deref().unwrap_or_default())
}

/// The revision that a pod was made from.
pub(super) fn revision(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(history::HASH_LABEL).map(String::as_str)
}

/// The labels that say which pod of the set it is.
pub(super) fn labels(set: &StatefulSet, ordinal: i32) -> BTreeMap<String, String> {
    [(NAME_LABEL.to_owned(), pod_name(set, ordinal)), (INDEX_LABEL.to_owned(), ordinal.to_string())].into()
}

/// The pod with this ordinal, made from `template`.
pub(super) fn pod(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    ordinal: i32,
    template: &PodTemplateSpec,
    revision: &str,
) -> Pod {
    let mut pod = template::pod(template, set.metadata.name.as_deref().unwrap_or_default());
    let name = pod_name(set, ordinal);
    let own = pod.metadata.labels.get_or_insert_default();
    own.extend(labels(set, ordinal));
    own.insert(history::HASH_LABEL.into(), revision.into());
    let pod_spec = pod.spec.get_or_insert_default();
    pod_spec.hostname = Some(name.clone());
    pod_spec.subdomain = spec.service_name.clone().filter(|s| !s.is_empty());
    mount(set, spec, ordinal, pod_spec);
    pod.metadata.name = Some(name);
    pod.metadata.namespace = set.metadata.namespace.clone();
    pod
}

/// The set's claims become the pod's volumes, in place of volumes of the same names.
fn mount(set: &StatefulSet, spec: &StatefulSetSpec, ordinal: i32, pod: &mut PodSpec) {
    let templates = spec.volume_claim_templates.as_deref().unwrap_or_default();
    if templates.is_empty() {
        return;
    }
    let names: Vec<&str> = templates.iter().filter_map(|t| t.metadata.name.as_deref()).collect();
    let mut volumes: Vec<Volume> = names
        .iter()
        .zip(claims::names(set, spec, ordinal))
        .map(|(name, claim_name)| Volume {
            name: (*name).to_owned(),
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource { claim_name, read_only: None }),
            ..Volume::default()
        })
        .collect();
    volumes.extend(pod.volumes.take().into_iter().flatten().filter(|v| !names.contains(&v.name.as_str())));
    pod.volumes = Some(volumes);
}

/// Whether a pod has the labels of its place and the claims of the set.
pub(super) fn matches(set: &StatefulSet, spec: &StatefulSetSpec, pod: &Pod) -> bool {
    let Some((_, ordinal)) = parent_and_ordinal(pod) else { return true };
    let has = pod.metadata.labels.as_ref();
    let labelled = labels(set, ordinal).iter().all(|(k, v)| has.and_then(|l| l.get(k)) == Some(v));
    labelled && storage_matches(set, spec, ordinal, pod)
}

fn storage_matches(set: &StatefulSet, spec: &StatefulSetSpec, ordinal: i32, pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|s| s.volumes.as_deref()).unwrap_or_default();
    let templates = spec.volume_claim_templates.iter().flatten().filter_map(|t| t.metadata.name.as_deref());
    templates.zip(claims::names(set, spec, ordinal)).all(|(name, claim)| {
        let volume = volumes.iter().find(|v| v.name == name);
        volume.and_then(|v| v.persistent_volume_claim.as_ref()).is_some_and(|c| c.claim_name == claim)
    })
}
