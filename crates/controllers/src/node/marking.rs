//! Says of the pods on a node that is no longer heard of that they aren't ready, so that Services leave them out.
//!
//! Only what a pod said before the node fell silent counts as outdated: a kubelet that speaks has the last word on its
//! pods, also where it says that its node isn't ready.

use std::sync::Arc;

use homeostat_sdk::{Context, Event, Key, Result};
use k8s_openapi::api::core::v1::{NodeCondition, Pod};
use kube::api::Patch;
use serde_json::json;

use super::lifecycle::NodeLifecycle;
use crate::common::pods;

/// Marks those of a node's `pods` that count as ready since before it fell silent, as its `ready` condition tells. All are tried; the first
/// error, if any, is told.
pub(super) async fn mark(
    ready: &NodeCondition,
    pods: &[Arc<Pod>],
    cx: &Context<NodeLifecycle>,
) -> Result<()> {
    let mut told = Ok(());
    for pod in pods.iter().filter(|p| is_outdated(p, ready)) {
        let now = homeostat_model::clock::seconds(cx.clock().now());
        let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": now});
        let meta = json!({"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version});
        let patch = json!({"metadata": meta, "status": {"conditions": [condition]}});
        match cx.patch_status::<Pod, _>(&Key::of(&**pod), &Patch::Strategic(patch)).await {
            Ok(_) => {
                cx.event_about::<Pod>(pod, Event::warning("NodeNotReady", "Node is not ready")).await;
            }
            Err(e) if e.is_not_found() => {}
            Err(e) => told = told.and(Err(e)),
        }
    }
    told
}

fn is_outdated(pod: &Pod, node: &NodeCondition) -> bool {
    let changed = node.last_transition_time.as_ref().map(|t| t.0);
    node.status == "Unknown" && pods::ready_since(pod).is_some_and(|since| changed.is_none_or(|c| since <= c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(node: (&str, &str), pod: (&str, &str), want: bool) {
        let at = |time: &str| format!("2026-01-01T00:{time}Z");
        let condition = |(status, time): (&str, &str)| json!({"type": "Ready", "status": status, "lastTransitionTime": at(time)});
        let told = serde_json::from_value(condition(node)).unwrap();
        let pod_object = serde_json::from_value(json!({"status": {"conditions": [condition(pod)]}})).unwrap();
        assert_eq!(is_outdated(&pod_object, &told), want, "{node:?} {pod:?}");
    }

    #[test]
    fn only_what_was_said_before_the_node_fell_silent_is_outdated() {
        check(("True", "10:00"), ("True", "05:00"), false);
        check(("Unknown", "10:00"), ("True", "05:00"), true);
        check(("Unknown", "10:00"), ("True", "10:01"), false);
        check(("False", "10:00"), ("True", "05:00"), false);
        check(("Unknown", "10:00"), ("False", "05:00"), false);
    }
}
