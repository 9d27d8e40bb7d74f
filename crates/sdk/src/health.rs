//! What one can know of a manager from outside: whether it is ready, what it waits for, and its numbers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::metrics::Snapshot;
use crate::runner::Status;

#[derive(Default)]
struct Inner {
    started: AtomicBool,
    list: Mutex<List>,
}

#[derive(Default)]
pub(crate) struct List {
    pub(crate) operators: Vec<Arc<Status>>,
    webhooks: Option<CancellationToken>,
    metrics: Option<SocketAddr>,
    probes: Option<SocketAddr>,
}

/// Readiness and metrics of a manager. Cheap to clone.
#[derive(Clone, Default)]
pub struct Health(Arc<Inner>);

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health").field("ready", &self.ready()).finish()
    }
}

impl Health {
    pub(crate) fn inner(&self) -> std::sync::MutexGuard<'_, List> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the manager runs.
    pub(crate) fn runs(&self, runs: bool) {
        self.0.started.store(runs, Ordering::Release);
    }

    pub(crate) fn listens(&self, metrics: bool, address: SocketAddr) {
        let mut list = self.inner();
        *(if metrics { &mut list.metrics } else { &mut list.probes }) = Some(address);
    }

    pub(crate) fn waits_for_webhooks(&self, ready: CancellationToken) {
        self.inner().webhooks = Some(ready);
    }

    /// Where `/metrics` is served, once it is: with port 0 the system chose one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.inner().metrics
    }

    /// Where `/healthz` and `/readyz` are served, once they are.
    pub fn probes_address(&self) -> Option<SocketAddr> {
        self.inner().probes
    }

    /// Whether the manager runs, every operator has its caches, and webhooks are served and registered.
    pub fn ready(&self) -> bool {
        self.0.started.load(Ordering::Acquire) && self.waiting().is_empty()
    }

    /// The operators that still wait for their caches, and `webhooks` where these aren't registered yet.
    pub fn waiting(&self) -> Vec<String> {
        let list = self.inner();
        let waiting = list.operators.iter().filter(|o| !o.ready.load(Ordering::Acquire));
        let webhooks = list.webhooks.as_ref().filter(|ready| !ready.is_cancelled());
        waiting.map(|o| o.name.to_owned()).chain(webhooks.map(|_| "webhooks".to_owned())).collect()
    }

    /// Everything that readiness waits for.
    pub(crate) fn names(&self) -> Vec<String> {
        let list = self.inner();
        let operators = list.operators.iter().map(|o| o.name.to_owned());
        operators.chain(list.webhooks.as_ref().map(|_| "webhooks".to_owned())).collect()
    }

    /// Whether no key of any operator is due or being reconciled. Delayed keys don't count.
    pub fn idle(&self) -> bool {
        self.inner().operators.iter().all(|o| {
            let depth = o.queue.depth();
            depth.ready == 0 && depth.gathered == 0 && depth.running == 0
        })
    }

    /// The numbers of each operator, in the order in which they were added.
    pub fn metrics(&self) -> Vec<Snapshot> {
        self.inner().operators.iter().map(|o| o.counters.snapshot(o.name, o.queue.depth())).collect()
    }
}
