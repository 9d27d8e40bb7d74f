//! An operator that keeps Redis running as `RedisCluster` objects say.
//!
//! For each `RedisCluster` it keeps a headless Service and a StatefulSet of the same name, and reports how many
//! replicas are ready. It makes no Redis Cluster topology and moves no data: replicas are independent servers.
//! Invariant: everything it makes carries an owner reference, so deleting a `RedisCluster` leaves nothing behind.

mod children;
mod types;

use homeostat::{Context, Error, Event, Manager, Next, Operator, Result, RunError};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::Client;

pub use types::{RedisCluster, RedisClusterSpec, RedisClusterStatus};

/// The operator's name, under which it owns fields and reports events.
pub const NAME: &str = "redis-operator";

/// Keeps Redis running as `RedisCluster` objects say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redis;

impl Operator for Redis {
    type Resource = RedisCluster;
    type Owns = (StatefulSet, Service);
    type Reads = ();

    fn name() -> &'static str {
        NAME
    }

    async fn reconcile(&self, redis: &RedisCluster, cx: &Context<Self>) -> Result<Next> {
        let is_new = cx.owned::<StatefulSet, _>().is_empty();
        let set = match apply(redis, cx).await {
            Ok(set) => set,
            Err(error) => return Err(rejected(error, cx).await),
        };
        if is_new {
            let note = format!("Created StatefulSet {} with {} replicas", cx.name(), redis.spec.replicas);
            cx.event(Event::normal("Created", note).action("Apply")).await;
        }
        let ready = set.status.and_then(|s| s.ready_replicas).unwrap_or(0);
        cx.status(RedisClusterStatus { ready_replicas: Some(ready) }).await?;
        // The StatefulSet is owned, hence watched: its next change brings us back.
        Ok(Next::done())
    }
}

async fn apply(redis: &RedisCluster, cx: &Context<Redis>) -> Result<StatefulSet> {
    cx.apply(children::service(redis)).await?;
    cx.apply(children::stateful_set(redis)).await
}

/// What the API server refuses as invalid (a name with dots, say, which no Service may have) stays refused until
/// somebody changes the `RedisCluster`: tell them, and don't try again.
async fn rejected(error: Error, cx: &Context<Redis>) -> Error {
    if error.status().is_none_or(|s| s.code != 422) {
        return error;
    }
    cx.event(Event::warning("Rejected", error.to_string()).action("Apply")).await;
    error.terminal()
}

/// Runs the operator until `shutdown` resolves, then finishes what it is doing.
pub async fn run(client: Client, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    Manager::new(client).with(Redis).run_until(shutdown).await
}
