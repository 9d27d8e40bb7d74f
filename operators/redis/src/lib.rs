//! What `redis-operator` consists of: a module for each kind, and the program that runs them.

pub mod redis_cluster;

use homeostat::{Program, RunError};
use kube::Client;

pub use redis_cluster::RedisClusterOperator;
pub use redis_cluster::v1::{RedisCluster, RedisClusterSpec, RedisClusterStatus};

/// The operator's name, under which it owns fields and reports events.
pub const NAME: &str = "redis-operator";

/// The program. Its manifests follow from this, too: see `homeostat manifests`.
pub fn program() -> Program {
    Program::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .kind::<redis_cluster::v1::RedisCluster>()
        .operator(redis_cluster::RedisClusterOperator)
}

/// Runs the operator until `shutdown` resolves, then finishes what it is doing.
pub async fn run(client: Client, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
    program().manager(client).run_until(shutdown).await
}
