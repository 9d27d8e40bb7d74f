//! `RedisCluster` against a control plane inside the test: an API server, garbage collection, namespaces, nodes. Its
//! time is virtual, so nothing here takes long.

use homeostat::testing::World;

use redis_operator::redis_cluster::RedisClusterOperator;
use redis_operator::redis_cluster::v1::{RedisCluster, RedisClusterSpec};

#[tokio::test(start_paused = true)]
async fn it_becomes_ready() {
    let world = World::start().await;
    let program = redis_operator::program();
    for definition in program.parts().definitions().expect("definitions") {
        world.define_as(definition).await;
    }
    // With exactly the rights that follow from its types.
    world.run(RedisClusterOperator).await;

    let object = RedisCluster::new("sample", RedisClusterSpec::default());
    world.create(&object).await;
    // Panics where the operator goes on writing for ever.
    world.settle().await;
    world
        .condition::<RedisCluster>("sample", "Ready", true)
        .await;
}
