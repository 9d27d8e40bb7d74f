//! The garbage collector: what belongs to something that is gone goes too, in the foreground, in the background, or
//! not at all where it is to be orphaned.
//!
//! Every deletable resource is watched by metadata into a [`graph`] of owners and dependents; changes in the graph
//! make work, and [`work`] asks the server itself before it deletes. Nothing polls: new kinds are found by watching
//! CustomResourceDefinitions and APIServices.
//! Invariant: nothing is deleted because of the graph alone; the absence of an owner is always the server's word.

mod graph;
mod judge;
mod monitor;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use homeostat_sdk::queue::{Backoff, Priority, Queue};
use homeostat_sdk::{CancellationToken, Result, TaskContext};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use crate::common::served::{Discovery, Served};
use graph::{Graph, Uid, Work};

/// The task's name: field manager of its writes, reporter of its events.
pub(crate) const NAME: &str = "garbage-collector-controller";
/// Items worked on at a time (the reference's default).
const WORKERS: usize = 20;
/// After a change of CRDs discovery is asked once more, since it may follow a moment later.
const LATER: Duration = Duration::from_secs(1);
/// How long deletions that need the whole graph wait for a watch that doesn't come up.
const PATIENCE: Duration = Duration::from_secs(30);

/// What all parts of the collector share.
struct Shared {
    cx: TaskContext,
    graph: Mutex<Graph>,
    queue: Queue<Work>,
    discovery: RwLock<Arc<Discovery>>,
    monitors: Mutex<BTreeMap<Arc<Served>, monitor::Handle>>,
    /// Items whose owners' kinds aren't served: tried again when a new kind is.
    unknown: Mutex<BTreeSet<Uid>>,
    /// Something that changes what is served has changed.
    kinds_changed: Notify,
}

impl Shared {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn monitors(&self) -> MutexGuard<'_, BTreeMap<Arc<Served>, monitor::Handle>> {
        self.monitors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn discovery(&self) -> Arc<Discovery> {
        self.discovery.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, work: Vec<Work>) {
        for item in work {
            self.queue.add(item, Priority::Normal);
        }
    }

    /// Whether the graph can be trusted to know all dependents of an object.
    fn is_complete(&self) -> bool {
        self.monitors().values().all(|m| m.is_synced() || m.age() > PATIENCE)
    }

    /// Watches what is served now and no longer what isn't.
    fn watch(self: &Arc<Self>, discovery: Discovery, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let wanted: BTreeSet<Arc<Served>> =
            discovery.preferred().filter(|r| is_collectable(r)).cloned().collect();
        let fresh = {
            let mut monitors = self.monitors();
            let gone: Vec<Arc<Served>> = monitors
                .keys()
                .filter(|r| !wanted.contains(*r) && !is_stale(&discovery, r))
                .cloned()
                .collect();
            for resource in gone {
                debug!(resource = resource.plural, group = resource.group, "no longer watched");
                if let Some(monitor) = monitors.remove(&resource) {
                    monitor.stop();
                }
                let work = self.graph().forget(&resource);
                self.add(work);
            }
            let fresh: Vec<Arc<Served>> = wanted.into_iter().filter(|r| !monitors.contains_key(r)).collect();
            for resource in &fresh {
                let (handle, run) = monitor::start(self.clone(), resource.clone(), stop);
                monitors.insert(resource.clone(), handle);
                tasks.spawn(run);
            }
            !fresh.is_empty()
        };
        *self.discovery.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(discovery);
        if fresh {
            let unknown = std::mem::take(&mut *self.unknown.lock().unwrap_or_else(PoisonError::into_inner));
            self.add(unknown.into_iter().map(Work::Delete).collect());
        }
    }
}

/// Whether objects of a resource can have owners and be deleted. Events are neither owned nor owners.
fn is_collectable(resource: &Served) -> bool {
    let is_event = resource.plural == "events" && matches!(resource.group.as_str(), "" | "events.k8s.io");
    !is_event && ["delete", "list", "watch"].iter().all(|v| resource.can(v))
}

fn is_stale(discovery: &Discovery, resource: &Served) -> bool {
    discovery.stale.contains(&resource.api_version())
}

/// Runs the collector until the manager stops.
pub(crate) async fn run(cx: TaskContext) -> Result<()> {
    let stop = cx.shutdown().child_token();
    // Whatever ends this function ends its tasks.
    let _guard = stop.clone().drop_guard();
    let shared = Arc::new(Shared {
        graph: Mutex::default(),
        queue: Queue::new(Backoff { max: Duration::from_secs(30), ..Backoff::default() }),
        discovery: RwLock::default(),
        monitors: Mutex::default(),
        unknown: Mutex::default(),
        kinds_changed: Notify::new(),
        cx,
    });
    let mut tasks = JoinSet::new();
    for _ in 0..WORKERS {
        tasks.spawn(work::run(shared.clone()));
    }
    let mut failures = 0;
    let mut again = None;
    loop {
        match Discovery::ask(shared.cx.client()).await {
            Ok(discovery) => {
                failures = 0;
                shared.watch(discovery, &mut tasks, &stop);
            }
            Err(error) => {
                failures += 1;
                let delay = Backoff { max: Duration::from_secs(30), ..Backoff::default() }.delay(failures);
                warn!(%error, ?delay, "cannot ask what is served");
                again = Some(delay);
            }
        }
        // Ended monitors are collected here, so that they don't pile up.
        while tasks.try_join_next().is_some() {}
        let later = async {
            match again {
                Some(delay) => tokio::time::sleep(delay).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { biased;
            () = stop.cancelled() => break,
            () = shared.kinds_changed.notified() => again = Some(LATER),
            () = later => again = None,
        }
    }
    shared.queue.close();
    while tasks.join_next().await.is_some() {}
    Ok(())
}
