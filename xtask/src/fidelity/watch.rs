//! A watch held open on a task of its own; it collects events until it is closed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::watch as channel;

use super::client::Client;

const QUIET: Duration = Duration::from_millis(600);

/// An open watch.
pub(super) struct Watch {
    /// The answer's status; `Null` where there was none.
    pub(super) status: Value,
    events: Arc<Mutex<Vec<(Value, String)>>>,
    count: channel::Receiver<usize>,
    ended: channel::Receiver<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Watch {
    /// Opens it and waits for the answer's head.
    pub(super) async fn open(client: &Client, path: &str, headers: &Value) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let (counted, count) = channel::channel(0);
        let (end, ended) = channel::channel(false);
        let opened =
            tokio::time::timeout(Duration::from_secs(10), client.open("GET", path, None, headers)).await;
        let Ok(Ok(response)) = opened else {
            let _ = end.send(true);
            return Self { status: Value::Null, events, count, ended, task: tokio::spawn(async {}) };
        };
        let status = response.status().as_u16().into();
        let sink = events.clone();
        let task = tokio::spawn(async move {
            let mut body = response.into_body();
            let mut buffer = Vec::new();
            let push = |line: &[u8]| {
                if let Ok(event) = serde_json::from_slice(line) {
                    let mut all = sink.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push((event, String::from_utf8_lossy(line).into_owned()));
                    let _ = counted.send(all.len());
                }
            };
            while let Some(Ok(frame)) = body.frame().await {
                buffer.extend_from_slice(frame.data_ref().map_or(&[], |d| d));
                while let Some(at) = buffer.iter().position(|b| *b == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=at).collect();
                    push(&line);
                }
            }
            push(&buffer);
            let _ = end.send(true);
        });
        Self { status, events, count, ended, task }
    }

    /// Waits until `least` events came or `patience` is over, then for a quiet moment; returns all so far, each with
    /// its text.
    pub(super) async fn settle(&mut self, least: usize, patience: Duration) -> Vec<(Value, String)> {
        let enough = async {
            tokio::select! {
                biased;
                _ = self.count.wait_for(|n| *n >= least) => {}
                _ = self.ended.wait_for(|e| *e) => {}
            }
        };
        let _ = tokio::time::timeout(patience, enough).await;
        self.count.mark_unchanged();
        while let Ok(Ok(())) = tokio::time::timeout(QUIET, self.count.changed()).await {}
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the server ended it within `patience`.
    pub(super) async fn ended(&mut self, patience: Duration) -> bool {
        let _ = tokio::time::timeout(patience, self.ended.wait_for(|e| *e)).await;
        *self.ended.borrow()
    }

    /// Hangs up.
    pub(super) fn close(&self) {
        self.task.abort();
    }
}
