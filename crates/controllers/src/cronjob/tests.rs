//! The planner in tables.

use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use serde_json::{Value, json};

use super::plan::{Plan, State, plan};
use super::schedule::Schedule;

/// Minutes after the CronJob's creation at midnight.
fn at(minute: i64) -> Timestamp {
    "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap()
        + std::time::Duration::from_secs(u64::try_from(minute * 60).unwrap())
}

fn cron(extra: Value, last: Option<i64>, active: &[&str]) -> CronJob {
    let mut spec = json!({"schedule": "*/10 * * * *", "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {
        "template": {}}}});
    for (k, v) in extra.as_object().unwrap() {
        spec[k] = v.clone();
    }
    let active: Vec<Value> = active.iter().map(|n| json!({"name": n, "uid": n})).collect();
    serde_json::from_value(
        json!({"metadata": {"name": "c", "creationTimestamp": at(0).to_string()}, "spec": spec,
        "status": {"active": active, "lastScheduleTime": last.map(|m| at(m).to_string())}}),
    )
    .unwrap()
}

/// `name`, `+` complete or `-` failed.
fn jobs(text: &str) -> Vec<Arc<Job>> {
    let one = |(i, word): (usize, &str)| {
        let (name, kind) = match word.strip_suffix('+') {
            Some(name) => (name, "Complete"),
            None => word.strip_suffix('-').map_or((word, ""), |name| (name, "Failed")),
        };
        let conditions = if kind.is_empty() { json!([]) } else { json!([{"type": kind, "status": "True"}]) };
        let time = at(i64::try_from(i).unwrap()).to_string();
        Arc::new(
            serde_json::from_value(json!({"metadata": {"name": name, "uid": name},
                "status": {"conditions": conditions, "startTime": time, "completionTime": time}}))
            .unwrap(),
        )
    };
    text.split_whitespace().enumerate().map(one).collect()
}

fn planned(cron: &CronJob, jobs: &[Arc<Job>], now: Timestamp) -> Plan {
    let spec = &cron.spec;
    let schedule = Schedule::parse(&spec.schedule, spec.time_zone.as_deref()).unwrap();
    plan(&State { cron, spec, jobs, schedule: Some(&schedule), now })
}

fn show(plan: &Plan) -> String {
    let create = plan.create.iter().map(|(t, _)| format!("+{}", (t.as_second() - at(0).as_second()) / 60));
    let delete = plan.delete.iter().map(|j| format!("-{}", j.metadata.name.as_deref().unwrap()));
    create.chain(delete).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check(extra: Value, last: Option<i64>, has: &str, now: i64, want: &str) -> Plan {
    check_with(extra, last, &[], has, now, want)
}

#[track_caller]
fn check_with(extra: Value, last: Option<i64>, active: &[&str], has: &str, now: i64, want: &str) -> Plan {
    let plan = planned(&cron(extra, last, active), &jobs(has), at(now));
    assert_eq!(show(&plan), want);
    plan
}

#[test]
fn jobs_are_made_when_they_are_due() {
    let plan = check(json!({}), None, "", 5, "");
    assert_eq!(plan.again.unwrap().as_secs(), 300);
    let plan = check(json!({}), None, "", 10, "+10");
    assert_eq!(plan.again.unwrap().as_secs(), 600);
    let (_, job) = plan.create.unwrap();
    assert_eq!(
        json!(job.metadata),
        json!({"name": "c-29453770", "labels": {"a": "b"},
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:10:00Z"}})
    );
    check(json!({}), Some(10), "", 19, "");
    check(json!({}), Some(10), "", 45, "+40");
    check(json!({"suspend": true}), Some(10), "", 45, "");
}

#[test]
fn a_time_makes_one_job() {
    let plan = check(json!({}), None, "c-29453770", 10, "");
    assert_eq!(plan.status.last_schedule_time.unwrap().0, at(10));
}

#[test]
fn a_deadline_lets_times_pass() {
    check(json!({"startingDeadlineSeconds": 120}), Some(0), "", 11, "+10");
    check(json!({"startingDeadlineSeconds": 120}), Some(0), "", 13, "");
}

#[test]
fn concurrency_is_a_matter_of_policy() {
    let policy = |policy: &str, has: &str, want: &str| {
        check_with(json!({"concurrencyPolicy": policy}), Some(0), &["a"], has, 10, want)
    };
    policy("Allow", "a", "+10");
    assert_eq!(policy("Forbid", "a", "").events.len(), 1);
    policy("Forbid", "a+", "+10");
    assert_eq!(policy("Replace", "a", "+10 -a").status.active, None);
    // One that was made by hand is nobody's concern.
    let plan = policy("Forbid", "a+ b", "+10");
    assert_eq!(plan.events.len(), 2);
    policy("Replace", "a b", "+10 -a");
}

#[test]
fn the_history_is_limited() {
    check(json!({}), Some(0), "a+ b+ c+ d+ e- f- g", 5, "-a -e");
    check(
        json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}),
        Some(0),
        "a+ b-",
        5,
        "-a -b",
    );
}

#[test]
fn the_status_knows_what_runs() {
    let plan = planned(&cron(json!({}), Some(0), &["a", "b", "c"]), &jobs("a b+"), at(5));
    let active: Vec<_> = plan.status.active.iter().flatten().filter_map(|r| r.name.as_deref()).collect();
    assert_eq!(active, ["a"]);
    assert_eq!(plan.status.last_successful_time.unwrap().0, at(1));
    // One completed, one went missing.
    assert_eq!(plan.events.len(), 2);
}

#[test]
fn many_missed_times_are_told() {
    let plan = check(json!({"schedule": "* * * * *"}), Some(0), "", 200, "+200");
    assert_eq!(plan.events.len(), 1);
    // With a deadline, only what is still in time counts as missed.
    let timely = json!({"schedule": "* * * * *", "startingDeadlineSeconds": 600});
    assert!(check(timely, Some(0), "", 200, "+200").events.is_empty());
    assert!(check(json!({"schedule": "* * * * *"}), Some(0), "", 90, "+90").events.is_empty());
}
