//! The two kinds that keep a number of pods.

use homeostat_sdk::selector::Labels;
use homeostat_sdk::{Object, Result};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Resource;
use serde_json::{Value, json};

use crate::common::claim;

/// A kind that keeps a number of pods of a template.
pub(crate) trait Replicated: Object + Resource<DynamicType = ()> {
    /// The controller's name.
    const CONTROLLER: &'static str;
    /// Whether the status counts pods on their way out.
    const COUNTS_TERMINATING: bool;

    /// `spec.replicas`.
    fn replicas(&self) -> i32;
    /// `spec.minReadySeconds`.
    fn min_ready(&self) -> i32;
    /// `spec.selector`.
    fn selector(&self) -> Result<Labels>;
    /// `spec.template`.
    fn template(&self) -> Option<&PodTemplateSpec>;
    /// `status.conditions`.
    fn conditions(&self) -> Vec<Value>;
}

fn list(conditions: Value) -> Vec<Value> {
    conditions.as_array().cloned().unwrap_or_default()
}

impl Replicated for ReplicaSet {
    const CONTROLLER: &'static str = "replicaset-controller";
    const COUNTS_TERMINATING: bool = true;

    fn replicas(&self) -> i32 {
        self.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1)
    }

    fn min_ready(&self) -> i32 {
        self.spec.as_ref().and_then(|s| s.min_ready_seconds).unwrap_or(0)
    }

    fn selector(&self) -> Result<Labels> {
        claim::labels(self.spec.as_ref().map(|s| &s.selector))
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn conditions(&self) -> Vec<Value> {
        list(json!(self.status.as_ref().and_then(|s| s.conditions.as_ref())))
    }
}

impl Replicated for ReplicationController {
    const CONTROLLER: &'static str = "replicationcontroller-controller";
    const COUNTS_TERMINATING: bool = false;

    fn replicas(&self) -> i32 {
        self.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1)
    }

    fn min_ready(&self) -> i32 {
        self.spec.as_ref().and_then(|s| s.min_ready_seconds).unwrap_or(0)
    }

    fn selector(&self) -> Result<Labels> {
        let match_labels = self.spec.as_ref().and_then(|s| s.selector.clone());
        claim::labels(Some(&LabelSelector { match_labels, match_expressions: None }))
    }

    fn template(&self) -> Option<&PodTemplateSpec> {
        self.spec.as_ref()?.template.as_ref()
    }

    fn conditions(&self) -> Vec<Value> {
        list(json!(self.status.as_ref().and_then(|s| s.conditions.as_ref())))
    }
}
