//! What cursors give: in order, once, only theirs, or `Compacted`; and what the log keeps alive.

mod support;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures::FutureExt;
use homeostat_store::{BATCH, Compacted, Cursor, Expect, Limits, Memory, Revision, Store};
use support::{delete_as, drain, put, put_as, show};

fn shown(cursor: &mut Cursor<()>) -> Vec<String> {
    drain(cursor).expect("not compacted").iter().map(|event| show(event)).collect()
}

#[test]
fn a_cursor_gives_its_collection_and_watch_all_everything() {
    let store = Memory::<()>::new();
    let mut pods = store.watch("pods", 1).expect("the start");
    let mut all = store.watch_all(1).expect("the start");
    put(&store, "pods", "a", "1");
    put(&store, "nodes", "n", "1");
    put(&store, "pods", "a", "2");
    delete_as(&store, ("pods", "a"), Expect::Any, "2").expect("deleted");
    let want = ["2 a -->1@2", "4 a 1@2->2@4", "5 a 2@4->deleted 2@5"];
    assert_eq!(shown(&mut pods), want);
    assert_eq!(shown(&mut store.watch("pods", 1).expect("kept")), want, "late is as good");
    assert_eq!(shown(&mut store.watch("pods", 2).expect("kept")), want[1..]);
    assert_eq!(
        shown(&mut store.watch("pods", 3).expect("kept")),
        want[1..],
        "a revision of another collection"
    );
    assert_eq!(shown(&mut store.watch("pods", 5).expect("kept")), [""; 0]);
    assert_eq!(shown(&mut all).len(), 4);
}

#[test]
fn a_cursor_from_the_future_skips_what_comes_before() {
    let store = Memory::<()>::new();
    let mut cursor = store.watch("pods", 3).expect("no history is needed");
    put(&store, "pods", "a", "2");
    put(&store, "pods", "a", "3");
    assert_eq!(cursor.seen(), 3);
    put(&store, "pods", "a", "4");
    assert_eq!(shown(&mut cursor), ["4 a 3@3->4@4"]);
}

#[test]
fn batches_are_bounded_and_go_on_where_they_ended() {
    let store = Memory::<()>::new();
    let mut cursor = store.watch("pods", 1).expect("the start");
    for _ in 0..2 * BATCH + 1 {
        put(&store, "pods", "a", "x");
    }
    let mut sizes = Vec::new();
    let mut last = 1;
    while let Some(batch) = cursor.next().now_or_never() {
        for event in batch.expect("not compacted") {
            assert_eq!(event.revision, last + 1);
            last = event.revision;
        }
        sizes.push(last);
        assert_eq!(cursor.seen(), last);
    }
    assert_eq!(sizes, [1 + BATCH as u64, 1 + 2 * BATCH as u64, 2 + 2 * BATCH as u64]);
}

#[test]
fn seen_moves_with_the_store_while_the_collection_is_quiet() {
    let store = Memory::<()>::new();
    let mut cursor = store.watch("pods", 1).expect("the start");
    assert_eq!(cursor.seen(), 1);
    put(&store, "nodes", "n", "x");
    assert_eq!(cursor.seen(), 2);
    put(&store, "pods", "a", "x");
    assert_eq!(cursor.seen(), 1, "there is an event that was not given out");
    put(&store, "nodes", "n", "x");
    assert_eq!(shown(&mut cursor).len(), 1);
    assert_eq!(cursor.seen(), 4);
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_busy_collection_wakes_nobody_else() {
    let store = Memory::<()>::new();
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut cx = Context::from_waker(&waker);
    let mut cursor = store.watch("pods", 1).expect("the start");
    let mut next = pin!(cursor.next());
    assert!(next.as_mut().poll(&mut cx).is_pending());
    for _ in 0..10 {
        put(&store, "events", "e", "x");
    }
    assert_eq!(wakes.0.load(Ordering::SeqCst), 0);
    put(&store, "pods", "a", "x");
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Ok(batch)) = next.as_mut().poll(&mut cx) else { panic!("woken for an event") };
    assert_eq!(show(&batch[0]), "12 a -->x@12");
}

#[test]
fn a_dropped_next_has_taken_nothing() {
    let store = Memory::<()>::new();
    let mut cursor = store.watch("pods", 1).expect("the start");
    assert!(cursor.next().now_or_never().is_none());
    put(&store, "pods", "a", "x");
    drop(cursor.next());
    assert_eq!(shown(&mut cursor).len(), 1);
}

#[test]
fn watchers_share_one_event_and_its_frame() {
    let store = Memory::<()>::new();
    let mut first = store.watch("pods", 1).expect("the start");
    let mut second = store.watch_all(1).expect("the start");
    put(&store, "pods", "a", "x");
    let (first, second) = (drain(&mut first).expect("kept"), drain(&mut second).expect("kept"));
    assert!(Arc::ptr_eq(&first[0], &second[0]));
    first[0].frame.get_or_init(|| Bytes::from_static(b"ADDED"));
    assert_eq!(second[0].frame.get().map(|frame| &frame[..]), Some(&b"ADDED"[..]));
}

#[test]
fn a_cursor_that_falls_behind_the_log_gets_compacted_for_good() {
    let store = Memory::<()>::with_limits(Limits { events: 10, bytes: usize::MAX });
    let mut slow = store.watch("pods", 1).expect("the start");
    let mut all = store.watch_all(1).expect("the start");
    let mut quiet = store.watch("nodes", 1).expect("the start");
    for _ in 0..11 {
        put(&store, "pods", "a", "x");
    }
    let gone = Compacted { oldest: 2, current: 12 };
    assert_eq!(slow.try_next().err(), Some(gone));
    assert_eq!(slow.next().now_or_never().and_then(Result::err), Some(gone));
    assert_eq!(slow.seen(), 1);
    assert_eq!(all.try_next().err(), Some(gone));
    assert_eq!(store.watch("pods", 1).err(), Some(gone));
    assert_eq!(drain(&mut store.watch("pods", 2).expect("the oldest")).expect("kept").len(), 10);

    // Nothing happened to nodes, so their watchers have missed nothing.
    assert_eq!(quiet.seen(), 12);
    put(&store, "nodes", "n", "x");
    assert_eq!(shown(&mut quiet), ["13 n -->x@13"]);
}

#[test]
fn compaction_ends_old_watches_but_not_live_ones() {
    let store = Memory::<()>::new();
    let mut live = store.watch("pods", 1).expect("the start");
    let mut behind = store.watch("pods", 1).expect("the start");
    let mut idle = store.watch("nodes", 1).expect("the start");
    for _ in 0..5 {
        put(&store, "pods", "a", "x");
    }
    assert_eq!(shown(&mut live).len(), 5);
    store.compact(4);
    let gone = Compacted { oldest: 4, current: 6 };
    assert_eq!(store.watch("pods", 3).err(), Some(gone));
    assert_eq!(store.watch("nodes", 3).err(), Some(gone), "compaction is for all collections");
    assert_eq!(store.watch("secrets", 3).err(), Some(gone));
    assert_eq!(store.watch_all(3).err(), Some(gone));
    assert_eq!(behind.try_next().err(), Some(gone));
    assert!(store.snapshot_at(3).is_err());
    assert_eq!(store.snapshot_at(4).expect("the oldest").revision(), 4);
    assert_eq!(shown(&mut store.watch("pods", 4).expect("the oldest")), ["5 a x@4->x@5", "6 a x@5->x@6"]);

    store.compact(1);
    assert!(store.watch("pods", 3).is_err(), "what is gone stays gone");
    store.compact(Revision::MAX);
    assert_eq!(store.watch("pods", 5).err(), Some(Compacted { oldest: 6, current: 6 }));
    put(&store, "pods", "a", "x");
    put(&store, "nodes", "n", "x");
    assert_eq!(shown(&mut live), ["7 a x@6->x@7"]);
    assert_eq!(shown(&mut idle), ["8 n -->x@8"]);
}

/// Writes `commits` times to one of `names`, then counts the records alive.
fn alive(limits: Limits, commits: usize, names: usize, size: usize) -> (Memory<Arc<()>>, Arc<()>) {
    let token = Arc::new(());
    let store = Memory::with_limits(limits);
    let text = "x".repeat(size);
    for at in 0..commits {
        let name = format!("{}", at % names);
        put_as(&store, ("pods", &name), Expect::Any, &text, Arc::clone(&token)).expect("put");
        if at % 1000 == 0 {
            // What was looked at must not stay for ever either.
            store.snapshot_at(store.revision() - 1).expect("the last one");
        }
    }
    (store, token)
}

#[test]
fn the_log_keeps_no_more_alive_than_its_limits() {
    let check = |limits: Limits, size: usize, most: usize| {
        let (store, token) = alive(limits, 20_000, 5, size);
        let records = Arc::strong_count(&token) - 1;
        assert!(records <= most + 5, "{records} records alive with {limits:?}");
        store.compact(store.revision());
        assert_eq!(Arc::strong_count(&token) - 1, 5, "only the state");
    };
    check(Limits { events: 100, bytes: usize::MAX }, 10, 100);
    check(Limits { events: 6000, bytes: usize::MAX }, 10, 6000);
    // An event costs the object it replaced, its own again as a frame, and 256 bytes.
    check(Limits { events: usize::MAX, bytes: 1 << 20 }, 1000, (1 << 20) / 2256);
    check(Limits { events: 0, bytes: 0 }, 1000, 1);
}

#[test]
fn a_store_without_cursors_or_records_of_a_collection_forgets_it() {
    let store = Memory::<()>::new();
    for at in 0..1000 {
        let collection = format!("kind-{at}");
        put(&store, &collection, "a", "x");
        delete_as(&store, (&collection, "a"), Expect::Any, "x").expect("deleted");
    }
    store.compact(store.revision());
    let mut cursor = store.watch("kind-1", store.revision()).expect("the present");
    put(&store, "kind-1", "b", "x");
    assert_eq!(shown(&mut cursor), ["2002 b -->x@2002"]);
}
