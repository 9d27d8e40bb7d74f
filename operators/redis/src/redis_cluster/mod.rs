//! What a `RedisCluster` stands for, and how the world is made to match it.
//!
//! For each it keeps a headless Service and a StatefulSet of the same name, and reports how many replicas are ready. It
//! makes no Redis Cluster topology and moves no data: replicas are independent servers.
//! Invariant: everything it makes carries an owner reference, so deleting a `RedisCluster` leaves nothing behind.

mod children;
pub mod v1;

use homeostat::{Context, Error, Event, Next, Operator, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;

use v1::{RedisCluster, RedisClusterStatus};

/// Keeps Redis running as `RedisCluster` objects say.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedisClusterOperator;

impl Operator for RedisClusterOperator {
    type Resource = RedisCluster;
    type Owns = (StatefulSet, Service);
    type Reads = ();

    fn name() -> &'static str {
        crate::NAME
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

async fn apply(redis: &RedisCluster, cx: &Context<RedisClusterOperator>) -> Result<StatefulSet> {
    cx.apply(children::service(redis)).await?;
    cx.apply(children::stateful_set(redis)).await
}

/// What the API server refuses as invalid (a name with dots, say, which no Service may have) stays refused until
/// somebody changes the `RedisCluster`: tell them, and don't try again.
async fn rejected(error: Error, cx: &Context<RedisClusterOperator>) -> Error {
    if error.status().is_none_or(|s| s.code != 422) {
        return error;
    }
    cx.event(Event::warning("Rejected", error.to_string()).action("Apply")).await;
    error.terminal()
}
