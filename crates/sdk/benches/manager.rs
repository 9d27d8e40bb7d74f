//! From 10,000 objects that the operator has never seen to a ConfigMap for each, against a server in memory: what the
//! SDK itself costs. The server's part of it is small, and the same in each run.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/manager/server.rs"]
mod server;

use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use homeostat_sdk::{CancellationToken, Context, Manager, Next, Operator, Result};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use serde_json::json;
use server::Server;

const OBJECTS: u64 = 10_000;

struct Copy;

impl Operator for Copy {
    type Resource = ServiceAccount;
    type Owns = (ConfigMap,);
    type Reads = ();

    async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        let mut map = ConfigMap::default();
        map.metadata.name = account.metadata.name.clone();
        map.data = Some([("for".to_owned(), cx.name().to_owned())].into());
        cx.apply(map).await?;
        Ok(Next::done())
    }
}

fn world() -> Server {
    let server = Server::default();
    for i in 0..OBJECTS {
        server.put(&format!("/api/v1/namespaces/a/serviceaccounts/x{i:05}"), json!({}));
    }
    server
}

async fn converge(server: Server) {
    let manager = Manager::new(server.client()).with(Copy);
    let (health, stop) = (manager.health(), CancellationToken::new());
    let running = tokio::spawn(manager.run(stop.clone()));
    // Each is reconciled once for itself, and once more for what was made for it.
    while !health.idle() || health.metrics()[0].done < OBJECTS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}

fn manager(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut group = c.benchmark_group("manager");
    group.sample_size(10).throughput(Throughput::Elements(OBJECTS));
    group.bench_function("10,000 objects to steady state", |b| {
        b.iter_batched(world, |server| runtime.block_on(converge(server)), BatchSize::PerIteration);
    });
    group.finish();
}

criterion_group!(benches, manager);
criterion_main!(benches);
