//! Runs one operator: from changes to keys, from keys to reconciles, from results to the next time.
//!
//! It waits until all caches of the operator have their first list, then a fixed number of workers take keys from the
//! queue. A panic or an error concerns its key only. On stop no new key is taken, and what runs may finish.

use std::any::TypeId;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kube::Resource;
use kube::api::Patch;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, debug_span, error, info, warn};

use crate::cache::Change;
use crate::context::{Context, Shared, What};
use crate::dependencies::Dependencies;
use crate::error::{Error, Result};
use crate::event::Recorder;
use crate::key::Key;
use crate::kinds::{Kinds, Visitor};
use crate::manager::Env;
use crate::metrics::{Counters, count};
use crate::object::Object;
use crate::operator::{Next, Operator, Settings};
use crate::queue::{Outcome, Priority, Queue};
use crate::watches::{Enqueue, Open, View, Watches};
use crate::write::Writer;

/// What the manager sees of a running operator.
pub(crate) struct Status {
    pub(crate) name: &'static str,
    pub(crate) queue: Arc<Queue<Key>>,
    pub(crate) counters: Counters,
    pub(crate) ready: AtomicBool,
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
            queue: Arc::new(Queue::new(settings.backoff)),
            counters: Counters::default(),
            ready: AtomicBool::new(false),
        };
        Self { operator, settings, status: Arc::new(status) }
    }

    /// Until `stop`, and then until running reconciles are done. The caller limits how long that may take.
    pub(crate) async fn run(self, env: Env, stop: CancellationToken) {
        let name = O::name();
        let mut watches = Watches::new();
        self.operator.watches(&mut watches);
        let handles = Arc::new(Open::new::<O>(&env.caches, &watches.selections).handles);
        let writer = Writer::new(env.client.clone(), env.caches.clone(), name);
        let shared = Arc::new(Shared {
            recorder: Recorder::new(writer.clone(), env.clock.clone(), env.instance_of(name)),
            writer,
            clock: env.clock.clone(),
            entropy: env.entropy.clone(),
            handles: handles.clone(),
            dependencies: Dependencies::default(),
            sent: Default::default(),
        });
        self.subscribe(watches, &shared);

        debug!(operator = name, "waiting for caches");
        tokio::select! { biased;
            () = stop.cancelled() => return,
            () = handles.synced() => {}
        }
        self.status.ready.store(true, Ordering::Release);
        info!(operator = name, concurrency = self.settings.concurrency, "started");

        let this = Arc::new(self);
        let mut workers = JoinSet::new();
        for _ in 0..this.settings.concurrency.max(1) {
            workers.spawn(this.clone().work(shared.clone()));
        }
        stop.cancelled().await;
        this.status.queue.close();
        while workers.join_next().await.is_some() {}
        info!(operator = name, "stopped");
    }

    fn subscribe(&self, watches: Watches<O>, shared: &Arc<Shared>) {
        let queue = self.status.queue.clone();
        let enqueue: Enqueue = Arc::new(move |keys, listed| {
            let priority = if listed { Priority::Low } else { Priority::Normal };
            for key in keys {
                queue.add(key, priority);
            }
        });

        let (to, of, filter) = (enqueue.clone(), shared.clone(), watches.filter);
        shared.handles.get::<O::Resource>().subscribe(move |change: &Change<O::Resource>| {
            let Some(key) = change.key() else { return };
            if change.new.is_none() {
                of.sent.forget(What::Status, &key);
            }
            if filter.as_ref().is_none_or(|f| f(change)) {
                to(vec![key], change.listed);
            }
            to_dependents(&of, &to, change);
        });

        let mut owned = SubscribeOwned::<O> { shared, enqueue: &enqueue, operator: PhantomData };
        O::Owns::visit(&mut owned);
        O::Reads::visit(&mut SubscribeRead { shared, enqueue: &enqueue });

        let view = View { handles: shared.handles.clone(), operator: PhantomData };
        for hook in watches.hooks {
            hook(&view, &enqueue);
        }
    }

    async fn work(self: Arc<Self>, shared: Arc<Shared>) {
        let queue = &self.status.queue;
        let counters = &self.status.counters;
        while let Some(key) = queue.next().await {
            counters.active.fetch_add(1, Ordering::Relaxed);
            let span = debug_span!("reconcile", operator = O::name(), %key);
            let result = self.guarded(&shared, &key).instrument(span).await;
            counters.active.fetch_sub(1, Ordering::Relaxed);
            let outcome = self.outcome(&key, &result);
            let delay = queue.finish(&key, outcome);
            if let Err(error) = result {
                let gone = shared.handles.get::<O::Resource>().get(&key).is_none();
                report(O::name(), &key, &error, delay, gone);
            }
        }
    }

    fn outcome(&self, key: &Key, result: &Result<Next>) -> Outcome {
        let counters = &self.status.counters;
        match result {
            Ok(Next { after: None }) => {
                count(&counters.done);
                debug!(operator = O::name(), %key, "reconciled");
                Outcome::Done
            }
            Ok(Next { after: Some(delay) }) => {
                count(&counters.requeued_after);
                debug!(operator = O::name(), %key, ?delay, "reconciled");
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

    /// A reconcile that can't take down its worker, nor keep it for ever where a timeout is set.
    async fn guarded(&self, shared: &Arc<Shared>, key: &Key) -> Result<Next> {
        let counters = &self.status.counters;
        let reconcile = AssertUnwindSafe(self.reconcile(shared, key)).catch_unwind();
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
            let text = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".into());
            error!(operator = O::name(), %key, "reconcile panicked: {text}");
            Err(Error::msg(format!("reconcile panicked: {text}")))
        })
    }

    async fn reconcile(&self, shared: &Arc<Shared>, key: &Key) -> Result<Next> {
        let object = shared.handles.get::<O::Resource>().get(key);
        let cx = Context::<O>::new(shared.clone(), key.clone(), object.clone());
        let result = match object {
            None => self.operator.absent(key, &cx).await,
            Some(object) => self.present(object, &cx).await,
        };
        // Also after an error: what it read may be what was wrong.
        cx.settle();
        result
    }

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

/// What every controller meets, and what the next reconcile mends, is no news to anyone: a cache that was behind, an
/// object or a namespace that went away meanwhile.
fn report(operator: &str, key: &Key, error: &Error, delay: Option<Duration>, gone: bool) {
    let ordinary = error.is_conflict()
        || error.is_already_exists()
        || error.is_namespace_terminating()
        || (gone && error.is_not_found());
    if error.is_terminal() {
        error!(operator, %key, "reconcile failed for good: {error}");
    } else if ordinary {
        debug!(operator, %key, ?delay, "reconcile came too late: {error}");
    } else {
        warn!(operator, %key, ?delay, "reconcile failed: {error}");
    }
}

fn to_dependents<T: Object>(shared: &Shared, enqueue: &Enqueue, change: &Change<T>) {
    let keys = shared.dependencies.of(change);
    if !keys.is_empty() {
        enqueue(keys, change.listed);
    }
}

/// Owned kinds: a change brings back the owner, and whoever read it.
struct SubscribeOwned<'a, O> {
    shared: &'a Arc<Shared>,
    enqueue: &'a Enqueue,
    operator: PhantomData<O>,
}

impl<O: Operator> Visitor for SubscribeOwned<'_, O> {
    fn kind<T: Object>(&mut self, _edits: bool) {
        let (shared, enqueue) = (self.shared.clone(), self.enqueue.clone());
        self.shared.handles.get::<T>().subscribe(move |change: &Change<T>| {
            if let (None, Some(key)) = (&change.new, change.key()) {
                shared.sent.forget(What::Object(TypeId::of::<T>()), &key);
            }
            let mut owners: Vec<Key> = change.each().filter_map(|o| owner::<O, T>(o)).collect();
            owners.dedup();
            if !owners.is_empty() {
                enqueue(owners, change.listed);
            }
            to_dependents(&shared, &enqueue, change);
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
        self.shared
            .handles
            .get::<T>()
            .subscribe(move |change: &Change<T>| to_dependents(&shared, &enqueue, change));
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
