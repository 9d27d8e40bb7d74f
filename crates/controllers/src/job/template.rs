//! A Job's pod: the template, to be counted, and where it is indexed with its index in name, label and environment.

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

use super::TRACKING;
use crate::common::template;

/// Annotation and label with the index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often the index failed before this pod, and how many of its failures were ignored.
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
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

/// The failures of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    /// Those that count.
    pub(super) counted: i32,
    /// Those that the policy ignores.
    pub(super) ignored: i32,
}

impl Failures {
    /// What a pod knows of the failures before it.
    pub(super) fn before(pod: &Pod) -> Self {
        let read = |key| {
            let text = pod.metadata.annotations.as_ref().and_then(|a| a.get(key));
            text.and_then(|t| t.parse().ok()).unwrap_or(0)
        };
        Self { counted: read(FAILURES), ignored: read(IGNORED) }
    }

    pub(super) fn all(self) -> i32 {
        self.counted.saturating_add(self.ignored)
    }
}

/// A pod to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct New {
    /// Its index, where pods have one.
    pub(super) index: Option<i32>,
    /// The failures of its index, where they are limited for each.
    pub(super) failures: Option<Failures>,
}

/// A new pod of the Job `name`.
pub(super) fn pod(name: &str, spec: &JobSpec, new: New) -> Pod {
    let mut pod = template::pod(&spec.template, name);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|f| f == TRACKING) {
        finalizers.push(TRACKING.into());
    }
    let Some(index) = new.index else { return pod };
    if let Some(failures) = new.failures {
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.insert(FAILURES.into(), failures.counted.to_string());
        if failures.ignored > 0 {
            annotations.insert(IGNORED.into(), failures.ignored.to_string());
        }
    }
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
