//! Pods as their templates say.

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A pod like `template`, with a generated name that begins with the owner's. Namespace and owner are for the caller
/// to set.
pub(crate) fn pod(template: &PodTemplateSpec, owner: &str) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{owner}-")),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
