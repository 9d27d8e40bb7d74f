//! Jobs, with pods that end as the test says.

use homeostat_cluster::simulate;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::{World, holds};
use crate::virtual_time::Simulation;

const BATCH: &str = "/apis/batch/v1/namespaces/default";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

fn job(extra: Value) -> Value {
    let mut spec = json!({"completions": 2, "parallelism": 2, "template": {"spec": {"restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]}}});
    for (k, v) in extra.as_object().unwrap() {
        spec[k] = v.clone();
    }
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": spec})
}

async fn end(world: &World, pod: &str, phase: &str) {
    let patch = Patch::Merge(json!({"status": {"phase": phase}}));
    world.api::<Pod>().patch_status(pod, &PatchParams::default(), &patch).await.unwrap();
}

/// The Job's pods, when there are as many that wait.
async fn waiting(world: &World, count: usize) -> Vec<String> {
    world
        .until("the Job's pods", || async {
            let pods = world.list::<Pod>().await;
            let phase = |p: &Pod| p.status.as_ref().and_then(|s| s.phase.clone());
            let waiting = pods.iter().filter(|p| phase(p).as_deref() == Some("Pending"));
            let names: Vec<String> = waiting.map(ResourceExt::name_any).collect();
            (names.len() == count).then_some(names)
        })
        .await
}

#[tokio::test]
async fn a_job_counts_its_pods_and_completes() {
    let world = World::with_nodes(0).await;
    world.create(job(json!({"completionMode": "Indexed"}))).await;
    let pods = waiting(&world, 2).await;
    assert!(pods[0].starts_with("work-0-") && pods[1].starts_with("work-1-"), "{pods:?}");
    for pod in &pods {
        end(&world, pod, "Succeeded").await;
    }
    let done = world
        .until("the Job is complete", || async {
            let job = world.api::<Job>().get("work").await.unwrap();
            let conditions = job.status.as_ref()?.conditions.clone()?;
            conditions.iter().any(|c| c.type_ == "Complete" && c.status == "True").then_some(job)
        })
        .await;
    let status = done.status.unwrap();
    assert_eq!((status.succeeded, status.completed_indexes.as_deref()), (Some(2), Some("0,1")));
    assert!(world.list::<Pod>().await.iter().all(|p| p.finalizers().is_empty()));

    world.api::<Job>().delete("work", &DeleteParams::background()).await.unwrap();
    world.until("the pods are collected", || async { holds(world.list::<Pod>().await.is_empty()) }).await;
    world.stop().await;
}

#[tokio::test]
async fn a_job_fails_at_its_limit_and_goes_in_time() {
    let world = World::with_nodes(0).await;
    world.create(job(json!({"backoffLimit": 0, "ttlSecondsAfterFinished": 1}))).await;
    let pods = waiting(&world, 2).await;
    end(&world, &pods[0], "Failed").await;
    world
        .until("the Job has failed", || async {
            let job = world.api::<Job>().get("work").await.unwrap();
            let conditions = job.status.as_ref()?.conditions.clone()?;
            let failed = conditions.iter().find(|c| c.type_ == "Failed" && c.status == "True")?;
            holds(failed.reason.as_deref() == Some("BackoffLimitExceeded"))
        })
        .await;
    world
        .until("nothing is left", || async {
            holds(world.list::<Job>().await.is_empty() && world.list::<Pod>().await.is_empty())
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_suspended_job_gives_its_pods_back() {
    let world = World::with_nodes(0).await;
    world.create(job(json!({}))).await;
    waiting(&world, 2).await;
    world.merge::<Job>("work", json!({"spec": {"suspend": true}})).await;
    world.until("the pods are gone", || async { holds(world.list::<Pod>().await.is_empty()) }).await;
    let job = world.api::<Job>().get("work").await.unwrap();
    assert_eq!(job.status.unwrap().failed, None);
    world.merge::<Job>("work", json!({"spec": {"suspend": false}})).await;
    waiting(&world, 2).await;
    world.stop().await;
}

#[test]
fn a_job_that_another_controller_manages_is_left_alone() {
    simulate(async || {
        let world = Simulation::start(81, 1).await;
        world.create(&format!("{BATCH}/jobs"), job(json!({"managedBy": "example.com/queue"}))).await;
        world.pass(300).await;
        assert!(world.items("/api/v1/namespaces/default/pods").await.is_empty());
        let status = world.get(&format!("{BATCH}/jobs/work")).await["status"].clone();
        assert!(status.is_null() || status == json!({}), "{status:#}");
    })
    .unwrap();
}

#[test]
fn old_jobs_that_stay_are_told_and_hold_nothing_up() {
    simulate(async || {
        let world = Simulation::start(82, 1).await;
        let rules = json!([{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["jobs"]}]);
        let policy = json!({"metadata": {"name": "keep"}, "spec": {"matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false", "message": "jobs are kept"}]}});
        world.create(&format!("{POLICIES}/validatingadmissionpolicies"), policy).await;
        let binding = json!({"metadata": {"name": "keep"}, "spec": {"policyName": "keep", "validationActions": ["Deny"]}});
        world.create(&format!("{POLICIES}/validatingadmissionpolicybindings"), binding).await;
        let cron = json!({"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *",
            "successfulJobsHistoryLimit": 0, "jobTemplate": {"spec": job(json!({}))["spec"]}}});
        world.create(&format!("{BATCH}/cronjobs"), cron).await;
        world.pass(300).await;
        let jobs = world.items(&format!("{BATCH}/jobs")).await.len();
        assert!(jobs >= 4, "{jobs}");
        let events = world.items("/api/v1/namespaces/default/events").await;
        let told = events.iter().find(|e| e["reason"] == "FailedDelete").expect("an event");
        let message = told["message"].as_str().unwrap();
        assert!(message.starts_with("Deleted job: ") && message.contains("jobs are kept"), "{message}");
    })
    .unwrap();
}
