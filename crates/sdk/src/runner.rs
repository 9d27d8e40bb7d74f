//! Runs one operator: from changes to keys, from keys to reconciles, from results to the next time.
//!
//! It waits until all caches of the operator have their first list, then a fixed number of workers take keys from the
//! queue. A panic or an error concerns its key only. On stop no new key is taken, and what runs may finish. A key that
//! another process comes to own is let go of at once.
//! What knows the operator's type is [`Typed`] and the subscriptions; the rest is compiled once for all operators.

use std::any::TypeId;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use homeostat_model::Entropy;
use kube::Resource;
use kube::api::Patch;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, debug, error, info, warn};

use crate::cache::{Cache, Change, matches};
use crate::context::{Context, Shared, What};
use crate::dependencies::{Dependencies, KindId};
use crate::dynamic::Dynamic;
use crate::election::Gate;
use crate::error::{Error, Result};
use crate::event::Recorder;
use crate::key::Key;
use crate::kinds::{Kinds, Visitor};
use crate::manager::Env;
use crate::metrics::{Counters, Durations, count};
use crate::object::{Object, Watched};
use crate::operator::{Next, Operator, Settings};
use crate::panics;
use crate::queue::{Outcome, Priority, Queue};
use crate::span;
use crate::watches::{Enqueue, Handles, Open, View, Watches};
use crate::write::Writer;

/// What the manager sees of a running operator.
pub(crate) struct Status {
    pub(crate) name: &'static str,
    /// Of the operator's resource.
    pub(crate) kind: Cow<'static, str>,
    pub(crate) concurrency: usize,
    pub(crate) queue: Arc<Queue<Key>>,
    pub(crate) counters: Counters,
    pub(crate) durations: Durations,
    pub(crate) ready: AtomicBool,
}

/// An operator whose type nobody needs to know.
trait Reconciles: Send + Sync {
    /// The reconcile of a key, whatever has become of its object.
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Next>>;

    /// Whether there is an object of this key.
    fn exists(&self, key: &Key) -> bool;

    /// The keys of all objects.
    fn keys(&self) -> Vec<Key>;
}

struct Typed<O: Operator> {
    operator: O,
    shared: Arc<Shared>,
    objects: Cache<O::Resource>,
}

pub(crate) struct Runner<O: Operator> {
    operator: O,
    settings: Settings,
    pub(crate) status: Arc<Status>,
}

impl<O: Operator> Runner<O> {
    pub(crate) fn new(operator: O) -> Self {
        let settings = operator.settings();
        let status = Status {
            name: O::name(),
            kind: O::Resource::kind(&()),
            concurrency: settings.concurrency.max(1),
            queue: Arc::new(Queue::new(settings.backoff).gathering(settings.gather)),
            counters: Counters::default(),
            durations: Durations::default(),
            ready: AtomicBool::new(false),
        };
        Self { operator, settings, status: Arc::new(status) }
    }

    /// Until `stop`, and then until running reconciles are done. The caller limits how long that may take.
    pub(crate) fn run(self, env: &Env, stop: CancellationToken) -> BoxFuture<'static, ()> {
        let mut watches = Watches::new();
        self.operator.watches(&mut watches);
        let handles =
            Arc::new(Open::new::<O>(&env.caches, env.namespace.as_deref(), &watches.selections).handles);
        let enqueue = enqueue(self.status.queue.clone());
        let shared = Arc::new(shared(env, O::name(), handles, enqueue.clone()));
        let sources = std::mem::take(&mut watches.sources);
        subscribe(watches, &shared, &enqueue);
        let objects = shared.handles.get::<O::Resource>();
        let crew = Crew {
            work: Arc::new(Typed { operator: self.operator, shared: shared.clone(), objects }),
            handles: shared.handles.clone(),
            sources: Mutex::new(sources),
            settings: self.settings,
            status: self.status,
            gate: env.gate.clone(),
            entropy: env.entropy.clone(),
        };
        Arc::new(crew).run(stop).boxed()
    }
}

fn shared(env: &Env, name: &'static str, handles: Arc<Handles>, enqueue: Enqueue) -> Shared {
    let writer = Writer::new(env.client.clone(), env.caches.clone(), name);
    Shared {
        recorder: Recorder::new(writer.clone(), env.clock.clone(), env.instance_of(name)),
        writer,
        clock: env.clock.clone(),
        entropy: env.entropy.clone(),
        handles,
        dependencies: Dependencies::default(),
        sent: Default::default(),
        dynamic: Dynamic::new(env.caches.clone(), env.namespace.clone(), enqueue),
    }
}

fn subscribe<O: Operator>(watches: Watches<O>, shared: &Arc<Shared>, enqueue: &Enqueue) {
    let (to, of, filter) = (enqueue.clone(), shared.clone(), watches.filter);
    shared.handles.get::<O::Resource>().subscribe(move |change: &Change<O::Resource>| {
        let Some(key) = change.key() else { return };
        if change.new.is_none() {
            of.sent.forget(What::Status, &key);
        }
        if filter.as_ref().is_none_or(|f| f(change)) {
            to(vec![key], change.listed);
        }
        to_dependents(&KindId::of::<O::Resource>(), &of, &to, change);
    });

    let mut owned = SubscribeOwned::<O> { shared, enqueue, filters: &watches.filters, operator: PhantomData };
    O::Owns::visit(&mut owned);
    O::Reads::visit(&mut SubscribeRead { shared, enqueue });

    let view = View { handles: shared.handles.clone(), operator: PhantomData };
    for hook in watches.hooks {
        hook(&view, enqueue);
    }
}

fn enqueue(queue: Arc<Queue<Key>>) -> Enqueue {
    Arc::new(move |keys, listed| {
        let priority = if listed { Priority::Low } else { Priority::Normal };
        for key in keys {
            queue.add(key, priority);
        }
    })
}

impl<O: Operator> Reconciles for Typed<O> {
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Next>> {
        async {
            let object = self.objects.get(key);
            let cx = Context::<O>::new(self.shared.clone(), key.clone(), object.clone());
            let result = match object {
                None => self.operator.absent(key, &cx).await,
                Some(object) => self.present(object, &cx).await,
            };
            // Also after an error: what it read may be what was wrong.
            cx.settle();
            result
        }
        .boxed()
    }

    fn exists(&self, key: &Key) -> bool {
        self.objects.has(key)
    }

    fn keys(&self) -> Vec<Key> {
        self.objects.keys()
    }
}

impl<O: Operator> Typed<O> {
    async fn present(&self, object: Arc<O::Resource>, cx: &Context<O>) -> Result<Next> {
        let deleting = object.meta().deletion_timestamp.is_some();
        let finalizers = object.meta().finalizers.as_deref().unwrap_or_default();
        let held = O::finalizer().is_some_and(|f| finalizers.iter().any(|x| x == f));
        match O::finalizer() {
            Some(finalizer) if deleting => {
                if !held {
                    return Ok(Next::done());
                }
                let next = self.operator.finalize(&object, cx).await?;
                if next == Next::done() {
                    let rest: Vec<&String> = finalizers.iter().filter(|x| *x != finalizer).collect();
                    set_finalizers(&*object, &rest, cx).await?;
                }
                Ok(next)
            }
            None if deleting => self.operator.finalize(&object, cx).await,
            Some(finalizer) if !held => {
                let finalizer = finalizer.to_owned();
                let all: Vec<&String> = finalizers.iter().chain([&finalizer]).collect();
                let object = set_finalizers(&*object, &all, cx).await?;
                self.operator.reconcile(&object, cx).await
            }
            _ => self.operator.reconcile(&object, cx).await,
        }
    }
}

/// Replaces the list of finalizers, if the object is still as it was seen.
async fn set_finalizers<O: Operator>(
    object: &O::Resource,
    finalizers: &[&String],
    cx: &Context<O>,
) -> Result<O::Resource> {
    let version = object.meta().resource_version.as_deref();
    let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
    cx.patch_resource(&Patch::Merge(patch)).await
}

/// The workers of one operator.
struct Crew {
    work: Arc<dyn Reconciles>,
    handles: Arc<Handles>,
    sources: Mutex<Vec<BoxStream<'static, Key>>>,
    settings: Settings,
    status: Arc<Status>,
    gate: Gate,
    entropy: Entropy,
}

impl Crew {
    async fn run(self: Arc<Self>, stop: CancellationToken) {
        let name = self.status.name;
        debug!(operator = name, "waiting for caches");
        tokio::select! { biased;
            () = stop.cancelled() => return,
            () = self.handles.synced() => {}
        }
        self.status.ready.store(true, Ordering::Release);
        info!(operator = name, concurrency = self.status.concurrency, "started");

        let mut workers = JoinSet::new();
        for _ in 0..self.status.concurrency {
            workers.spawn(self.clone().work());
        }
        tokio::select! { biased;
            () = stop.cancelled() => {}
            () = self.follow_gate() => {}
            () = self.resync() => {}
            () = self.listen() => {}
        }
        self.status.queue.close();
        while workers.join_next().await.is_some() {}
        info!(operator = name, "stopped");
    }

    /// Brings back the keys that this process comes to own.
    async fn follow_gate(&self) {
        let mut gate = self.gate.clone();
        let mut before = gate.now();
        loop {
            gate.changed().await;
            let now = gate.now();
            for key in self.work.keys() {
                if now.admits(&key) && !before.admits(&key) {
                    self.status.queue.add(key, Priority::Low);
                }
            }
            before = now;
        }
    }

    /// Brings back what comes from outside.
    async fn listen(&self) {
        let sources = std::mem::take(&mut *self.sources.lock().unwrap_or_else(PoisonError::into_inner));
        let mut keys = futures::stream::select_all(sources);
        while let Some(key) = keys.next().await {
            self.status.queue.add(key, Priority::Normal);
        }
        std::future::pending().await
    }

    /// Brings back every key from time to time.
    async fn resync(&self) {
        let Some(period) = self.settings.resync.filter(|p| !p.is_zero()) else {
            return std::future::pending().await;
        };
        loop {
            // Up to a tenth later, as controller-runtime has it, so that not all processes do it at once.
            let jitter = u64::try_from(period.as_millis() / 10).unwrap_or(0);
            tokio::time::sleep(period + Duration::from_millis(self.entropy.below(jitter))).await;
            for key in self.work.keys() {
                self.status.queue.add(key, Priority::Low);
            }
        }
    }

    async fn work(self: Arc<Self>) {
        let queue = &self.status.queue;
        let counters = &self.status.counters;
        let alone = self.gate.is_open();
        while let Some(taken) = queue.take().await {
            let key = taken.key;
            self.status.durations.waited(taken.waited);
            let began = Instant::now();
            let span = span::begin(self.status.name, &key);
            counters.active.fetch_add(1, Ordering::Relaxed);
            // Somebody else's: whoever owns it has it in its own queue.
            let done = if alone {
                Some(self.guarded(&key, &span).await)
            } else {
                tokio::select! { biased;
                    () = self.gate.clone().lost(&key) => None,
                    result = self.guarded(&key, &span) => Some(result),
                }
            };
            counters.active.fetch_sub(1, Ordering::Relaxed);
            let late = matches!(&done, Some(Err(error)) if self.came_too_late(&key, error));
            span::end(&span, &self.status.kind, &key, done.as_ref(), late);
            drop(span);
            let Some(result) = done else {
                queue.forget(&key);
                continue;
            };
            self.status.durations.took(began.elapsed());
            let outcome = self.outcome(&key, &result);
            let delay = queue.finish(&key, outcome);
            if let Err(error) = result {
                report(self.status.name, &key, &error, delay, late);
            }
        }
    }

    fn outcome(&self, key: &Key, result: &Result<Next>) -> Outcome {
        let counters = &self.status.counters;
        let operator = self.status.name;
        match result {
            Ok(Next { after: None }) => {
                count(&counters.done);
                debug!(operator, %key, "reconciled");
                Outcome::Done
            }
            Ok(Next { after: Some(delay) }) => {
                count(&counters.requeued_after);
                debug!(operator, %key, ?delay, "reconciled");
                Outcome::After(*delay)
            }
            Err(error) => {
                count(&counters.errors);
                if error.is_terminal() {
                    count(&counters.terminal_errors);
                    return Outcome::Done;
                }
                Outcome::Failed
            }
        }
    }

    /// What every controller meets, and what the next reconcile mends, is no news to anyone: a cache that was behind,
    /// an object or a namespace that went away meanwhile.
    fn came_too_late(&self, key: &Key, error: &Error) -> bool {
        !error.is_terminal()
            && (error.is_conflict()
                || error.is_already_exists()
                || error.is_namespace_terminating()
                || (error.is_not_found() && !self.work.exists(key)))
    }

    /// A reconcile that can't take down its worker, nor keep it for ever where a timeout is set.
    async fn guarded(&self, key: &Key, span: &Span) -> Result<Next> {
        let counters = &self.status.counters;
        let operator = self.status.name;
        let reconcile = AssertUnwindSafe(async { self.work.reconcile(key).await }.instrument(span.clone()));
        let reconcile = reconcile.catch_unwind();
        let result = match self.settings.timeout {
            None => reconcile.await,
            Some(limit) => match tokio::time::timeout(limit, reconcile).await {
                Ok(result) => result,
                Err(_) => {
                    count(&counters.timeouts);
                    return Err(Error::msg(format!("reconcile took longer than {limit:?}")));
                }
            },
        };
        result.unwrap_or_else(|panic| {
            count(&counters.panics);
            let text = panics::text(&*panic);
            error!(operator, %key, "reconcile panicked: {text}");
            Err(Error::msg(format!("reconcile panicked: {text}")))
        })
    }
}

fn report(operator: &str, key: &Key, error: &Error, delay: Option<Duration>, late: bool) {
    if error.is_terminal() {
        error!(operator, %key, "reconcile failed for good: {error}");
    } else if late {
        debug!(operator, %key, ?delay, "reconcile came too late: {error}");
    } else {
        warn!(operator, %key, ?delay, "reconcile failed: {error}");
    }
}

pub(crate) fn to_dependents<T: Watched>(id: &KindId, shared: &Shared, enqueue: &Enqueue, change: &Change<T>) {
    let Some(key) = change.key() else { return };
    let keys = shared.dependencies.of(id, &key, &|labels| change.each().any(|o| matches(labels, &**o)));
    if !keys.is_empty() {
        enqueue(keys, change.listed);
    }
}

/// Owned kinds: a change brings back the owner, and whoever read it.
struct SubscribeOwned<'a, O: Operator> {
    shared: &'a Arc<Shared>,
    enqueue: &'a Enqueue,
    filters: &'a crate::watches::Filters,
    operator: PhantomData<O>,
}

impl<O: Operator> Visitor for SubscribeOwned<'_, O> {
    fn kind<T: Object>(&mut self, _edits: bool) {
        let (shared, enqueue) = (self.shared.clone(), self.enqueue.clone());
        let filter = self.filters.of::<T>();
        self.shared.handles.get::<T>().subscribe(move |change: &Change<T>| {
            if let (None, Some(key)) = (&change.new, change.key()) {
                shared.sent.forget(What::Object(TypeId::of::<T>()), &key);
            }
            let mut owners: Vec<Key> = change.each().filter_map(|o| owner::<O, T>(o)).collect();
            owners.dedup();
            if !owners.is_empty() && filter.as_ref().is_none_or(|f| f(change)) {
                enqueue(owners, change.listed);
            }
            to_dependents(&KindId::of::<T>(), &shared, &enqueue, change);
        });
    }
}

struct SubscribeRead<'a> {
    shared: &'a Arc<Shared>,
    enqueue: &'a Enqueue,
}

impl Visitor for SubscribeRead<'_> {
    fn kind<T: Object>(&mut self, _edits: bool) {
        let (shared, enqueue) = (self.shared.clone(), self.enqueue.clone());
        self.shared.handles.get::<T>().subscribe(move |change: &Change<T>| {
            to_dependents(&KindId::of::<T>(), &shared, &enqueue, change)
        });
    }
}

/// The key of the operator's resource that controls `object`.
fn owner<O: Operator, T: Object>(object: &T) -> Option<Key> {
    let reference = object.meta().owner_references.iter().flatten().find(|r| r.controller == Some(true))?;
    let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
    // Another version of the same kind is the same object.
    if reference.kind != O::Resource::kind(&()) || group != O::Resource::group(&()) {
        return None;
    }
    let namespace = if O::Resource::is_namespaced() { object.meta().namespace.as_deref() } else { None };
    Some(Key::new(namespace, &reference.name))
}
