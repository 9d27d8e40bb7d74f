//! Tasks of a manager: what doesn't reconcile one resource, such as a scheduler, heartbeats, a sweep.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use homeostat_model::{Clock, Entropy};
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cache::{Cache, Caches, Selection};
use crate::error::Result;
use crate::event::Recorder;
use crate::key::Key;
use crate::manager::Env;
use crate::object::Watched;
use crate::write::Writer;

/// Delays of a task that failed.
const TASK_BACKOFF: crate::queue::Backoff = crate::queue::Backoff {
    base: Duration::from_millis(100),
    max: Duration::from_secs(30),
    changed: Duration::from_secs(30),
};

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

pub(crate) type Task = Box<dyn Fn(TaskContext) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// Until it is done or `stop`; again after each failure.
pub(crate) async fn run_task(name: String, task: Task, env: Env, stop: CancellationToken) {
    let writer = Writer::new(env.client.clone(), env.caches.clone(), name.as_str());
    let (key, mut gate) = (Key::cluster(name.as_str()), env.gate.clone());
    let cx = TaskContext { env, writer, shutdown: stop.clone() };
    let mut failures = 0;
    loop {
        tokio::select! { biased;
            () = stop.cancelled() => return,
            () = gate.gained(&key) => {}
        }
        let result = tokio::select! { biased;
            () = gate.clone().lost(&key) => {
                info!(task = name, "another process runs it from now on");
                continue;
            }
            result = AssertUnwindSafe(task(cx.clone())).catch_unwind() => result,
        };
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
