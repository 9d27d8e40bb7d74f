//! CronJobs: Jobs at the times of a schedule.
//!
//! [`schedule`] knows the times, [`plan`] which Job is due and which old ones go; this module carries it out.
//! Invariant: a Job's name follows from its scheduled time, so one time never makes two.

mod plan;
mod schedule;
#[cfg(test)]
mod tests;

use std::time::Duration;

use homeostat_sdk::{Context, Event, Next, Operator, Result};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DeleteParams;

use crate::common::pod_control;
use crate::job::outcome;
use plan::{Plan, State};
use schedule::Schedule;

/// When to try again to delete an old Job that couldn't be deleted. Not by an error's growing delays: in these nothing
/// would be started.
const CLEAN_AGAIN: Duration = Duration::from_secs(300);

/// The controller.
pub(crate) struct CronJobs;

impl Operator for CronJobs {
    type Resource = CronJob;
    type Owns = (Job,);
    type Reads = ();

    fn name() -> &'static str {
        "cronjob-controller"
    }

    async fn reconcile(&self, cron: &CronJob, cx: &Context<Self>) -> Result<Next> {
        let spec = &cron.spec;
        let schedule = match Schedule::parse(&spec.schedule, spec.time_zone.as_deref()) {
            Ok(schedule) => Some(schedule),
            Err(why) => {
                cx.event(Event::warning(why.reason, why.message)).await;
                None
            }
        };
        let jobs = cx.owned::<Job, _>();
        let state = State { cron, spec, jobs: &jobs, schedule: schedule.as_ref(), now: cx.clock().now() };
        let mut plan = plan::plan(&state);
        for event in std::mem::take(&mut plan.events) {
            cx.event(event).await;
        }
        let done = act(&mut plan, cx).await;
        cx.status(&plan.status).await?;
        done?;
        Ok(plan.again.map_or(Next::done(), Next::after))
    }

    /// A CronJob that is being deleted starts nothing more.
    async fn finalize(&self, _: &CronJob, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }
}

/// Carries out a plan.
async fn act(plan: &mut Plan, cx: &Context<CronJobs>) -> Result<()> {
    for job in &plan.delete {
        // In the background: the default of Jobs leaves their pods behind.
        match cx.delete_with::<Job, _>(&**job, DeleteParams::background()).await {
            Ok(_) => {
                let name = job.metadata.name.as_deref().unwrap_or_default();
                cx.event(Event::normal("SuccessfulDelete", format!("Deleted job {name}"))).await;
            }
            Err(e) => {
                cx.event(Event::warning("FailedDelete", format!("Deleted job: {e}"))).await;
                // One that still runs had to make room; an old one doesn't hold up what is due.
                if outcome(job).is_none() {
                    return Err(e);
                }
                plan.again = Some(plan.again.map_or(CLEAN_AGAIN, |d| d.min(CLEAN_AGAIN)));
            }
        }
    }
    start(plan, cx).await
}

/// Makes the Job that is due.
async fn start(plan: &mut Plan, cx: &Context<CronJobs>) -> Result<()> {
    let Some((at, job)) = plan.create.take() else { return Ok(()) };
    match cx.create::<Job, _>(job).await {
        Ok(made) => {
            let name = made.metadata.name.clone().unwrap_or_default();
            cx.event(Event::normal("SuccessfulCreate", format!("Created job {name}"))).await;
            plan.status.active.get_or_insert_default().push(plan::reference(&made));
        }
        Err(e) if e.is_already_exists() => {}
        Err(e) if pod_control::is_namespace_terminating(&e) => return Ok(()),
        Err(e) => {
            cx.event(Event::warning("FailedCreate", format!("Error creating job: {e}"))).await;
            return Err(e);
        }
    }
    plan.status.last_schedule_time = Some(Time(at));
    Ok(())
}
