//! What `redis-operator` consists of: a module for each kind, and the program that runs them.

pub mod redis_cluster;

use homeostat::Program;

/// The program. Its manifests follow from this, too: see `homeostat manifests`.
pub fn program() -> Program {
    Program::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .kind::<redis_cluster::v1::RedisCluster>()
        .operator(redis_cluster::RedisClusterOperator)
}
