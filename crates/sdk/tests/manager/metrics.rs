//! What a manager shows over HTTP: the names that dashboards ask for, and readiness with its reasons.

use std::time::Duration;

use homeostat_sdk::{Error, Health, LeaderElection, Next};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::operators::Note;
use crate::server::Server;
use crate::{ACCOUNTS, manager, run};

async fn get(health: &Health, metrics: bool, path: &str) -> String {
    let address = if metrics { health.metrics_address() } else { health.probes_address() };
    let mut stream = tokio::net::TcpStream::connect(address.unwrap()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

/// Every name that controller-runtime's users know, with a sample that this run must have made.
const EXPECTED: &[&str] = &[
    "certwatcher_read_certificate_errors_total 0",
    "certwatcher_read_certificate_total 0",
    "controller_runtime_active_workers{controller=\"Note\"} 0",
    "controller_runtime_max_concurrent_reconciles{controller=\"Note\"} 8",
    "controller_runtime_reconcile_errors_total{controller=\"Note\"} 1",
    "controller_runtime_reconcile_panics_total{controller=\"Note\"} 0",
    "controller_runtime_reconcile_time_seconds_bucket{controller=\"Note\",le=\"0.005\"} 2",
    "controller_runtime_reconcile_time_seconds_count{controller=\"Note\"} 2",
    "controller_runtime_reconcile_timeouts_total{controller=\"Note\"} 0",
    "controller_runtime_reconcile_total{controller=\"Note\",result=\"error\"} 1",
    "controller_runtime_reconcile_total{controller=\"Note\",result=\"success\"} 1",
    "controller_runtime_terminal_reconcile_errors_total{controller=\"Note\"} 1",
    "controller_runtime_webhook_panics_total 0",
    "homeostat_cache_objects{fields=\"\",labels=\"\",metadata_only=\"false\",namespace=\"\",resource=\"serviceaccounts\"} 2",
    "leader_election_master_status{name=\"notes\"} 1",
    "rest_client_requests_total{code=\"200\",host=\"\",method=\"GET\"}",
    "workqueue_adds_total{controller=\"Note\",name=\"Note\"} 2",
    "workqueue_depth{controller=\"Note\",name=\"Note\",priority=\"0\"} 0",
    "workqueue_depth{controller=\"Note\",name=\"Note\",priority=\"-100\"} 0",
    "workqueue_longest_running_processor_seconds{controller=\"Note\",name=\"Note\"} 0",
    "workqueue_queue_duration_seconds_count{controller=\"Note\",name=\"Note\"} 2",
    "workqueue_retries_total{controller=\"Note\",name=\"Note\"} 0",
    "workqueue_unfinished_work_seconds{controller=\"Note\",name=\"Note\"} 0",
    "workqueue_work_duration_seconds_sum{controller=\"Note\",name=\"Note\"}",
];

#[tokio::test]
async fn metrics_have_the_names_that_dashboards_ask_for() {
    let server = Server::default();
    for name in ["fine", "wrong"] {
        server.put(&format!("{ACCOUNTS}/{name}"), json!({}));
    }
    let note = Note::new(|account| match account.metadata.name.as_deref() {
        Some("wrong") => Err(Error::msg("never").terminal()),
        _ => Ok(Next::done()),
    });
    let any = ([127, 0, 0, 1], 0).into();
    let manager = manager(&server)
        .with_metrics(any)
        .with_leader_election(LeaderElection::new("notes").as_identity("me"))
        .with(note.clone());
    let running = run(manager);
    let health = running.health.clone();
    until("both are reconciled", async || {
        health.metrics().iter().map(|m| m.done + m.errors).sum::<u64>() == 2
    })
    .await;
    let text = get(&health, true, "/metrics").await;
    assert!(text.contains("content-type: text/plain; version=0.0.4"), "{text}");
    for expected in EXPECTED {
        assert!(text.lines().any(|l| l.starts_with(expected)), "{expected} in\n{text}");
    }
    for line in text.lines().filter(|l| l.starts_with("# TYPE") && l.ends_with("counter")) {
        assert!(line.ends_with("_total counter"), "{line}");
    }
    running.stopped().await.unwrap();
}

#[tokio::test]
async fn readiness_says_what_is_missing() {
    let server = Server::default();
    server.serve_kind("/api/v1/configmaps", false);
    let manager =
        manager(&server).with_probes(([127, 0, 0, 1], 0).into()).with(Note::new(|_| Ok(Next::done())));
    let running = run(manager);
    let health = running.health.clone();
    until("it listens", async || health.probes_address().is_some()).await;
    assert!(get(&health, false, "/healthz").await.starts_with("HTTP/1.1 200 OK"));
    let answer = get(&health, false, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(answer.ends_with("[-]Note\nreadyz check failed\n"), "{answer}");
    server.serve_kind("/api/v1/configmaps", true);
    until("it is ready", async || health.ready()).await;
    assert!(get(&health, false, "/readyz").await.ends_with("ok"));
    assert!(get(&health, false, "/readyz?verbose").await.ends_with("[+]Note\nreadyz check passed\n"));
    assert!(
        get(&health, false, "/metrics").await.starts_with("HTTP/1.1 404"),
        "they have an address of their own"
    );
    running.stopped().await.unwrap();
}
