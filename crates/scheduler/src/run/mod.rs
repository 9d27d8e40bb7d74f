//! The loop around the framework: takes pods one at a time, gives each a place, and has it bound beside the loop.
//!
//! It is a task on the SDK's caches rather than an operator: pods are chosen by the scheduling queue, not by key, and
//! every decision needs the one before it. Between two pods it takes in what changed.
//! Invariant: all decisions are made by this one task; what runs beside it only writes.

mod bind;
mod cycle;
mod feed;
mod report;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Entropy;
use homeostat_model::duration::go;
use homeostat_sdk::{Cache, Error, Recorder, Result, TaskContext, Writer};
use k8s_openapi::api::core::v1::Pod;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::config::{Configuration, DEFAULT_NAME, Registry};
use crate::extender::{Extender, Extenders, Http, Transport};
use crate::framework::{Framework, Io, Status, WaitingPod};
use crate::queue::Queue;
use bind::{Placement, Voice, bind};
use feed::Feed;
use world::World;

/// How long bindings may take to end after a stop.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bindings and evictions under way at most.
const MOST_BESIDE: usize = 512;

/// A binding that is over.
struct Done {
    placement: Placement,
    result: std::result::Result<(), Status>,
}

/// A pod that has its place and waits for a permit.
struct Held {
    placement: Placement,
    /// Since when it waits, for how long, and which plugin wants it to.
    since: Instant,
    wait: Duration,
    plugin: &'static str,
}

impl Held {
    fn until(&self) -> Instant {
        self.since + self.wait
    }
}

/// The scheduler.
pub(crate) struct Scheduler {
    world: World,
    voices: BTreeMap<Arc<str>, Voice>,
    extenders: Arc<Extenders>,
    entropy: Entropy,
    clock: homeostat_model::Clock,
    pods: Cache<Pod>,
    /// Where the search for nodes goes on.
    start: usize,
    held: BTreeMap<Arc<str>, Held>,
    binding: JoinSet<Done>,
    beside: JoinSet<()>,
}

/// Runs the scheduler until the manager stops.
pub(crate) async fn run(cx: TaskContext, configuration: Configuration, registry: Registry) -> Result<()> {
    let mut extenders = Vec::new();
    for config in &configuration.extenders {
        let http: Arc<dyn Transport> = Arc::new(Http::new(config).map_err(|e| Error::msg(e.to_string()))?);
        extenders.push(Extender::new(config.clone(), http));
    }
    let frameworks = configuration.frameworks(&registry, cx.entropy());
    let frameworks = frameworks.map_err(|e| Error::msg(e.to_string()).terminal())?;
    let feed = Feed::default();
    tokio::select! { biased;
        () = cx.shutdown().cancelled() => return Ok(()),
        () = feed.start(&cx) => {}
    }
    let mut scheduler = Scheduler::new(&cx, &configuration, &frameworks, extenders);
    while !cx.shutdown().is_cancelled() {
        let (mut notes, dropped) = feed.take();
        if dropped {
            tracing::warn!("more changed at once than is remembered: reading everything anew");
            scheduler = Scheduler::new(&cx, &configuration, &frameworks, scheduler.extenders.0.clone());
            notes = feed::everything(&cx);
        }
        let now = Instant::now();
        scheduler.world.apply(notes, now);
        if scheduler.turn(now).await {
            // Binding and watching go on between two pods.
            tokio::task::yield_now().await;
            continue;
        }
        scheduler.rest(&cx, &feed).await;
    }
    scheduler.finish().await;
    Ok(())
}

impl Scheduler {
    fn new(
        cx: &TaskContext,
        configuration: &Configuration,
        frameworks: &[Arc<Framework>],
        extenders: Vec<Extender>,
    ) -> Self {
        let voice = |framework: &Arc<Framework>| {
            let own = &*framework.name == DEFAULT_NAME;
            let writer = Writer::new(cx.client().clone(), cx.caches().clone(), &*framework.name);
            let recorder = if own {
                cx.recorder()
            } else {
                Recorder::new(writer.clone(), cx.clock().clone(), &*framework.name)
            };
            let io = Io {
                writer,
                caches: cx.caches().clone(),
                clock: cx.clock().clone(),
                scheduler: framework.name.clone(),
            };
            (framework.name.clone(), Voice { io, recorder })
        };
        let queue = Queue::new(configuration.initial_backoff, configuration.max_backoff);
        Self {
            world: World::new(frameworks.to_vec(), queue),
            voices: frameworks.iter().map(voice).collect(),
            extenders: Arc::new(Extenders(extenders)),
            entropy: cx.entropy().clone(),
            clock: cx.clock().clone(),
            pods: cx.cache::<Pod>(),
            start: 0,
            held: BTreeMap::new(),
            binding: JoinSet::new(),
            beside: JoinSet::new(),
        }
    }

    /// Does what is due; whether there was anything.
    async fn turn(&mut self, now: Instant) -> bool {
        let mut busy = false;
        for uid in std::mem::take(&mut self.world.gone) {
            // Its place is free already; whoever waited with it is told.
            if let Some(held) = self.held.remove(&uid) {
                self.abandon(&held.placement, now).await;
            }
        }
        while let Some(done) = self.binding.try_join_next() {
            busy = true;
            if let Ok(done) = done {
                self.bound(done, now).await;
            }
        }
        while self.beside.try_join_next().is_some() {}
        while let Some((uid, held)) = self.held.iter().find(|(_, h)| h.until() <= now) {
            busy = true;
            let (waited, plugin) = (go(held.wait), held.plugin);
            let why = format!("rejected due to timeout after waiting {waited} at plugin {plugin}");
            let (uid, why) = (uid.clone(), Status::unschedulable(why));
            self.reject(&uid, &why, now).await;
        }
        self.world.queue.flush(now);
        if self.binding.len() + self.beside.len() >= MOST_BESIDE {
            return busy;
        }
        if let Some((pod, framework)) = self.world.queue.pop() {
            self.attempt(pod, framework, now).await;
            busy = true;
        }
        busy
    }

    /// Waits until something is due.
    async fn rest(&mut self, cx: &TaskContext, feed: &Feed) {
        let permits = self.held.values().map(Held::until).min();
        let deadline = [permits, self.world.queue.deadline()].into_iter().flatten().min();
        let sleep = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let mut done = None;
        tokio::select! { biased;
            () = cx.shutdown().cancelled() => {}
            Some(result) = self.binding.join_next(), if !self.binding.is_empty() => done = result.ok(),
            Some(_) = self.beside.join_next(), if !self.beside.is_empty() => {}
            () = feed.wake.notified() => {}
            () = sleep => {}
        }
        if let Some(done) = done {
            self.bound(done, Instant::now()).await;
        }
    }

    /// Lets what is under way end, but not wait for others: a binding that waits for volumes is given up.
    async fn finish(mut self) {
        let end = async {
            while self.binding.join_next().await.is_some() {}
            while self.beside.join_next().await.is_some() {}
        };
        let _ = tokio::time::timeout(PATIENCE, end).await;
    }

    fn voice(&self, framework: &Framework) -> Option<Voice> {
        self.voices.get(&framework.name).cloned()
    }

    fn waiting(&self) -> Vec<WaitingPod> {
        let held = self.held.values().map(|h| &h.placement);
        held.map(|p| WaitingPod { pod: p.pod.clone(), node: p.node.clone() }).collect()
    }

    fn send(&mut self, placement: Placement) {
        let Some(voice) = self.voice(&placement.framework) else { return };
        let extenders = self.extenders.clone();
        self.binding.spawn(async move {
            let result = bind(&voice, &extenders, &placement).await;
            Done { placement, result }
        });
    }
}
