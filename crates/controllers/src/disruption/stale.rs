//! Takes back that a pod is the target of a disruption, where nothing came of it: who announced it has died since, or was
//! refused the deletion.
//!
//! A kubelet that ends a pod may take its time, so what it announces is left alone. Source: kube-controller-manager's
//! `DisruptionController.syncStalePodDisruption`.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Patch;
use serde_json::json;

use crate::common::pods;

/// An announcement that wasn't followed by a deletion for so long is stale.
const TIMEOUT: Duration = Duration::from_secs(120);
const TARGET: &str = "DisruptionTarget";
const BY_KUBELET: &str = "TerminationByKubelet";

/// The controller.
pub(crate) struct StaleDisruptions;

/// How long until a pod's announced disruption is stale; zero where it is, `None` where it can't become so.
fn left(pod: &Pod, now: Timestamp) -> Option<Duration> {
    if pods::is_terminating(pod) || pods::is_over(pod) {
        return None;
    }
    let told = pods::condition(pod, TARGET).filter(|c| c.status == "True")?;
    if told.reason.as_deref() == Some(BY_KUBELET) {
        return None;
    }
    let since = told.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |t| t.0);
    Some(TIMEOUT.saturating_sub(Duration::try_from(now.duration_since(since)).unwrap_or_default()))
}

impl Operator for StaleDisruptions {
    type Resource = Pod;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "stale-pod-disruption"
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        let now = cx.clock().now();
        match left(pod, now) {
            None => return Ok(Next::done()),
            Some(Duration::ZERO) => {}
            Some(wait) => return Ok(Next::after(wait)),
        }
        let condition = json!({"type": TARGET, "status": "False", "observedGeneration": pod.metadata.generation,
            "lastTransitionTime": homeostat_model::clock::seconds(now)});
        // Only as it was seen: it may be announced anew just now.
        let meta = json!({"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version});
        let patch = json!({"metadata": meta, "status": {"conditions": [condition]}});
        match cx.writer().patch_status::<Pod, _>(cx.key(), &Patch::Strategic(patch)).await {
            Err(e) if !e.is_not_found() => Err(e),
            _ => Ok(Next::done()),
        }
    }

    async fn finalize(&self, _: &Pod, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        let announced = |p: &Arc<Pod>| left(p, Timestamp::MIN).is_some();
        watches.filter(move |change| change.new.as_ref().is_some_and(announced));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_announced_is_stale_after_two_minutes() {
        let at = |s: i64| Timestamp::from_second(1_000_000 + s).unwrap();
        let check = |seconds: i64, change: Value, want: Option<u64>| {
            let mut pod = json!({"status": {"phase": "Running", "conditions": [{"type": TARGET, "status": "True",
                "reason": "EvictionByEvictionAPI", "lastTransitionTime": at(0).to_string()}]}});
            json_merge(&mut pod, &change);
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(left(&pod, at(seconds)).map(|d| d.as_secs()), want, "{change}");
        };
        check(0, json!({}), Some(120));
        check(100, json!({}), Some(20));
        check(120, json!({}), Some(0));
        check(500, json!({}), Some(0));
        check(500, json!({"status": {"phase": "Failed"}}), None);
        check(500, json!({"metadata": {"deletionTimestamp": at(1).to_string()}}), None);
        check(500, json!({"status": {"conditions": []}}), None);
        for (status, reason) in [("False", "EvictionByEvictionAPI"), ("True", BY_KUBELET)] {
            let conditions = json!([{"type": TARGET, "status": status, "reason": reason}]);
            check(500, json!({"status": {"conditions": conditions}}), None);
        }
    }

    /// Puts `change` over `object`, member by member.
    fn json_merge(object: &mut Value, change: &Value) {
        for (k, v) in change.as_object().unwrap() {
            match v {
                Value::Object(_) if object[k].is_object() => json_merge(&mut object[k], v),
                _ => object[k] = v.clone(),
            }
        }
    }
}
