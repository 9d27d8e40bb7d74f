//! What people are told: the pod's condition, and events, in the reference's words.

use homeostat_sdk::{Event, Recorder};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::Resource;
use kube::api::Patch;
use serde_json::{Value, json};

use crate::framework::Io;
use crate::snapshot::PodInfo;

/// The API's limit of an event's note.
const NOTE_LIMIT: usize = 1024;

/// What becomes of a pod's nomination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Nomination {
    /// It stays as it is.
    Keep,
    /// This node, or none.
    Set(Option<String>),
    /// None, whatever is known of the pod: one was just set here, and the caches may not have heard of it.
    Clear,
}

/// As the reference shortens it.
fn shorten(text: &str) -> String {
    const SUFFIX: &str = " ...";
    if text.len() <= NOTE_LIMIT {
        return text.to_owned();
    }
    let mut end = NOTE_LIMIT - SUFFIX.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{SUFFIX}", &text[..end])
}

/// Names an object in an event.
pub(super) fn reference(pod: &PodInfo) -> ObjectReference {
    pod.pod.object_ref(&())
}

/// The event of an attempt that failed.
pub(super) async fn failed(recorder: &Recorder, pod: &PodInfo, text: &str) {
    let event = Event::warning("FailedScheduling", shorten(text)).action("Scheduling");
    recorder.record(reference(pod), event).await;
}

/// The event of a pod that was bound.
pub(super) async fn scheduled(recorder: &Recorder, pod: &PodInfo, node: &str) {
    let note = format!("Successfully assigned {}/{} to {node}", pod.namespace(), pod.key.name());
    recorder.record(reference(pod), Event::normal("Scheduled", note).action("Binding")).await;
}

/// The event of a pod that had to go for another.
pub(super) async fn preempted(recorder: &Recorder, victim: &PodInfo, by: &PodInfo, node: &str) {
    let note = format!("Preempted by pod {} on node {node}", by.uid);
    let event = Event::normal("Preempted", note).action("Preempting").related(reference(by));
    recorder.record(reference(victim), event).await;
}

/// The change of a pod's status that says why it has no node; `None` where it says so already.
fn change(pod: &PodInfo, reason: &str, text: &str, nomination: &Nomination, now: String) -> Option<Value> {
    let mut status = json!({});
    let generation = pod.pod.metadata.generation;
    let conditions = pod.pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let told = conditions.iter().find(|c| c.type_ == "PodScheduled");
    let same = told.is_some_and(|c| {
        c.status == "False"
            && c.reason.as_deref() == Some(reason)
            && c.message.as_deref() == Some(text)
            && c.observed_generation == generation
    });
    if !same {
        // The transition is the first time; later words about it are not.
        let since = told.filter(|c| c.status == "False").and_then(|c| c.last_transition_time.as_ref());
        let since = since.map_or(now, |t| homeostat_model::clock::seconds(t.0));
        let mut condition = json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": text,
            "lastProbeTime": null, "lastTransitionTime": since});
        if let Some(generation) = generation {
            condition["observedGeneration"] = generation.into();
        }
        status["conditions"] = json!([condition]);
    }
    match nomination {
        Nomination::Set(node) if pod.nominated() != node.as_deref() => {
            status["nominatedNodeName"] = json!(node)
        }
        Nomination::Clear => status["nominatedNodeName"] = Value::Null,
        _ => {}
    }
    (status != json!({})).then(|| json!({"status": status}))
}

/// Says in the pod's status why it has no node.
pub(super) async fn explain(io: &Io, pod: &PodInfo, reason: &str, text: &str, nomination: &Nomination) {
    let Some(patch) = change(pod, reason, text, nomination, io.clock.now_seconds()) else { return };
    if let Err(error) = io.writer.patch_status::<Pod, _>(&pod.key, &Patch::Strategic(patch)).await
        && !error.is_not_found()
    {
        tracing::warn!(pod = %pod.key, %error, "cannot update the pod's status");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use std::sync::Arc;

    #[track_caller]
    fn check(status: Value, nomination: Nomination, want: Option<Value>) {
        let pod =
            json!({"metadata": {"name": "p", "generation": 2}, "spec": {"containers": []}, "status": status});
        let pod = Snapshot::default().read(Arc::new(serde_json::from_value(pod).unwrap()));
        let got = change(&pod, "Unschedulable", "no", &nomination, "2026-01-01T00:00:00Z".to_owned());
        assert_eq!(got, want.map(|w| json!({"status": w})));
    }

    #[test]
    fn a_status_says_once_why() {
        let condition = |since: &str| {
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no",
                "lastProbeTime": null, "lastTransitionTime": since, "observedGeneration": 2})
        };
        let new = json!({"conditions": [condition("2026-01-01T00:00:00Z")]});
        check(json!({}), Nomination::Keep, Some(new));
        let old = condition("2025-01-01T00:00:00Z");
        check(json!({"conditions": [old]}), Nomination::Keep, None);
        check(json!({"conditions": [old]}), Nomination::Set(None), None);
        check(json!({"conditions": [old]}), Nomination::Clear, Some(json!({"nominatedNodeName": null})));
        let nominated = json!({"nominatedNodeName": "n"});
        check(json!({"conditions": [old]}), Nomination::Set(Some("n".to_owned())), Some(nominated));
        let mut other = old.clone();
        other["message"] = "else".into();
        let cleared = json!({"conditions": [old], "nominatedNodeName": null});
        check(json!({"conditions": [other], "nominatedNodeName": "n"}), Nomination::Set(None), Some(cleared));
    }

    #[test]
    fn long_texts_end_in_dots() {
        let text = shorten(&"é".repeat(600));
        assert!(text.len() <= NOTE_LIMIT && text.ends_with("é ..."));
    }
}
