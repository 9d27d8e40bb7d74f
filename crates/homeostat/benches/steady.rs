//! 10,000 RedisClusters to steady state, and what a manager costs that has nothing to do.
//!
//! `cargo bench -p homeostat --features testing --bench steady` starts an API server without controllers and nodes in
//! this process, fills it, starts the Redis operator, and prints how long it takes until every cluster has its
//! StatefulSet, its Service and its status, and nothing is left to do. Aims: 10 s on two cores; 0.5 % of a core at rest.

use std::time::Duration;

use homeostat::testing::{Cluster, ClusterOptions};
use homeostat::{CancellationToken, Manager};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, PostParams};
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::{Api, CustomResourceExt};
use redis_operator::{RedisCluster, RedisClusterOperator};
use serde_json::json;
use tokio::time::Instant;

const OBJECTS: usize = 10_000;

fn redis(i: usize) -> RedisCluster {
    let object = json!({"apiVersion": "cache.example.com/v1", "kind": "RedisCluster",
        "metadata": {"name": format!("redis-{i:05}"), "namespace": "default", "labels": {"team": "shop"}},
        "spec": {"replicas": 3, "version": "7.2"}});
    serde_json::from_value(object).expect("a RedisCluster")
}

/// CPU time of this process so far, in seconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(") ").next().unwrap_or_default().split(' ').filter_map(|f| f.parse().ok()).collect();
    // utime and stime are the 14th and 15th field; three came before, one of which is no number.
    let ticks = fields.get(10).copied().unwrap_or(0.0) + fields.get(11).copied().unwrap_or(0.0);
    ticks / 100.0
}

/// Resident memory in MiB.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split(' ').nth(1).and_then(|p| p.parse().ok()).unwrap_or(0.0);
    pages * 4096.0 / 1_048_576.0
}

async fn count<K>(client: &kube::Client) -> u64
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let page = api.list_metadata(&ListParams::default().limit(1)).await.expect("a list");
    let more = page.metadata.remaining_item_count.unwrap_or(0);
    page.items.len() as u64 + u64::try_from(more).unwrap_or(0)
}

#[tokio::main]
async fn main() {
    let options = ClusterOptions { nodes: 0, controllers: Default::default(), ..ClusterOptions::default() };
    let cluster = Cluster::with(options).await.expect("a control plane");
    let client = cluster.client();
    let definitions: Api<_> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &RedisCluster::crd()).await.expect("a definition");
    let served = await_condition(definitions, RedisCluster::crd_name(), is_crd_established());
    served.await.expect("an established definition");
    let api: Api<RedisCluster> = Api::namespaced(client.clone(), "default");
    let began = Instant::now();
    for i in 0..OBJECTS {
        api.create(&PostParams::default(), &redis(i)).await.expect("an object");
    }
    println!("{OBJECTS} created in {:.2?}, {:.0} MiB resident", began.elapsed(), resident());

    let (began, cpu_before) = (Instant::now(), cpu());
    let manager = Manager::new(client.clone()).with(RedisClusterOperator);
    let (health, stop) = (manager.health(), CancellationToken::new());
    let running = tokio::spawn(manager.run(stop.clone()));
    let done = || health.metrics().iter().map(|m| m.done + m.requeued_after).sum::<u64>();
    while !health.ready() || !health.idle() || done() < OBJECTS as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = began.elapsed();
    let (sets, services) = (count::<StatefulSet>(&client).await, count::<Service>(&client).await);
    assert!(sets == OBJECTS as u64 && services >= OBJECTS as u64, "{sets} StatefulSets, {services} Services");
    let metrics = &health.metrics()[0];
    println!(
        "{OBJECTS} RedisClusters to steady state in {took:.2?} ({:.1} s of CPU, server included): {} reconciles, {} \
         errors, {:.0} MiB resident",
        cpu() - cpu_before,
        done(),
        metrics.errors,
        resident(),
    );

    let rest = Duration::from_secs(10);
    let before = cpu();
    tokio::time::sleep(rest).await;
    println!("at rest: {:.2} % of a core, server included", (cpu() - before) / rest.as_secs_f64() * 100.0);
    stop.cancel();
    running.await.expect("no panic").expect("an orderly end");
}
