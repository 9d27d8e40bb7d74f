//! The hot paths of the store, with records of 1 KB: what a request pays here beside its own work.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures::FutureExt;
use homeostat_store::{Draft, Event, Expect, Key, Memory, Op, Store, Write};
use tokio::sync::Notify;

const SIZE: usize = 1024;

fn name(at: usize) -> String {
    format!("namespace-{}/object-{at:06}", at % 100)
}

fn write(key: Key) -> Write<()> {
    Write { key, expect: Expect::Any, op: Op::Put(Draft::new(vec![b'x'; SIZE], SIZE / 4), ()) }
}

fn commit(store: &Memory<()>, write: Write<()>) -> Arc<Event<()>> {
    store.commit(write).now_or_never().expect("never waits").expect("no condition")
}

fn filled(records: usize) -> (Memory<()>, Vec<Key>) {
    let store = Memory::new();
    let keys: Vec<_> = (0..records).map(|at| Key::new("pods", name(at))).collect();
    for key in &keys {
        commit(&store, write(key.clone()));
    }
    (store, keys)
}

/// Visits every key once in an order without locality.
fn scattered(keys: &[Key]) -> impl FnMut() -> Key {
    let mut at = 0;
    move || {
        at = (at + 7919) % keys.len();
        keys[at].clone()
    }
}

fn commits(c: &mut Criterion) {
    let mut group = c.benchmark_group("commit");
    group.throughput(Throughput::Elements(1));
    for records in [10_000, 100_000] {
        let (store, keys) = filled(records);
        let mut key = scattered(&keys);
        group.bench_function(format!("update of {records}"), |b| {
            b.iter_batched(|| write(key()), |write| commit(&store, write), BatchSize::SmallInput);
        });
        // A reader holds each state for a while, so that every commit copies its path.
        let mut held = store.snapshot();
        group.bench_function(format!("update of {records}, snapshot before each"), |b| {
            b.iter_batched(
                || write(key()),
                |write| {
                    held = store.snapshot();
                    commit(&store, write)
                },
                BatchSize::SmallInput,
            );
        });
        let mut at = records;
        group.bench_function(format!("create and delete in {records}"), |b| {
            b.iter_batched(
                || {
                    at += 1;
                    let key = Key::new("pods", name(at % 1_000_000));
                    let last = Op::Delete(Draft::new(vec![b'x'; SIZE], SIZE / 4));
                    (write(key.clone()), Write { key, expect: Expect::Any, op: last })
                },
                |(create, delete)| (commit(&store, create), commit(&store, delete)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn reads(c: &mut Criterion) {
    let (store, keys) = filled(100_000);
    let snapshot = store.snapshot();
    let mut key = scattered(&keys);
    c.bench_function("get/store, 100000", |b| {
        b.iter_batched(&mut key, |key| store.get(&key.collection, &key.name), BatchSize::SmallInput);
    });
    c.bench_function("get/snapshot, 100000", |b| {
        b.iter_batched(
            &mut key,
            |key| snapshot.get(&key.collection, &key.name).map(|record| record.revision),
            BatchSize::SmallInput,
        );
    });
    let mut group = c.benchmark_group("list");
    group.throughput(Throughput::Elements(100_000));
    group.sample_size(20);
    group.bench_function("range of 100000", |b| {
        b.iter(|| snapshot.range("pods", "", None).map(|record| record.bytes.len()).sum::<usize>());
    });
    group.bench_function("listing of 100000", |b| {
        b.iter(|| snapshot.listing("pods", "", None).map(|record| record.bytes.len()).sum::<usize>());
    });
    group.throughput(Throughput::Elements(1000));
    group.bench_function("range of one namespace of 1000", |b| {
        b.iter(|| {
            snapshot.range("pods", "namespace-42/", None).map(|record| record.bytes.len()).sum::<usize>()
        });
    });
    group.finish();
    c.bench_function("snapshot", |b| b.iter(|| store.snapshot()));
    c.bench_function("fork", |b| b.iter(|| store.fork()));
}

fn history(c: &mut Criterion) {
    let (store, keys) = filled(100_000);
    let mut key = scattered(&keys);
    for _ in 0..40_000 {
        commit(&store, write(key()));
    }
    let current = store.revision();
    // More revisions than are remembered, so that each is made anew.
    let mut back = 0;
    let mut group = c.benchmark_group("snapshot_at");
    group.sample_size(50);
    group.bench_function("anew, up to 30000 back", |b| {
        b.iter(|| {
            back = (back + 1237) % 30_000;
            store.snapshot_at(current - back)
        });
    });
    group.bench_function("again", |b| b.iter(|| store.snapshot_at(current - 20_000)));
    group.finish();
}

/// Tasks that follow a collection and tell when all of them have seen a revision.
struct Audience {
    store: Memory<()>,
    target: AtomicU64,
    arrived: AtomicUsize,
    done: Notify,
}

fn fan_out(c: &mut Criterion) {
    const CURSORS: usize = 1000;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let audience = Arc::new(Audience {
        store: Memory::new(),
        target: AtomicU64::new(u64::MAX),
        arrived: AtomicUsize::new(0),
        done: Notify::new(),
    });
    for _ in 0..CURSORS {
        let audience = Arc::clone(&audience);
        runtime.spawn(async move {
            let mut cursor = audience.store.watch("pods", 1).expect("the start");
            loop {
                for event in cursor.next().await.expect("kept") {
                    black_box(event.bytes());
                    if event.revision == audience.target.load(Ordering::Acquire)
                        && audience.arrived.fetch_add(1, Ordering::AcqRel) + 1 == CURSORS
                    {
                        audience.done.notify_one();
                    }
                }
            }
        });
    }
    let keys: Vec<_> = (0..1000).map(|at| Key::new("pods", name(at))).collect();
    let mut key = scattered(&keys);
    let mut group = c.benchmark_group("fan-out to 1000 cursors");
    group.sample_size(20);
    for events in [1, 1000] {
        group.throughput(Throughput::Elements((CURSORS * events) as u64));
        group.bench_function(format!("{events} events at a time"), |b| {
            b.iter(|| {
                audience.arrived.store(0, Ordering::Release);
                audience.target.store(audience.store.revision() + events as u64, Ordering::Release);
                for _ in 0..events {
                    commit(&audience.store, write(key()));
                }
                runtime.block_on(audience.done.notified());
            });
        });
    }
    group.finish();
}

criterion_group!(benches, commits, reads, history, fan_out);
criterion_main!(benches);
