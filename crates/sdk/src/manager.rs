//! Runs operators and tasks side by side, on shared caches, until told to stop.
//!
//! A manager holds no state about objects. It starts everything, says when all of it is ready, and ends in order:
//! operators first, with time to finish what they do, then the watches.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use homeostat_model::{Clock, Entropy};
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cache::{Cache, Caches, Selection};
use crate::error::Result;
use crate::event::Recorder;
use crate::metrics::Snapshot;
use crate::object::Watched;
use crate::operator::Operator;
use crate::runner::{Runner, Status};
use crate::write::Writer;

/// How long running reconciles may take to finish after a stop (controller-runtime's default).
const GRACE: Duration = Duration::from_secs(30);
/// Delays of a task that failed.
const TASK_BACKOFF: crate::queue::Backoff = crate::queue::Backoff {
    base: Duration::from_millis(100),
    max: Duration::from_secs(30),
    changed: Duration::from_secs(30),
};

/// What everything in a manager shares.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    instance: Option<Arc<str>>,
}

impl Env {
    /// Who reports, for events: this process where it has a name, else the operator.
    pub(crate) fn instance_of(&self, operator: &str) -> Arc<str> {
        self.instance.clone().unwrap_or_else(|| operator.into())
    }
}

/// What a task works with.
#[derive(Clone)]
pub struct TaskContext {
    env: Env,
    writer: Writer,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for TaskContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskContext").field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl TaskContext {
    /// The client.
    pub fn client(&self) -> &Client {
        &self.env.client
    }

    /// All caches of the manager.
    pub fn caches(&self) -> &Caches {
        &self.env.caches
    }

    /// The cache of a kind, shared with every operator and task that needs it.
    pub fn cache<K: Watched>(&self) -> Cache<K>
    where
        K::DynamicType: Default,
    {
        self.env.caches.get(&Selection::all())
    }

    /// Writes, under the task's name.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Records events, under the task's name.
    pub fn recorder(&self) -> Recorder {
        let name = self.writer.manager();
        Recorder::new(self.writer.clone(), self.env.clock.clone(), self.env.instance_of(name))
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.env.clock
    }

    /// The source of chance.
    pub fn entropy(&self) -> &Entropy {
        &self.env.entropy
    }

    /// Cancelled when the manager stops. A task that ends on it has time to finish what it does.
    pub fn shutdown(&self) -> &CancellationToken {
        &self.shutdown
    }
}

type Start = Box<dyn FnOnce(Env, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Operators and tasks that run together.
pub struct Manager {
    env: Env,
    starts: Vec<(String, Start)>,
    health: Health,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.starts.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Manager").field("runs", &names).finish_non_exhaustive()
    }
}

impl Manager {
    /// Runs nothing yet. Time and chance are the machine's; see [`with_clock`](Self::with_clock) and
    /// [`with_entropy`](Self::with_entropy).
    pub fn new(client: Client) -> Self {
        let entropy = Entropy::system();
        let caches = Caches::new(client.clone(), entropy.clone());
        let env = Env { client, caches, clock: Clock::system(), entropy, instance: None };
        Self { env, starts: Vec::new(), health: Health::default() }
    }

    /// Tells the time by `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.env.clock = clock;
        self
    }

    /// Takes chance from `entropy`.
    #[must_use]
    pub fn with_entropy(mut self, entropy: Entropy) -> Self {
        self.env.caches = Caches::new(self.env.client.clone(), entropy.clone());
        self.env.entropy = entropy;
        self
    }

    /// Names this process as the reporting instance of events, such as its pod's name.
    #[must_use]
    pub fn with_instance(mut self, name: impl Into<Arc<str>>) -> Self {
        self.env.instance = Some(name.into());
        self
    }

    /// Adds an operator.
    pub fn add<O: Operator>(&mut self, operator: O) -> &mut Self {
        let runner = Runner::new(operator);
        self.health.inner().operators.push(runner.status.clone());
        let start: Start = Box::new(move |env, stop| runner.run(env, stop).boxed());
        self.starts.push((O::name().to_owned(), start));
        self
    }

    /// Adds an operator, as a builder.
    #[must_use]
    pub fn with<O: Operator>(mut self, operator: O) -> Self {
        self.add(operator);
        self
    }

    /// Adds a task that shares the caches, for what doesn't reconcile one resource: a scheduler, heartbeats, a sweep.
    ///
    /// It is started again, after a growing delay, when it fails or panics, and is done when it returns `Ok`. Its
    /// name is the field manager of its writes.
    pub fn add_task<F, Fut>(&mut self, name: &str, task: F) -> &mut Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let label = name.to_owned();
        let start: Start = Box::new(move |env, stop| run_task(label, task, env, stop).boxed());
        self.starts.push((name.to_owned(), start));
        self
    }

    /// Adds a task, as a builder.
    #[must_use]
    pub fn with_task<F, Fut>(mut self, name: &str, task: F) -> Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_task(name, task);
        self
    }

    /// The caches, to read from outside. They are fed from when they are first asked for until the manager stops.
    pub fn caches(&self) -> &Caches {
        &self.env.caches
    }

    /// A handle on readiness and metrics that outlives [`run`](Self::run).
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs everything until `shutdown` is cancelled.
    ///
    /// Running reconciles and tasks then have 30 s to finish; what still runs after that is dropped, which is an
    /// error.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Unfinished> {
        let stop = shutdown.child_token();
        let mut running = JoinSet::new();
        for (name, start) in self.starts {
            let run = start(self.env.clone(), stop.clone());
            running.spawn(async move {
                run.await;
                name
            });
        }
        self.health.0.started.store(true, Ordering::Release);
        shutdown.cancelled().await;
        self.health.0.started.store(false, Ordering::Release);
        let finish = async { while running.join_next().await.is_some() {} };
        let finished = tokio::time::timeout(GRACE, finish).await.is_ok();
        running.shutdown().await;
        self.env.caches.stop().await;
        if finished { Ok(()) } else { Err(Unfinished(GRACE)) }
    }

    /// As [`run`](Self::run), until a future such as a signal's resolves.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), Unfinished> {
        let token = CancellationToken::new();
        let mut run = pin!(self.run(token.clone()));
        tokio::select! { biased;
            () = shutdown => token.cancel(),
            result = &mut run => return result,
        }
        run.await
    }
}

/// Something didn't end in time after a stop.
#[derive(Debug, thiserror::Error)]
#[error("some reconciles did not finish within {0:?} of the stop and were dropped")]
pub struct Unfinished(pub Duration);

async fn run_task<F, Fut>(name: String, task: F, env: Env, stop: CancellationToken)
where
    F: Fn(TaskContext) -> Fut,
    Fut: Future<Output = Result<()>> + Send,
{
    let writer = Writer::new(env.client.clone(), env.caches.clone(), name.as_str());
    let cx = TaskContext { env, writer, shutdown: stop.clone() };
    let mut failures = 0;
    loop {
        let result = AssertUnwindSafe(task(cx.clone())).catch_unwind().await;
        let why = match result {
            Ok(Ok(())) => {
                info!(task = name, "ended");
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked".into(),
        };
        if stop.is_cancelled() {
            return;
        }
        failures += 1;
        let delay = TASK_BACKOFF.delay(failures);
        warn!(task = name, ?delay, "task failed: {why}");
        tokio::select! { biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(delay) => {}
        }
    }
}

#[derive(Default)]
struct HealthInner {
    started: AtomicBool,
    list: Mutex<HealthList>,
}

#[derive(Default)]
struct HealthList {
    operators: Vec<Arc<Status>>,
}

/// Readiness and metrics of a manager. Cheap to clone.
#[derive(Clone, Default)]
pub struct Health(Arc<HealthInner>);

impl std::fmt::Debug for Health {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Health").field("ready", &self.ready()).finish()
    }
}

impl Health {
    fn inner(&self) -> std::sync::MutexGuard<'_, HealthList> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the manager runs and every operator has its caches.
    pub fn ready(&self) -> bool {
        self.0.started.load(Ordering::Acquire)
            && self.inner().operators.iter().all(|o| o.ready.load(Ordering::Acquire))
    }

    /// The operators that still wait for their caches.
    pub fn waiting(&self) -> Vec<String> {
        let list = self.inner();
        let waiting = list.operators.iter().filter(|o| !o.ready.load(Ordering::Acquire));
        waiting.map(|o| o.name.to_owned()).collect()
    }

    /// Whether no key of any operator is due or being reconciled. Delayed keys don't count.
    pub fn idle(&self) -> bool {
        self.inner().operators.iter().all(|o| {
            let depth = o.queue.depth();
            depth.ready == 0 && depth.running == 0
        })
    }

    /// The numbers of each operator, in the order in which they were added.
    pub fn metrics(&self) -> Vec<Snapshot> {
        self.inner().operators.iter().map(|o| o.counters.snapshot(o.name, o.queue.depth())).collect()
    }
}
