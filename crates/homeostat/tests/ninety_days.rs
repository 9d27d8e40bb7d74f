//! Ninety days of a cluster with an operator at work, in virtual time: hourly CronJobs, certificates that are renewed
//! fifteen days before they end.
//!
//! Without optimisation a Job takes a tenth of a second, so that build runs them every eight hours;
//! `cargo test --release -p homeostat --features testing --test ninety_days` runs all 2,160.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::testing::audit::{Attributes, Audit, Event, Interest, Level, Stage};
use homeostat::testing::{Cadence, ClusterOptions, World, simulate};
use homeostat::{Context, Next, Operator, Result, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// The CronJob's schedule, and how many Jobs it makes.
const SCHEDULE: (&str, usize) =
    if cfg!(debug_assertions) { ("0 */8 * * *", 90 * 3) } else { ("0 * * * *", 90 * 24) };
/// How long before its end a certificate is renewed.
const AHEAD: Duration = Duration::from_secs(15 * 24 * 3600);

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Certificate", namespaced, status = "CertificateStatus")]
struct CertificateSpec {
    days: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CertificateStatus {
    revision: u32,
    not_after: String,
}

/// Issues certificates: a Secret that says until when it is good.
struct Issuer;

impl Operator for Issuer {
    type Resource = Certificate;
    type Owns = (Secret,);
    type Reads = ();

    async fn reconcile(&self, certificate: &Certificate, cx: &Context<Self>) -> Result<Next> {
        let now = cx.clock().now();
        let status = certificate.status.clone().unwrap_or_default();
        let ends = status.not_after.parse::<Timestamp>().unwrap_or(Timestamp::UNIX_EPOCH);
        let left = Duration::try_from(ends.duration_since(now)).unwrap_or_default();
        if left > AHEAD {
            return Ok(Next::after(left - AHEAD));
        }
        let lasts = DAY * certificate.spec.days;
        let not_after = homeostat::Clock::starting_at(now + lasts).now_seconds();
        let secret = json!({"metadata": {"name": cx.name()}, "stringData": {"notAfter": not_after}});
        cx.apply(serde_json::from_value::<Secret>(secret)?).await?;
        cx.status(&CertificateStatus { revision: status.revision + 1, not_after }).await?;
        Ok(Next::after(lasts - AHEAD))
    }
}

/// Counts the Jobs that are made.
#[derive(Debug, Default)]
struct Jobs(AtomicUsize);

impl Audit for Jobs {
    fn interest(&self, a: &Attributes<'_>) -> Interest {
        let level = if a.verb == "create" && a.resource == "jobs" { Level::Metadata } else { Level::None };
        Interest { level, ..Interest::default() }
    }

    fn tell(&self, event: Event) {
        if event.stage == Stage::ResponseComplete {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn ninety_days_of_cron_jobs_and_renewals() {
    simulate(async || {
        let jobs = Arc::new(Jobs::default());
        let options = ClusterOptions {
            // Nobody looks at single heartbeats here.
            cadence: Cadence::default().slower(360),
            audit: Some(jobs.clone()),
            ..ClusterOptions::simulated(90)
        };
        let world = World::with(options).await;
        world.define::<Certificate>().await;
        world.run(Issuer).await;
        world.create(&Certificate::new("web", CertificateSpec { days: 30 })).await;
        let tick: CronJob = serde_json::from_value(json!({
            "metadata": {"name": "tick", "namespace": "default"}, "spec": {"schedule": SCHEDULE.0,
            "jobTemplate": {"spec": {"template": {
                "metadata": {"annotations": {"simulation.homeostat.dev/exit": "0 after 90s"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}}}}}))
        .unwrap();
        world.create(&tick).await;
        tokio::time::sleep(DAY * 90 + Duration::from_secs(60)).await;

        assert_eq!(jobs.0.load(Ordering::Relaxed), SCHEDULE.1);
        let certificate = world.get::<Certificate>("web").await.unwrap();
        // At once, and every fifteen days from then on.
        assert_eq!(certificate.status.unwrap().revision, 1 + 6);
        let left = Api::<Job>::default_namespaced(world.client().clone()).list(&ListParams::default()).await;
        assert_eq!(left.unwrap().items.len(), 4, "three that are done and the one at work");
    })
    .unwrap();
}
