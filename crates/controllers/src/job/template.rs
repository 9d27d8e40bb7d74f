//! A Job's pod: the template, to be counted, and where it is indexed with its index in name, label and environment.

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

use super::TRACKING;
use crate::common::template;

/// Annotation and label with the index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// Whether each pod has an index of its own.
pub(super) fn is_indexed(spec: &JobSpec) -> bool {
    spec.completion_mode.as_deref() == Some("Indexed")
}

/// The index of a pod.
pub(super) fn index(pod: &Pod) -> Option<i32> {
    let annotations = pod.metadata.annotations.as_ref();
    let value = annotations.and_then(|a| a.get(INDEX)).or_else(|| pod.metadata.labels.as_ref()?.get(INDEX));
    value?.parse().ok()
}

/// A new pod of the Job `name`.
pub(super) fn pod(name: &str, spec: &JobSpec, index: Option<i32>) -> Pod {
    let mut pod = template::pod(&spec.template, name);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|f| f == TRACKING) {
        finalizers.push(TRACKING.into());
    }
    let Some(index) = index else { return pod };
    pod.metadata.generate_name = Some(format!("{name}-{index}-"));
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.into(), index.to_string());
    pod.metadata.labels.get_or_insert_default().insert(INDEX.into(), index.to_string());
    let of_pod = pod.spec.get_or_insert_default();
    of_pod.hostname = Some(format!("{name}-{index}"));
    let all = of_pod.init_containers.iter_mut().flatten().chain(&mut of_pod.containers);
    for container in all {
        let env = container.env.get_or_insert_default();
        if !env.iter().any(|e| e.name == VARIABLE) {
            env.push(variable());
        }
    }
    pod
}

fn variable() -> EnvVar {
    EnvVar {
        name: VARIABLE.into(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: format!("metadata.labels['{INDEX}']"),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}
