//! The queue by risk: a key lost, a key with two workers, a backoff out of bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::FutureExt;
use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn queue() -> Queue<u32> {
    Queue::default()
}

/// The key that is there now, if any.
fn now(q: &Queue<u32>) -> Option<u32> {
    q.next().now_or_never().flatten()
}

#[test]
fn backoff_doubles_from_5_ms_to_1000_s() {
    let b = Backoff::default();
    for (failures, expect) in [
        (1, 5 * MS),
        (2, 10 * MS),
        (3, 20 * MS),
        (10, 2560 * MS),
        (18, 655_360 * MS),
        (19, 1_000_000 * MS),
        (20, 1_000_000 * MS),
        (u32::MAX, 1_000_000 * MS),
    ] {
        assert_eq!(b.delay(failures), expect, "after {failures}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_once_and_comes_back_when_added_while_running() {
    let q = queue();
    q.add(1, Priority::Normal);
    q.add(1, Priority::Normal);
    assert_eq!(q.next().await, Some(1));
    assert_eq!(now(&q), None);
    q.add(1, Priority::Normal);
    assert_eq!(now(&q), None, "with a worker already");
    q.finish(&1, Outcome::Done);
    assert_eq!(now(&q), Some(1));
    q.finish(&1, Outcome::Done);
    assert_eq!(now(&q), None);
}

#[tokio::test(start_paused = true)]
async fn changes_are_gathered_after_a_reconcile() {
    let q = queue().gathering(20 * MS);
    let start = Instant::now();
    let mut at = Vec::new();
    let mut take = async || {
        assert_eq!(q.next().await, Some(1));
        at.push(start.elapsed());
    };
    q.add(1, Priority::Normal);
    take().await;
    // While it is with a worker, and after that: together one.
    q.add(1, Priority::Low);
    assert_eq!(q.finish(&1, Outcome::Done), Some(20 * MS));
    q.add(1, Priority::Normal);
    q.add(1, Priority::Normal);
    assert_eq!(q.depth(), Depth { gathered: 1, ..Depth::default() });
    take().await;
    // A failure has its backoff, and nothing else.
    q.finish(&1, Outcome::Failed);
    take().await;
    q.finish(&1, Outcome::After(MS));
    take().await;
    q.finish(&1, Outcome::Done);
    assert_eq!(q.depth(), Depth::default());
    q.add_after(1, 5 * MS);
    take().await;
    q.finish(&1, Outcome::Done);
    q.add_after(1, 50 * MS);
    take().await;
    assert_eq!(at, [0, 20, 25, 45, 65, 115].map(Duration::from_millis));
    // What nobody adds is forgotten, and comes at once when it is added later.
    q.finish(&1, Outcome::Done);
    tokio::time::sleep(20 * MS).await;
    assert_eq!(now(&q), None);
    assert!(q.lock().entries.is_empty());
    q.add(1, Priority::Normal);
    assert_eq!(now(&q), Some(1));
}

#[tokio::test(start_paused = true)]
async fn what_keeps_coming_is_gathered_longer_but_not_for_ever() {
    let q = Arc::new(queue().gathering(20 * MS));
    let start = Instant::now();
    let mut at = Vec::new();
    q.add(1, Priority::Normal);
    let adding = tokio::spawn({
        let q = q.clone();
        async move {
            // Until 135 ms have passed.
            for _ in 0..9 {
                tokio::time::sleep(15 * MS).await;
                q.add(1, Priority::Normal);
            }
        }
    });
    for _ in 0..3 {
        assert_eq!(q.next().await, Some(1));
        at.push(start.elapsed());
        q.finish(&1, Outcome::Done);
    }
    // At once; when it has waited longest; when nothing came for as long as it rests.
    assert_eq!(at, [0, 100, 155].map(Duration::from_millis));
    adding.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn normal_goes_before_low_and_lifts_it() {
    let q = queue();
    q.add(1, Priority::Low);
    q.add(2, Priority::Low);
    q.add(3, Priority::Normal);
    q.add(2, Priority::Normal);
    q.add(2, Priority::Low);
    assert_eq!([now(&q), now(&q), now(&q), now(&q)], [Some(3), Some(2), Some(1), None]);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_success_forgets_them() {
    let q = queue();
    let start = Instant::now();
    q.add(1, Priority::Normal);
    let mut at = Vec::new();
    for _ in 0..5 {
        assert_eq!(q.next().await, Some(1));
        at.push(start.elapsed());
        q.finish(&1, Outcome::Failed);
    }
    assert_eq!(at, [0, 5, 15, 35, 75].map(Duration::from_millis));
    assert_eq!(q.next().await, Some(1));
    assert_eq!(q.failures(&1), 5);
    q.finish(&1, Outcome::Done);
    assert_eq!(q.failures(&1), 0);
    q.add(1, Priority::Normal);
    q.next().await;
    assert_eq!(q.finish(&1, Outcome::Failed), Some(5 * MS));
}

#[tokio::test(start_paused = true)]
async fn a_change_brings_a_backed_off_key_forward() {
    let q = queue();
    q.add(1, Priority::Normal);
    for _ in 0..15 {
        q.next().await;
        q.finish(&1, Outcome::Failed);
    }
    let before = Instant::now();
    q.add(1, Priority::Normal);
    assert_eq!(q.next().await, Some(1));
    assert_eq!(before.elapsed(), Duration::ZERO);
    // But one that came during the failing reconcile waits, at most a second.
    q.add(1, Priority::Normal);
    assert_eq!(q.finish(&1, Outcome::Failed), Some(Duration::from_secs(1)));
}

#[tokio::test(start_paused = true)]
async fn the_earliest_time_counts() {
    let q = queue();
    let start = Instant::now();
    q.add_after(1, 50 * MS);
    q.add_after(1, 20 * MS);
    q.add_after(1, 80 * MS);
    assert_eq!(q.next().await, Some(1));
    assert_eq!(start.elapsed(), 20 * MS);
    q.add_after(1, 30 * MS);
    assert_eq!(q.finish(&1, Outcome::After(Duration::from_secs(9))), Some(30 * MS));
    assert_eq!(q.depth(), Depth { delayed: 1, ..Depth::default() });
}

#[tokio::test(start_paused = true)]
async fn an_earlier_time_wakes_who_waits_for_a_later() {
    let q = Arc::new(queue());
    let start = Instant::now();
    q.add_after(1, Duration::from_secs(60));
    let waiting = tokio::spawn({
        let q = q.clone();
        async move { q.next().await }
    });
    tokio::task::yield_now().await;
    q.add_after(2, 10 * MS);
    assert_eq!(waiting.await.unwrap(), Some(2));
    assert_eq!(start.elapsed(), 10 * MS);
}

#[tokio::test(start_paused = true)]
async fn close_ends_all_workers() {
    let q = Arc::new(queue());
    let workers: Vec<_> = (0..5)
        .map(|_| {
            let q = q.clone();
            tokio::spawn(async move { q.next().await })
        })
        .collect();
    tokio::task::yield_now().await;
    q.close();
    q.add(1, Priority::Normal);
    for worker in workers {
        assert_eq!(worker.await.unwrap(), None);
    }
    assert_eq!(q.next().await, None);
}

/// Real threads: however they meet, a key is with one worker, and its last change is seen.
#[test]
fn threads_never_share_a_key_nor_miss_a_change() {
    for gather in [Duration::ZERO, MS] {
        threads_share_nothing(gather);
    }
}

fn threads_share_nothing(gather: Duration) {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

    #[derive(Default)]
    struct Cell {
        taken: AtomicBool,
        changed: AtomicU32,
        seen: AtomicU32,
    }
    const KEYS: u32 = 8;
    const CHANGES: u32 = 20_000;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        let q = Arc::new(queue().gathering(gather));
        let cells: Arc<Vec<Cell>> = Arc::new((0..KEYS).map(|_| Cell::default()).collect());
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (q, cells) = (q.clone(), cells.clone());
                tokio::spawn(async move {
                    while let Some(key) = q.next().await {
                        let cell = &cells[key as usize];
                        assert!(!cell.taken.swap(true, SeqCst), "{key} has two workers");
                        let seen = cell.changed.load(SeqCst);
                        tokio::task::yield_now().await;
                        cell.seen.store(seen, SeqCst);
                        cell.taken.store(false, SeqCst);
                        let outcome = if seen % 7 == 0 { Outcome::After(MS) } else { Outcome::Done };
                        q.finish(&key, outcome);
                    }
                })
            })
            .collect();
        let changers: Vec<_> = (0..2)
            .map(|half| {
                let (q, cells) = (q.clone(), cells.clone());
                tokio::spawn(async move {
                    for i in 0..CHANGES {
                        let key = (i * 2 + half) % KEYS;
                        cells[key as usize].changed.fetch_add(1, SeqCst);
                        q.add(key, Priority::Normal);
                        if i % 64 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        for changer in changers {
            changer.await.unwrap();
        }
        let all_seen = async {
            while cells.iter().any(|c| c.seen.load(SeqCst) != c.changed.load(SeqCst)) {
                tokio::time::sleep(MS).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), all_seen).await.expect("every change is seen");
        q.close();
        for worker in workers {
            worker.await.unwrap();
        }
    });
}

/// What is done to a queue, with any of a few keys.
#[derive(Clone, Debug)]
enum Step {
    Add(u32, Priority),
    AddAfter(u32, u64),
    Take,
    Finish(usize, Outcome),
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..6u32;
    let outcome = prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::Failed),
        (0..50u64).prop_map(|ms| Outcome::After(Duration::from_millis(ms))),
    ];
    prop_oneof![
        3 => (key.clone(), prop_oneof![Just(Priority::Normal), Just(Priority::Low)]).prop_map(|(k, p)| Step::Add(k, p)),
        1 => (key, 0..100u64).prop_map(|(k, ms)| Step::AddAfter(k, ms)),
        4 => Just(Step::Take),
        4 => (any::<proptest::sample::Index>(), outcome).prop_map(|(i, o)| Step::Finish(i.index(8), o)),
        1 => (0..40u64).prop_map(Step::Sleep),
    ]
}

/// What must hold of each key, kept beside the queue.
#[derive(Default)]
struct Model {
    running: BTreeSet<u32>,
    /// Keys that owe a hand-out, by when at the latest.
    owed: BTreeMap<u32, Instant>,
    /// Keys added since a worker took them.
    dirty: BTreeMap<u32, Instant>,
    failures: BTreeMap<u32, u32>,
    /// Keys that rest, until then.
    rest: BTreeMap<u32, Instant>,
}

async fn check(steps: Vec<Step>, gather: Duration) {
    let q = queue().gathering(gather);
    // While more comes, it is gathered.
    let longer = gather * (LONGEST - 1);
    let mut model = Model::default();
    let earliest = |map: &mut BTreeMap<u32, Instant>, k: u32, at: Instant| {
        let entry = map.entry(k).or_insert(at);
        *entry = at.min(*entry);
    };
    for step in steps {
        let now_at = Instant::now();
        match step {
            Step::Add(k, p) => {
                q.add(k, p);
                let owed = if model.running.contains(&k) { &mut model.dirty } else { &mut model.owed };
                earliest(owed, k, now_at.max(model.rest.get(&k).copied().unwrap_or(now_at)));
            }
            Step::AddAfter(k, ms) => {
                q.add_after(k, Duration::from_millis(ms));
                let owed = if model.running.contains(&k) { &mut model.dirty } else { &mut model.owed };
                let at = now_at + Duration::from_millis(ms);
                earliest(owed, k, at.max(model.rest.get(&k).copied().unwrap_or(at)));
            }
            Step::Take => match now(&q) {
                Some(k) => {
                    assert!(model.running.insert(k), "{k} has two workers");
                    let due = model.owed.remove(&k).expect("handed out what nobody added");
                    assert!(due <= now_at, "{k} came too early");
                }
                None => {
                    let late: Vec<_> =
                        model.owed.iter().filter(|(_, due)| **due + longer <= now_at).collect();
                    assert!(late.is_empty(), "lost: {late:?}");
                }
            },
            Step::Finish(i, outcome) => {
                let Some(k) = model.running.iter().nth(i).copied() else { continue };
                model.running.remove(&k);
                q.finish(&k, outcome);
                let dirty = model.dirty.remove(&k);
                let failures = model.failures.entry(k).or_default();
                let due = match outcome {
                    Outcome::Failed => {
                        *failures += 1;
                        let full = Backoff::default().delay(*failures);
                        let changed = dirty.is_some_and(|at| at <= now_at);
                        Some(now_at + if changed { full.min(Duration::from_secs(1)) } else { full })
                    }
                    Outcome::After(d) => {
                        *failures = 0;
                        Some(dirty.map_or(now_at + d, |at| at.max(now_at).min(now_at + d)))
                    }
                    Outcome::Done => {
                        *failures = 0;
                        dirty.map(|at| at.max(now_at))
                    }
                };
                let rest = if outcome == Outcome::Failed { now_at } else { now_at + gather };
                model.rest.insert(k, rest);
                if let Some(due) = due {
                    model.owed.insert(k, due.max(rest));
                }
            }
            Step::Sleep(ms) => tokio::time::advance(Duration::from_millis(ms)).await,
        }
    }
    // Everything owed is handed out in the end, and nothing else.
    let finish: Vec<u32> = model.running.iter().copied().collect();
    for k in finish {
        q.finish(&k, Outcome::Done);
        if let Some(at) = model.dirty.remove(&k) {
            model.owed.insert(k, at.max(Instant::now()));
        }
    }
    while !model.owed.is_empty() {
        let k = q.next().await.expect("open");
        assert!(model.owed.remove(&k).is_some(), "{k} was not owed");
        q.finish(&k, Outcome::Done);
    }
    assert_eq!(q.depth(), Depth::default());
    tokio::time::advance(gather).await;
    assert_eq!(now(&q), None);
    assert!(q.lock().entries.is_empty() && q.lock().delayed.is_empty(), "what rests is forgotten");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_lost_doubled_or_early(
        steps in proptest::collection::vec(step(), 0..200),
        gather in prop_oneof![Just(0), Just(20)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(check(steps, gather * MS));
    }
}

/// Keys that come back all the time leave room for those that were only listed.
#[tokio::test(start_paused = true)]
async fn low_keys_are_not_kept_waiting_for_ever() {
    let q = Queue::<u32>::default();
    for key in 0..3 {
        q.add(key, Priority::Low);
    }
    q.add(9, Priority::Normal);
    let mut low = Vec::new();
    for n in 1..=32 {
        let key = q.next().await.unwrap();
        if key == 9 {
            q.finish(&key, Outcome::Done);
            q.add(9, Priority::Normal);
        } else {
            low.push((n, key));
            q.finish(&key, Outcome::Done);
        }
    }
    assert_eq!(low, [(8, 0), (16, 1), (24, 2)]);
}
