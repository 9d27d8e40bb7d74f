//! Many writers and readers at once: one total order, no lost update, no lost or doubled event.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_store::{CommitError, Cursor, Event, Expect, Key, Memory, Op, Revision, Store, Write};
use support::draft;

const WRITERS: usize = 4;
const COMMITS: usize = 1500;
const COLLECTIONS: [&str; 2] = ["nodes", "pods"];

/// Follows until the event of `last`; asserts the order on the way.
async fn follow(mut cursor: Cursor<usize>, last: Revision) -> Vec<Arc<Event<usize>>> {
    let mut events: Vec<Arc<Event<usize>>> = Vec::new();
    while events.last().is_none_or(|event| event.revision < last) {
        let batch = cursor.next().await.expect("the log is large enough");
        events.extend(batch.iter().cloned());
        let seen = cursor.seen();
        assert!(events.last().is_none_or(|event| event.revision <= seen));
    }
    assert!(events.is_sorted_by(|one, other| one.revision < other.revision));
    events
}

/// Adds one to a counter, as often as it takes.
async fn increment(store: &Memory<usize>, collection: &str, name: &str) -> Revision {
    let mut now = store.get(collection, name);
    loop {
        let expect = now.as_ref().map_or(Expect::Absent, |record| Expect::Revision(record.revision));
        let count = now.as_ref().map_or(0, |record| record.meta) + 1;
        let op = Op::Put(draft(&count.to_string()), count);
        match store.commit(Write { key: Key::new(collection, name), expect, op }).await {
            Ok(event) => {
                assert!(store.revision() >= event.revision, "visible when it returns");
                return event.revision;
            }
            Err(CommitError::Changed(record) | CommitError::Exists(record)) => now = Some(record),
            Err(error) => panic!("{error}"),
        }
        tokio::task::yield_now().await;
    }
}

#[test]
fn one_total_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime");
    runtime.block_on(async {
        let store = Arc::new(Memory::<usize>::new());
        let last = 1 + (WRITERS * COMMITS) as u64;
        let all: Vec<_> =
            (0..3).map(|_| tokio::spawn(follow(store.watch_all(1).expect("the start"), last))).collect();
        let looking = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                let mut before = 0;
                while before < last {
                    let published = store.revision();
                    let snapshot = store.snapshot();
                    assert!(published <= snapshot.revision() && before <= snapshot.revision());
                    before = snapshot.revision();
                    let past = store.snapshot_at(before / 2 + 1).expect("in the window");
                    assert_eq!(past.revision(), before / 2 + 1);
                    tokio::task::yield_now().await;
                }
            }
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let mut revisions = Vec::new();
                    for at in 0..COMMITS {
                        let collection = COLLECTIONS[(writer + at) % 2];
                        revisions.push(increment(&store, collection, &format!("{}", at % 7)).await);
                    }
                    assert!(revisions.is_sorted_by(|one, other| one < other));
                    revisions
                })
            })
            .collect();

        let mut revisions = Vec::new();
        for writer in writers {
            revisions.extend(writer.await.expect("a writer"));
        }
        revisions.sort_unstable();
        assert!(
            revisions.iter().copied().eq(2..=last),
            "every commit has its own revision, and none is left out"
        );
        looking.await.expect("a reader");

        let mut orders = Vec::new();
        for follower in all {
            let events = follower.await.expect("a follower");
            orders.push(events.iter().map(|event| (event.revision, event.key.clone())).collect::<Vec<_>>());
            check_chain(&events);
        }
        assert!(orders[0].iter().map(|(revision, _)| *revision).eq(2..=last));
        assert!(orders.iter().all(|order| *order == orders[0]));

        let mut total = 0;
        for collection in COLLECTIONS {
            total += store.snapshot().range(collection, "", None).map(|record| record.meta).sum::<usize>();
            let mut cursor = store.watch(collection, 1).expect("the start");
            let theirs = support::drain(&mut cursor).expect("kept");
            let want = orders[0].iter().filter(|(_, key)| &*key.collection == collection);
            assert!(theirs.iter().map(|event| event.revision).eq(want.map(|(revision, _)| *revision)));
        }
        assert_eq!(total, WRITERS * COMMITS, "no update is lost");
    });
}

/// Every event's `prev` is what the event before it on this key left.
fn check_chain(events: &[Arc<Event<usize>>]) {
    let mut left: BTreeMap<&Key, (Revision, usize)> = BTreeMap::new();
    for event in events {
        let prev = event.prev.as_ref().map(|record| (record.revision, record.meta));
        assert_eq!(prev, left.get(&event.key).copied());
        let now = event.now.as_ref().expect("nothing is deleted here");
        assert_eq!(now.meta, prev.map_or(0, |(_, count)| count) + 1);
        left.insert(&event.key, (now.revision, now.meta));
    }
}

/// Waiting cursors and commits race; a lost wake-up would hang, so every round needs the one before.
#[test]
fn no_wake_up_is_lost() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().expect("a runtime");
    runtime.block_on(async {
        let store = Arc::new(Memory::<usize>::new());
        let echo = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                let mut pings = store.watch("ping", 1).expect("the start");
                for _ in 0..5000 {
                    pings.next().await.expect("kept");
                    increment(&store, "pong", "a").await;
                }
            }
        });
        let mut pongs = store.watch("pong", 1).expect("the start");
        for _ in 0..5000 {
            increment(&store, "ping", "a").await;
            pongs.next().await.expect("kept");
        }
        echo.await.expect("the echo");
        assert_eq!(store.get("pong", "a").map(|record| record.meta), Some(5000));
    });
}
