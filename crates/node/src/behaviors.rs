//! Keeps the Behaviors that hold: defines the resource, watches it, and tells pods and nodes when one changes.
//!
//! Where the resource can't be defined (a cluster that permits it not) the defaults hold until somebody else does.

use std::sync::Arc;

use homeostat_sdk::{Event, Result, TaskContext};
use kube::Resource;
use tracing::warn;

use crate::behavior::{Behavior, Choice, choice::Delays, crd};
use crate::usage::{Metrics, Source};
use crate::world::World;

/// Runs until the manager stops.
pub(crate) async fn keep(world: Arc<World>, delays: Delays, metrics: Metrics, cx: TaskContext) -> Result<()> {
    metrics.begin(Source { world: world.clone(), pods: cx.cache(), clock: cx.clock().clone() });
    let seed = cx.entropy().below(u64::MAX);
    if let Err(error) = cx.writer().apply(&crd()).await {
        warn!("Behaviors can't be defined; simulated nodes behave by default: {error}");
    }
    let cache = cx.cache::<Behavior>();
    let changed = Arc::new(tokio::sync::Notify::new());
    let notify = changed.clone();
    cache.subscribe(move |_| notify.notify_one());
    let recorder = cx.recorder();
    loop {
        let choice = Choice::new(seed, delays, cache.list());
        let problems = choice.problems().to_vec();
        world.choose(choice);
        for (behavior, why) in problems {
            let event = Event::warning("InvalidBehavior", why).action("Simulating");
            recorder.record(behavior.object_ref(&()), event).await;
        }
        tokio::select! {
            biased;
            () = cx.shutdown().cancelled() => return Ok(()),
            () = changed.notified() => {}
        }
    }
}
