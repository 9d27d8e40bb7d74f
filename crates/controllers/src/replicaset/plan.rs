//! How many pods are missing or too many, which ones go, and what the status says: pure functions of the pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_model::Timestamp;
use homeostat_sdk::Error;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::kinds::Replicated;
use crate::common::{condition, pod_control, pods};

/// What a plan is made from.
pub(super) struct State<'a> {
    pub(super) replicas: i32,
    pub(super) min_ready: i32,
    pub(super) generation: Option<i64>,
    pub(super) template_labels: Option<&'a BTreeMap<String, String>>,
    /// The set's pods that are neither over nor on their way out.
    pub(super) active: &'a [Arc<Pod>],
    /// How many are on their way out.
    pub(super) terminating: usize,
    pub(super) conditions: Vec<Value>,
    pub(super) now: Timestamp,
}

/// What went wrong with pods.
pub(super) struct Failure {
    reason: &'static str,
    pub(super) error: Error,
}

impl Failure {
    pub(super) fn new(reason: &'static str, error: Error) -> Self {
        Self { reason, error }
    }
}

impl State<'_> {
    /// Pods to make (positive) or to delete (negative).
    pub(super) fn change(&self) -> i64 {
        i64::from(self.replicas) - i64::try_from(self.active.len()).unwrap_or(i64::MAX)
    }

    /// The pods to delete: those that are missed least. `siblings` are the pods of related sets, this one's included.
    pub(super) fn victims(&self, siblings: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
        let count = usize::try_from(-self.change()).unwrap_or(0).min(pod_control::BURST);
        let mut per_node: BTreeMap<&str, usize> = BTreeMap::new();
        for node in siblings.iter().filter_map(|p| pods::node(p)) {
            *per_node.entry(node).or_default() += 1;
        }
        let rank = |p: &Pod| pods::node(p).and_then(|n| per_node.get(n)).copied().unwrap_or(0);
        let mut all: Vec<&Arc<Pod>> = self.active.iter().collect();
        all.sort_by_cached_key(|p| pods::deletion_order(p, rank(p), self.now));
        all.into_iter().take(count).cloned().collect()
    }

    pub(super) fn status<K: Replicated>(&self, failure: Option<&Failure>) -> Value {
        let count = |f: &dyn Fn(&Pod) -> bool| self.active.iter().filter(|p| f(p)).count();
        let labelled = |p: &Pod| {
            let has = p.metadata.labels.as_ref();
            self.template_labels
                .is_none_or(|want| want.iter().all(|(k, v)| has.and_then(|l| l.get(k)) == Some(v)))
        };
        let mut status = json!({"replicas": self.active.len(), "observedGeneration": self.generation});
        // Counts of zero are absent in the API.
        for (field, n) in [
            ("fullyLabeledReplicas", count(&labelled)),
            ("readyReplicas", count(&pods::is_ready)),
            ("availableReplicas", count(&|p| pods::is_available(p, self.min_ready, self.now))),
        ] {
            if n > 0 {
                status[field] = n.into();
            }
        }
        if K::COUNTS_TERMINATING {
            status["terminatingReplicas"] = self.terminating.into();
        }
        let conditions = self.conditions(failure);
        if !conditions.is_empty() {
            status["conditions"] = conditions.into();
        }
        status
    }

    fn conditions(&self, failure: Option<&Failure>) -> Vec<Value> {
        const KIND: &str = "ReplicaFailure";
        let mut conditions = self.conditions.clone();
        match failure {
            Some(failure) => {
                let now = homeostat_model::clock::seconds(self.now);
                let message = failure.error.to_string();
                let old = condition::find(&conditions, KIND);
                if let Some(new) = condition::changed(old, KIND, "True", failure.reason, &message, &now) {
                    condition::set(&mut conditions, new);
                }
            }
            None => conditions.retain(|c| c["type"] != KIND),
        }
        conditions
    }
}
