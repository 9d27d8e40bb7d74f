//! The queue's hot path: a key added, taken and finished. The aim is over a million of each per second.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures::FutureExt;
use homeostat_sdk::Key;
use homeostat_sdk::queue::{Outcome, Priority, Queue};

const KEYS: usize = 10_000;

fn keys() -> Vec<Key> {
    (0..KEYS).map(|i| Key::namespaced("default", format!("object-{i:05}"))).collect()
}

fn queue(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue");
    // Three operations per key.
    group.throughput(Throughput::Elements(3 * KEYS as u64));
    group.bench_function("add, take and finish", |b| {
        let keys = keys();
        b.iter_batched(
            Queue::<Key>::default,
            |queue| {
                for key in &keys {
                    queue.add(key.clone(), Priority::Normal);
                }
                while let Some(Some(key)) = queue.next().now_or_never() {
                    queue.finish(&key, Outcome::Done);
                }
                queue
            },
            BatchSize::LargeInput,
        );
    });
    group.throughput(Throughput::Elements(KEYS as u64));
    group.bench_function("add what waits already", |b| {
        let keys = keys();
        let queue = Queue::<Key>::default();
        b.iter(|| {
            for key in &keys {
                queue.add(key.clone(), Priority::Normal);
            }
        });
    });
    group.finish();
}

criterion_group!(benches, queue);
criterion_main!(benches);
