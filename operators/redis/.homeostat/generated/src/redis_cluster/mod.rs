//! What a `RedisCluster` stands for, and how the world is made to match it.

pub mod v1;

use homeostat::{Context, Next, Operator, Result, conditions};

use v1::RedisCluster;

/// Makes the world match each `RedisCluster`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedisClusterOperator;

impl Operator for RedisClusterOperator {
    type Resource = RedisCluster;
    /// What it makes: watched, owner-referenced, garbage-collected, permitted. Such as `(Service, StatefulSet)`.
    type Owns = ();
    /// What it only reads: watched, and permitted to read. Such as `(Secret,)`.
    type Reads = ();

    fn name() -> &'static str {
        "redisclusters.cache.example.com"
    }

    async fn reconcile(&self, object: &RedisCluster, cx: &Context<Self>) -> Result<Next> {
        // Apply here what the object stands for: `cx.apply(service(object)).await?`.

        let mut status = object.status.clone().unwrap_or_default();
        status.observed_generation = object.metadata.generation;
        let ready = conditions::condition(object, "Ready", true, "Reconciled", "");
        conditions::set(&mut status.conditions, ready, cx.clock().now());
        cx.status(status).await?;
        Ok(Next::done())
    }
}
