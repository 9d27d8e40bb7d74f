//! What a commit does under each expectation, and what snapshots and forks show of it.

mod support;

use homeostat_store::{
    CommitError, Draft, Expect, HistoryError, Key, Limits, Memory, Op, Snapshot, Store, Write,
};
use support::{commit, delete_as, put, put_as, show};

/// A store with `old@2` at pods/a and pods/c deleted; commits to `name`, shows the outcome.
fn check(name: &str, expect: Expect, text: Option<&str>, want: &str) {
    let store = Memory::<()>::new();
    put(&store, "pods", "a", "old");
    put(&store, "pods", "c", "gone");
    delete_as(&store, ("pods", "c"), Expect::Any, "gone").expect("deleted");
    let outcome = match text {
        Some(text) => put_as(&store, ("pods", name), expect, text, ()),
        None => delete_as(&store, ("pods", name), expect, "bye"),
    };
    let got = match &outcome {
        Ok(event) => show(event),
        Err(error) => error.to_string(),
    };
    assert_eq!(got, want, "{name} {expect:?} {text:?}");
    let revision = store.revision();
    assert_eq!(revision, if outcome.is_ok() { 5 } else { 4 }, "a failed commit takes no revision");
    assert_eq!(store.snapshot().revision(), revision);
}

#[test]
fn expectations() {
    check("a", Expect::Any, Some("new"), "5 a old@2->new@5");
    check("a", Expect::Revision(2), Some("new"), "5 a old@2->new@5");
    check("a", Expect::Revision(1), Some("new"), "the record is at revision 2");
    check("a", Expect::Revision(5), Some("new"), "the record is at revision 2");
    check("a", Expect::Absent, Some("new"), "the record exists at revision 2");
    check("b", Expect::Any, Some("new"), "5 b -->new@5");
    check("b", Expect::Absent, Some("new"), "5 b -->new@5");
    check("b", Expect::Revision(2), Some("new"), "there is no such record");
    check("c", Expect::Absent, Some("new"), "5 c -->new@5");
    check("c", Expect::Revision(3), Some("new"), "there is no such record");
    check("a", Expect::Any, None, "5 a old@2->deleted bye@5");
    check("a", Expect::Revision(2), None, "5 a old@2->deleted bye@5");
    check("a", Expect::Revision(3), None, "the record is at revision 2");
    check("a", Expect::Absent, None, "the record exists at revision 2");
    check("b", Expect::Any, None, "there is no such record");
    check("b", Expect::Absent, None, "there is no such record");
    check("c", Expect::Revision(3), None, "there is no such record");
}

#[test]
fn a_failed_expectation_gives_the_record_that_is_there() {
    let store = Memory::new();
    put_as(&store, ("pods", "a"), Expect::Any, "x", "meta").expect("put");
    let Err(CommitError::Changed(record)) = put_as(&store, ("pods", "a"), Expect::Revision(9), "y", "")
    else {
        panic!("the revision differs");
    };
    assert_eq!(
        (record.revision, record.created, record.meta, &record.bytes[..]),
        (2, 2, "meta", &b"x@2"[..])
    );
}

#[test]
fn a_place_beyond_the_draft_is_refused() {
    let store = Memory::<()>::new();
    let op = Op::Put(Draft::new(b"abc".to_vec(), 4), ());
    let outcome = commit(&store, Write { key: Key::new("pods", "a"), expect: Expect::Any, op });
    assert!(matches!(outcome, Err(CommitError::Draft { revision_at: 4, len: 3 })), "{outcome:?}");
    assert_eq!(store.revision(), 1);
}

#[test]
fn created_is_kept_over_updates_and_new_after_a_deletion() {
    let store = Memory::<()>::new();
    let created = |store: &Memory<()>| store.get("pods", "a").map(|record| (record.created, record.revision));
    put(&store, "pods", "a", "1");
    assert_eq!(created(&store), Some((2, 2)));
    put(&store, "pods", "a", "2");
    assert_eq!(created(&store), Some((2, 3)));
    delete_as(&store, ("pods", "a"), Expect::Any, "2").expect("deleted");
    assert_eq!(created(&store), None);
    put(&store, "pods", "a", "3");
    assert_eq!(created(&store), Some((5, 5)));
}

#[test]
fn a_commit_that_is_never_polled_does_nothing() {
    let store = Memory::<()>::new();
    let op = Op::Put(support::draft("x"), ());
    drop(store.commit(Write { key: Key::new("pods", "a"), expect: Expect::Any, op }));
    assert_eq!(store.revision(), 1);
}

fn names(snapshot: &Snapshot<()>, collection: &str, prefix: &str, after: Option<&str>) -> Vec<String> {
    let range: Vec<_> =
        snapshot.range(collection, prefix, after).map(|record| record.key.name.to_string()).collect();
    let listing: Vec<_> =
        snapshot.listing(collection, prefix, after).map(|record| record.key.name.to_string()).collect();
    assert_eq!(range, listing, "{collection} {prefix} {after:?}");
    assert_eq!(range.len(), snapshot.count(collection, prefix, after));
    range
}

#[test]
fn ranges() {
    let store = Memory::<()>::new();
    for name in ["b/2", "a/1", "b/1", "b-c/1", "c/1", "b/10"] {
        put(&store, "pods", name, "x");
    }
    put(&store, "nodes", "b/0", "x");
    let snapshot = store.snapshot();
    let check = |prefix: &str, after: Option<&str>, want: &[&str]| {
        assert_eq!(names(&snapshot, "pods", prefix, after), want, "{prefix} {after:?}");
    };
    check("", None, &["a/1", "b-c/1", "b/1", "b/10", "b/2", "c/1"]);
    check("b/", None, &["b/1", "b/10", "b/2"]);
    check("b/", Some("b/1"), &["b/10", "b/2"]);
    check("b/", Some("b/11"), &["b/2"]);
    check("b/", Some("a/1"), &["b/1", "b/10", "b/2"]);
    check("b/", Some("b/2"), &[]);
    check("b/", Some("c/1"), &[]);
    check("", Some("b/2"), &["c/1"]);
    check("d", None, &[]);
    assert_eq!(names(&snapshot, "secrets", "", None), [""; 0]);
    assert_eq!(snapshot.collections().map(|name| &**name).collect::<Vec<_>>(), ["nodes", "pods"]);
    assert_eq!((snapshot.len("pods"), snapshot.len("nodes"), snapshot.len("secrets")), (6, 1, 0));
}

#[test]
fn a_listing_of_many_chunks_and_of_exactly_one() {
    for count in [255_usize, 256, 257, 512, 1000] {
        let store = Memory::<()>::new();
        for at in 0..count {
            put(&store, "pods", &format!("{at:04}"), "x");
        }
        assert_eq!(names(&store.snapshot(), "pods", "", None).len(), count);
    }
}

#[test]
fn a_collection_without_records_is_none() {
    let store = Memory::<()>::new();
    put(&store, "pods", "a", "x");
    delete_as(&store, ("pods", "a"), Expect::Any, "x").expect("deleted");
    assert_eq!(store.snapshot().collections().count(), 0);
    assert!(store.snapshot().is_empty("pods"));
}

#[test]
fn snapshots_and_forks_do_not_show_each_others_commits() {
    let store = Memory::<()>::new();
    put(&store, "pods", "a", "1");
    let before = store.snapshot();
    let fork = store.fork();
    put(&store, "pods", "a", "here");
    put(&fork, "pods", "b", "there");

    assert_eq!(&before.get("pods", "a").expect("kept").bytes[..], b"1@2");
    assert_eq!(&store.get("pods", "a").expect("updated").bytes[..], b"here@3");
    assert!(store.get("pods", "b").is_none());
    assert_eq!(&fork.get("pods", "a").expect("kept").bytes[..], b"1@2");
    assert_eq!(&fork.get("pods", "b").expect("created").bytes[..], b"there@3");

    let mut cursor = fork.watch("pods", 2).expect("a fork's history begins where it forked");
    let events = support::drain(&mut cursor).expect("kept");
    assert_eq!(events.iter().map(|event| show(event)).collect::<Vec<_>>(), ["3 b -->there@3"]);
    assert!(fork.watch("pods", 1).is_err());
    assert!(fork.snapshot_at(1).is_err());
}

#[test]
fn a_store_can_go_on_from_a_past_state() {
    let store = Memory::<()>::new();
    put(&store, "pods", "a", "1");
    put(&store, "pods", "a", "2");
    let past = store.snapshot_at(2).expect("kept");
    let other = Memory::starting_from(past, Limits::default());
    assert_eq!(other.revision(), 2);
    assert_eq!(put(&other, "pods", "b", "1"), 3);
    assert_eq!(&other.get("pods", "a").expect("as it was").bytes[..], b"1@2");
}

/// More commits than between many checkpoints, then every revision against what was true then.
#[test]
fn any_state_of_the_past_within_the_window() {
    const COMMITS: u64 = 20_000;
    const NAMES: u64 = 50;
    let store = Memory::<()>::with_limits(Limits { events: 15_000, bytes: usize::MAX });
    for at in 2..2 + COMMITS {
        let name = format!("{}", at % NAMES);
        if at % 7 == 0 && store.get("pods", &name).is_some() {
            delete_as(&store, ("pods", &name), Expect::Any, "x").expect("deleted");
        } else {
            put(&store, "pods", &name, "x");
        }
    }
    let current = store.revision();
    assert_eq!(current, 1 + COMMITS);
    let oldest = current - 15_000;
    let texts = |snapshot: &Snapshot<()>| {
        snapshot
            .range("pods", "", None)
            .map(|record| (record.key.clone(), record.revision))
            .collect::<Vec<_>>()
    };
    // Forwards from the oldest state over the log gives every later one.
    let mut expected =
        Memory::starting_from(store.snapshot_at(oldest).expect("the oldest"), Limits::default());
    let mut cursor = store.watch_all(oldest).expect("the oldest");
    let events = support::drain(&mut cursor).expect("kept");
    for event in events {
        let at = (&*event.key.collection, &*event.key.name);
        if event.is_delete() {
            delete_as(&expected, at, Expect::Any, "x").expect("deleted");
        } else {
            put(&expected, at.0, at.1, "x");
        }
        if event.revision % 997 == 0 || event.revision % 4096 < 2 {
            let at = store.snapshot_at(event.revision).expect("in the window");
            assert_eq!(at.revision(), event.revision);
            assert_eq!(texts(&at), texts(&expected.snapshot()), "at {}", event.revision);
            expected = expected.fork();
        }
    }
    assert_eq!(texts(&expected.snapshot()), texts(&store.snapshot()));

    let past = store.snapshot_at(oldest - 1);
    assert!(
        matches!(past, Err(HistoryError::Compacted(gone)) if (gone.oldest, gone.current) == (oldest, current))
    );
    let future = store.snapshot_at(current + 1);
    assert!(matches!(future, Err(HistoryError::Future { requested, .. }) if requested == current + 1));
    assert_eq!(store.snapshot_at(current).expect("the present").revision(), current);
}
