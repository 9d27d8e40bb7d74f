//! Questions that controllers ask about a pod: is it ready, available, over, on its way out.
//!
//! They look at the object only. Times are given by the caller.

use std::cmp::Reverse;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Cache, Index};
use k8s_openapi::api::core::v1::{Pod, PodCondition};

/// `status.phase`, empty where there is none.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|s| s.phase.as_deref()).unwrap_or_default()
}

/// It ended and will not start again.
pub(crate) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Its deletion has begun.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Neither over nor on its way out.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_over(pod) && !is_terminating(pod)
}

/// A condition of the pod.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|c| c.type_ == kind)
}

/// Whether the `Ready` condition holds.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|c| c.status == "True")
}

/// Since when the pod is ready; `None` where it isn't.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|c| c.status == "True")?;
    Some(ready.last_transition_time.as_ref().map_or(Timestamp::MIN, |t| t.0))
}

/// How long until the pod has been ready for `min_ready` seconds: zero where it is available, `None` where it isn't
/// even ready.
pub(crate) fn available_in(pod: &Pod, min_ready: i32, now: Timestamp) -> Option<Duration> {
    let since = ready_since(pod)?;
    let wanted = Duration::from_secs(u64::try_from(min_ready).unwrap_or(0));
    if wanted.is_zero() || since == Timestamp::MIN {
        return Some(Duration::ZERO);
    }
    let has = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    Some(wanted.saturating_sub(has))
}

/// Whether the pod has been ready for `min_ready` seconds.
pub(crate) fn is_available(pod: &Pod, min_ready: i32, now: Timestamp) -> bool {
    available_in(pod, min_ready, now) == Some(Duration::ZERO)
}

/// The soonest time at which a ready pod becomes available: when to look again.
pub(crate) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready: i32,
    now: Timestamp,
) -> Option<Duration> {
    pods.into_iter().filter_map(|p| available_in(p, min_ready, now)).filter(|d| !d.is_zero()).min()
}

/// `spec.nodeName`, where the pod is bound.
pub(crate) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|n| !n.is_empty())
}

/// Pods by the node that they are bound to.
pub(crate) fn by_node(pods: &Cache<Pod>) -> Index<Pod> {
    pods.index(|p| node(p).map(str::to_owned).into_iter().collect())
}

/// The largest restart count among the containers.
pub(crate) fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.as_ref();
    let of = |list: Option<&Vec<k8s_openapi::api::core::v1::ContainerStatus>>| {
        list.into_iter().flatten().map(|c| c.restart_count).max().unwrap_or(0)
    };
    of(status.and_then(|s| s.container_statuses.as_ref()))
        .max(of(status.and_then(|s| s.init_container_statuses.as_ref())))
}

/// `controller.kubernetes.io/pod-deletion-cost`; 0 where it is absent or no number.
pub(crate) fn deletion_cost(pod: &Pod) -> i32 {
    let text =
        pod.metadata.annotations.as_ref().and_then(|a| a.get("controller.kubernetes.io/pod-deletion-cost"));
    text.and_then(|t| t.parse().ok()).unwrap_or(0)
}

/// The order in which a controller with too many pods deletes them, first the ones it misses least: unassigned,
/// pending, not ready, cheaper, with more siblings on the node (`rank`), ready for a shorter time, with more
/// restarts, younger. Times count by their order of magnitude, as in the reference.
pub(crate) fn deletion_order(pod: &Pod, rank: usize, now: Timestamp) -> impl Ord + use<> {
    let age = |t: Option<Timestamp>| {
        let seconds = t.map_or(0, |t| now.duration_since(t).as_secs().max(0));
        // Powers of two, so that pods of about the same age are told apart by other things.
        u64::try_from(seconds).unwrap_or(0).checked_ilog2().map_or(0, |l| l + 1)
    };
    let progress = match phase(pod) {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    };
    let created = pod.metadata.creation_timestamp.as_ref().map(|t| t.0);
    (
        node(pod).is_some(),
        progress,
        is_ready(pod),
        deletion_cost(pod),
        Reverse(rank),
        age(ready_since(pod).filter(|t| *t != Timestamp::MIN)),
        Reverse(restarts(pod)),
        age(created),
        pod.metadata.uid.clone(),
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodStatus;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn ready(since: i64) -> Pod {
        let status: PodStatus = serde_json::from_value(json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": at(since).to_string()}]}))
        .unwrap();
        Pod { status: Some(status), ..Pod::default() }
    }

    #[test]
    fn available_is_ready_for_long_enough() {
        let seconds = |pod: &Pod, min, now| available_in(pod, min, at(now)).map(|d| d.as_secs());
        assert_eq!(seconds(&Pod::default(), 0, 0), None);
        assert_eq!(seconds(&ready(0), 0, 0), Some(0));
        assert_eq!(seconds(&ready(0), 10, 4), Some(6));
        assert_eq!(seconds(&ready(0), 10, 10), Some(0));
        assert_eq!(next_available([&ready(0), &ready(3), &Pod::default()], 10, at(4)).unwrap().as_secs(), 6);
    }

    #[test]
    fn what_is_missed_least_goes_first() {
        let pod = |v: serde_json::Value| serde_json::from_value::<Pod>(v).unwrap();
        let in_order = [
            pod(json!({"metadata": {"uid": "unbound"}, "status": {"phase": "Pending"}})),
            pod(json!({"metadata": {"uid": "pending"}, "spec": {"nodeName": "a", "containers": []},
                "status": {"phase": "Pending"}})),
            pod(json!({"metadata": {"uid": "unready"}, "spec": {"nodeName": "a", "containers": []},
                "status": {"phase": "Running"}})),
            pod(
                json!({"metadata": {"uid": "cheap", "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-3"}},
                "spec": {"nodeName": "a", "containers": []}, "status": {"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": at(0).to_string()}]}}),
            ),
            pod(json!({"metadata": {"uid": "young"}, "spec": {"nodeName": "a", "containers": []},
                "status": {"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": at(99).to_string()}]}})),
            pod(json!({"metadata": {"uid": "old"}, "spec": {"nodeName": "a", "containers": []},
                "status": {"phase": "Running", "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": at(0).to_string()}]}})),
        ];
        let mut sorted: Vec<&Pod> = in_order.iter().rev().collect();
        sorted.sort_by_cached_key(|p| deletion_order(p, 1, at(100)));
        let uids: Vec<&str> = sorted.iter().filter_map(|p| p.metadata.uid.as_deref()).collect();
        assert_eq!(uids, ["unbound", "pending", "unready", "cheap", "young", "old"]);
    }
}
