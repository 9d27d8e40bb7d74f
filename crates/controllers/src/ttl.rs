//! Deletes finished Jobs when the time that they may stay is over.
//!
//! The time runs from the condition that ended the Job. Before it deletes, it asks the server whether that still holds.

use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Next, Operator, Result};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Preconditions};

/// The controller.
pub(crate) struct TtlAfterFinished;

impl Operator for TtlAfterFinished {
    type Resource = Job;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "ttl-after-finished-controller"
    }

    async fn reconcile(&self, job: &Job, cx: &Context<Self>) -> Result<Next> {
        let now = cx.clock().now();
        match left(job, now) {
            None => return Ok(Next::done()),
            Some(Duration::ZERO) => {}
            Some(wait) => return Ok(Next::after(wait)),
        }
        let Some(latest) = cx.writer().get::<Job>(cx.key()).await? else { return Ok(Next::done()) };
        if latest.metadata.uid != job.metadata.uid || left(&latest, now) != Some(Duration::ZERO) {
            return Ok(Next::done());
        }
        let preconditions = Preconditions {
            uid: latest.metadata.uid.clone(),
            resource_version: latest.metadata.resource_version.clone(),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::foreground() };
        cx.writer().delete::<Job>(cx.key(), &params).await?;
        Ok(Next::done())
    }

    async fn finalize(&self, _: &Job, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }
}

/// How long a finished Job may stay; `None` where it isn't finished or may stay for ever.
fn left(job: &Job, now: Timestamp) -> Option<Duration> {
    let ttl = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let ended = job.status.as_ref()?.conditions.iter().flatten();
    let ended = ended.filter(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True");
    let since = ended.filter_map(|c| c.last_transition_time.as_ref()).map(|t| t.0).min()?;
    let ttl = Duration::from_secs(u64::try_from(ttl).unwrap_or(0));
    Some(ttl.saturating_sub(Duration::try_from(now.duration_since(since)).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn time_runs_from_the_end() {
        let at = |s: i64| Timestamp::from_second(1_000_000 + s).unwrap();
        let check = |ttl: Value, condition: &str, want: Option<u64>| {
            let job: Job = serde_json::from_value(json!({
                "spec": {"template": {}, "ttlSecondsAfterFinished": ttl},
                "status": {"conditions": [
                    {"type": condition, "status": "True", "lastTransitionTime": at(0).to_string()}]}}))
            .unwrap();
            assert_eq!(left(&job, at(40)).map(|d| d.as_secs()), want);
        };
        check(json!(100), "Complete", Some(60));
        check(json!(40), "Failed", Some(0));
        check(json!(0), "Complete", Some(0));
        check(json!(null), "Complete", None);
        check(json!(100), "Suspended", None);
    }
}
