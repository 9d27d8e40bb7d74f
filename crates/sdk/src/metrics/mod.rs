//! Counts and durations of what a manager does: as plain numbers, and in Prometheus' text format.
//!
//! The names are controller-runtime's and client-go's, so that existing dashboards and alerts work. Values are read
//! when they are asked for; nothing is pushed anywhere.

mod exposition;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(crate) use exposition::{CONTENT_TYPE, Exposed};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// controller-runtime's buckets of reconcile and webhook latencies, in seconds.
const LATENCY: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

fn latency() -> Histogram {
    Histogram::new(LATENCY)
}

/// client-go's buckets of work queues: 10 ns to 1000 s.
fn queueing() -> Histogram {
    Histogram::new(exponential_buckets(1e-8, 10.0, 12))
}

/// Durations of one operator.
#[derive(Debug)]
pub(crate) struct Durations {
    pub(crate) reconcile: Histogram,
    pub(crate) queue: Histogram,
    pub(crate) work: Histogram,
}

impl Default for Durations {
    fn default() -> Self {
        Self { reconcile: latency(), queue: queueing(), work: queueing() }
    }
}

impl Durations {
    /// A key was ready for so long before a worker took it.
    pub(crate) fn waited(&self, waited: Duration) {
        self.queue.observe(waited.as_secs_f64());
    }

    /// A reconcile took so long.
    pub(crate) fn took(&self, took: Duration) {
        self.reconcile.observe(took.as_secs_f64());
        self.work.observe(took.as_secs_f64());
    }
}

/// Counts of one webhook.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) latency: Histogram,
    /// By HTTP status.
    pub(crate) codes: BTreeMap<u16, u64>,
    pub(crate) in_flight: u64,
}

impl Default for Asked {
    fn default() -> Self {
        Self { latency: latency(), codes: BTreeMap::new(), in_flight: 0 }
    }
}

/// Counts of a manager, besides its operators'.
#[derive(Debug, Default)]
pub(crate) struct Common {
    /// Requests to the API server, by method and status; status 0 where none came back.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    /// By path.
    webhooks: Mutex<BTreeMap<String, Asked>>,
    pub(crate) webhook_panics: AtomicU64,
    pub(crate) certificate_reads: AtomicU64,
    pub(crate) certificate_errors: AtomicU64,
    /// By lease: whether this process leads.
    leads: Mutex<BTreeMap<String, bool>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Common {
    /// The API server answered a request.
    pub(crate) fn requested(&self, method: &str, code: u16) {
        *lock(&self.requests).entry((method.to_owned(), code)).or_default() += 1;
    }

    /// A webhook is asked.
    pub(crate) fn asked(&self, path: &str) {
        lock(&self.webhooks).entry(path.to_owned()).or_default().in_flight += 1;
    }

    /// A webhook has answered.
    pub(crate) fn answered(&self, path: &str, code: u16, took: Duration) {
        let mut webhooks = lock(&self.webhooks);
        let asked = webhooks.entry(path.to_owned()).or_default();
        asked.in_flight = asked.in_flight.saturating_sub(1);
        asked.latency.observe(took.as_secs_f64());
        *asked.codes.entry(code).or_default() += 1;
    }

    /// Whether this process leads.
    pub(crate) fn leads(&self, lease: &str, leads: bool) {
        lock(&self.leads).insert(lease.to_owned(), leads);
    }
}

/// Counters of one operator.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) done: AtomicU64,
    pub(crate) requeued_after: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) terminal_errors: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) active: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The numbers of one operator at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The operator's name.
    pub operator: String,
    /// Reconciles that ended well, without a time to come back.
    pub done: u64,
    /// Reconciles that ended well and come back after a time.
    pub requeued_after: u64,
    /// Reconciles that failed, panics, timeouts and terminal errors included.
    pub errors: u64,
    /// Of these, those that aren't tried again.
    pub terminal_errors: u64,
    /// Of these, those that panicked.
    pub panics: u64,
    /// Of these, those that took too long.
    pub timeouts: u64,
    /// Reconciles running now.
    pub active: u64,
    /// Keys that wait to be reconciled now.
    pub ready: u64,
    /// Keys that wait for a time.
    pub delayed: u64,
}

impl Counters {
    pub(crate) fn snapshot(&self, operator: &str, depth: crate::queue::Depth) -> Snapshot {
        let load = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Snapshot {
            operator: operator.to_owned(),
            done: load(&self.done),
            requeued_after: load(&self.requeued_after),
            errors: load(&self.errors),
            terminal_errors: load(&self.terminal_errors),
            panics: load(&self.panics),
            timeouts: load(&self.timeouts),
            active: load(&self.active),
            ready: depth.ready as u64,
            delayed: depth.delayed as u64,
        }
    }
}
