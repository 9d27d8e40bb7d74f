//! Errors, panics, times to come back, and the stop.

use std::sync::Arc;
use std::time::Duration;

use homeostat_sdk::{Context, Error, Next, Operator, Result, Settings};
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::operators::Note;
use crate::server::Server;
use crate::{ACCOUNTS, manager, run};

#[tokio::test(start_paused = true)]
async fn errors_and_panics_concern_their_key_only() {
    let server = Server::default();
    for name in ["fails", "fine", "panics"] {
        server.put(&format!("{ACCOUNTS}/{name}"), json!({}));
    }
    let note = Note::new(|account| match account.metadata.name.as_deref() {
        Some("fails") => Err(Error::msg("no")),
        Some("panics") => panic!("at the disco"),
        _ => Ok(Next::done()),
    });
    let running = run(manager(&server).with(note.clone()));
    tokio::time::sleep(Duration::from_secs(600)).await;
    let seen = note.seen();
    let count = |name: &str| seen.iter().filter(|n| *n == name).count();
    assert_eq!(count("fine"), 1);
    // 5 ms * (2^n - 1) <= 600 s: the first and 16 more.
    assert_eq!(count("fails"), 17);
    assert_eq!(count("panics"), 17);
    let metrics = &running.health.metrics()[0];
    assert_eq!((metrics.done, metrics.errors, metrics.panics, metrics.active), (1, 34, 17, 0));
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_rests_until_something_changes() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let note = Note::new(|_| Err(Error::msg("never").terminal()));
    let running = run(manager(&server).with(note.clone()));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(note.seen(), ["x"]);
    server.put(&format!("{ACCOUNTS}/x"), json!({"metadata": {"labels": {"a": "b"}}}));
    running.settle().await;
    assert_eq!(note.seen(), ["x"]);
    assert_eq!(running.health.metrics()[0].terminal_errors, 2);
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn next_after_comes_back() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let note = Note::new(|_| Ok(Next::after(Duration::from_secs(30))));
    let running = run(manager(&server).with(note.clone()));
    tokio::time::sleep(Duration::from_secs(301)).await;
    assert_eq!(note.seen().len(), 11);
    running.stopped().await.unwrap();
}

/// Takes until it is let go, or as long as it is told.
struct Slow {
    started: Arc<Notify>,
    takes: Duration,
    timeout: Option<Duration>,
}

impl Operator for Slow {
    type Resource = ServiceAccount;
    type Owns = ();
    type Reads = ();

    async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> {
        self.started.notify_one();
        tokio::time::sleep(self.takes).await;
        Ok(Next::done())
    }

    fn settings(&self) -> Settings {
        Settings { timeout: self.timeout, ..Settings::default() }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_what_runs_but_not_for_ever() {
    for (takes, in_time) in [(20, true), (40, false)] {
        let server = Server::default();
        server.put(&format!("{ACCOUNTS}/x"), json!({}));
        let started = Arc::new(Notify::new());
        let slow = Slow { started: started.clone(), takes: Duration::from_secs(takes), timeout: None };
        let running = run(manager(&server).with(slow));
        started.notified().await;
        let (begin, health) = (Instant::now(), running.health.clone());
        assert_eq!(running.stopped().await.is_ok(), in_time);
        assert_eq!(begin.elapsed().as_secs(), takes.min(30));
        assert_eq!(health.metrics()[0].done, u64::from(in_time));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_takes_too_long_fails() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let slow = Slow {
        started: Arc::default(),
        takes: Duration::from_secs(10),
        timeout: Some(Duration::from_secs(1)),
    };
    let running = run(manager(&server).with(slow));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(running.health.metrics()[0].timeouts, 1);
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_started_again() {
    let server = Server::default();
    let tries = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counted = tries.clone();
    let manager = manager(&server).with_task("sweep", move |cx| {
        let n = counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move {
            match n {
                0 => Err(Error::msg("once")),
                1 => panic!("twice"),
                _ => {
                    cx.shutdown().cancelled().await;
                    Ok(())
                }
            }
        }
    });
    let running = run(manager);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(tries.load(std::sync::atomic::Ordering::Relaxed), 3);
    running.stopped().await.unwrap();
}
