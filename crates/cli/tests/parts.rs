//! `homeostat up --time` and `--scheduler-config`: the cluster's time passes faster, and another scheduler binds.

#[path = "shared/up.rs"]
mod up;

use std::process::Child;
use std::time::Duration;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::api::{Api, ListParams, PostParams};
use serde_json::json;
use tokio::time::Instant;

const SCHEDULER: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                         profiles: [{schedulerName: other}]\n";

/// Ends the server, however the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn minutes_are_seconds_and_another_scheduler_binds() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("scheduler.yaml"), SCHEDULER).expect("written");
    let args = ["--time", "60x", "--scheduler-config", "scheduler.yaml"];
    let _server = Running(up::command(folder.path(), &args).spawn().expect("homeostat runs"));
    let client = up::client(folder.path()).await;
    let began = Instant::now();
    let cron: CronJob =
        serde_json::from_value(json!({"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *",
        "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "schedulerName": "other",
            "containers": [{"name": "c", "image": "work:1"}]}}}}}}))
        .expect("a CronJob");
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &cron).await.expect("created");
    let jobs: Api<Job> = Api::default_namespaced(client);
    let done = async || {
        let all = jobs.list(&ListParams::default()).await.expect("a list").items;
        all.iter().filter(|j| j.status.as_ref().is_some_and(|s| s.succeeded == Some(1))).count()
    };
    // Two whole minutes of the cluster at least, which are two seconds here.
    while done().await < 3 {
        assert!(began.elapsed() < Duration::from_secs(60), "time passes as slowly as here");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn what_configures_no_scheduler_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = format!("{SCHEDULER}clientConnection: {{}}\nextenders: 7\n");
    std::fs::write(folder.path().join("scheduler.yaml"), wrong).expect("written");
    let output = up::command(folder.path(), &["--scheduler-config", "scheduler.yaml"]).output();
    let output = output.expect("homeostat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("scheduler.yaml: "), "{said}");
    let output = up::command(folder.path(), &["--time", "never"]).output().expect("homeostat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--time"), "{said}");
}
