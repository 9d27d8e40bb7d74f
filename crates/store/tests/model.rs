//! Random histories against a model that copies everything: every state, every event, in plain vectors.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat_store::{Cursor, Event, Expect, Limits, Memory, Revision, Snapshot, Store};
use proptest::prelude::*;
use support::{delete_as, drain, put_as, show};

const COLLECTIONS: [&str; 3] = ["events", "nodes", "pods"];
const NAMES: [&str; 6] = ["a/1", "a/2", "b/1", "b/2", "b/3", "c"];
const PREFIXES: [&str; 4] = ["", "a/", "b/", "d"];

#[derive(Clone, Debug)]
enum Step {
    Commit { collection: usize, name: usize, expect: Guess, put: bool, size: usize },
    Compact { back: u64 },
    Open { collection: usize, back: u64 },
    OpenAll { back: u64 },
    Poll { cursor: usize },
    Past { back: u64 },
}

#[derive(Clone, Copy, Debug)]
enum Guess {
    Any,
    Absent,
    Right,
    Wrong,
}

fn step() -> impl Strategy<Value = Step> {
    let guess = prop_oneof![
        4 => Just(Guess::Any), 2 => Just(Guess::Right), 1 => Just(Guess::Absent), 1 => Just(Guess::Wrong)];
    prop_oneof![
        20 => (0..3_usize, 0..6_usize, guess, prop::bool::weighted(0.7), 0..200_usize).prop_map(
            |(collection, name, expect, put, size)| Step::Commit { collection, name, expect, put, size }),
        1 => (0..20_u64).prop_map(|back| Step::Compact { back }),
        2 => (0..3_usize, 0..10_u64).prop_map(|(collection, back)| Step::Open { collection, back }),
        1 => (0..10_u64).prop_map(|back| Step::OpenAll { back }),
        4 => (0..8_usize).prop_map(|cursor| Step::Poll { cursor }),
        2 => (0..20_u64).prop_map(|back| Step::Past { back }),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let events = prop_oneof![Just(usize::MAX), 1..30_usize];
    let bytes = prop_oneof![Just(usize::MAX), 1..10_000_usize];
    (events, bytes).prop_map(|(events, bytes)| Limits { events, bytes })
}

/// (collection, name) to (text, revision, created)
type State = BTreeMap<(String, String), (String, Revision, Revision)>;

#[derive(Clone)]
struct Happened {
    revision: Revision,
    collection: String,
    shown: String,
}

/// What is true, kept naively.
#[derive(Clone)]
struct Model {
    /// The state at each revision, from `first`.
    states: Vec<State>,
    first: Revision,
    events: Vec<Happened>,
    compacted: Revision,
}

impl Model {
    fn revision(&self) -> Revision {
        self.first + self.states.len() as u64 - 1
    }

    fn state(&self, revision: Revision) -> &State {
        &self.states[(revision - self.first) as usize]
    }

    fn commit(&mut self, at: (&str, &str), expect: Expect, put: bool, text: &str) -> Result<String, String> {
        let mut state = self.states.last().expect("a first state").clone();
        let key = (at.0.to_owned(), at.1.to_owned());
        let prev = state.get(&key).cloned();
        match (&prev, expect) {
            (None, Expect::Revision(_)) => return Err("there is no such record".into()),
            (None, _) if !put => return Err("there is no such record".into()),
            (Some((_, revision, _)), Expect::Absent) => {
                return Err(format!("the record exists at revision {revision}"));
            }
            (Some((_, revision, _)), Expect::Revision(wanted)) if *revision != wanted => {
                return Err(format!("the record is at revision {revision}"));
            }
            _ => {}
        }
        let revision = self.revision() + 1;
        let text = format!("{text}@{revision}");
        let was = prev.as_ref().map_or("-", |(text, ..)| text);
        let shown = if put {
            format!("{revision} {} {was}->{text}", at.1)
        } else {
            format!("{revision} {} {was}->deleted {text}", at.1)
        };
        if put {
            let created = prev.map_or(revision, |(_, _, created)| created);
            state.insert(key, (text, revision, created));
        } else {
            state.remove(&key);
        }
        self.states.push(state);
        self.events.push(Happened { revision, collection: at.0.to_owned(), shown: shown.clone() });
        Ok(shown)
    }

    /// The events of a collection, or of all, in (after, until].
    fn between(&self, collection: Option<&str>, after: Revision, until: Revision) -> Vec<String> {
        let theirs =
            self.events.iter().filter(|event| collection.is_none_or(|name| event.collection == name));
        theirs
            .filter(|event| event.revision > after && event.revision <= until)
            .map(|event| event.shown.clone())
            .collect()
    }
}

/// A cursor and what is true about it.
struct Follower {
    cursor: Cursor<()>,
    collection: Option<&'static str>,
    given: Revision,
}

struct World {
    store: Memory<()>,
    model: Model,
    followers: Vec<Follower>,
    limits: Limits,
}

fn same(snapshot: &Snapshot<()>, state: &State) {
    let names: BTreeSet<_> = state.keys().map(|(collection, _)| collection.as_str()).collect();
    assert!(snapshot.collections().map(|name| &**name).eq(names));
    for collection in COLLECTIONS {
        for prefix in PREFIXES {
            for after in [None, Some("a/2"), Some("b/15"), Some("c")] {
                let got = snapshot.range(collection, prefix, after).map(|record| {
                    let text = String::from_utf8(record.bytes.to_vec()).expect("text");
                    (record.key.name.to_string(), (text, record.revision, record.created))
                });
                let want = state
                    .iter()
                    .filter(|((of, name), _)| of == collection && name.starts_with(prefix))
                    .filter(|((_, name), _)| after.is_none_or(|after| name.as_str() > after))
                    .map(|((_, name), value)| (name.clone(), value.clone()));
                assert!(got.eq(want), "{collection} {prefix} {after:?}");
            }
        }
        let len = state.keys().filter(|(of, _)| of == collection).count();
        assert_eq!(snapshot.len(collection), len);
    }
}

fn shown(events: &[Arc<Event<()>>]) -> Vec<String> {
    events.iter().map(|event| show(event)).collect()
}

impl World {
    fn new(limits: Limits) -> Self {
        let model = Model { states: vec![State::new()], first: 1, events: Vec::new(), compacted: 1 };
        Self { store: Memory::with_limits(limits), model, followers: Vec::new(), limits }
    }

    fn fork(&self) -> Self {
        let mut model = self.model.clone();
        model.compacted = model.revision();
        Self { store: self.store.fork(), model, followers: Vec::new(), limits: self.limits }
    }

    /// Where history starts at the earliest: nothing before it can be had, everything from there on must be.
    fn oldest(&self) -> Revision {
        let mut oldest = self.model.compacted;
        while self.store.watch_all(oldest).is_err() {
            oldest += 1;
        }
        if self.limits == (Limits { events: usize::MAX, bytes: usize::MAX }) {
            assert_eq!(oldest, self.model.compacted, "only what was to be forgotten is forgotten");
        }
        assert!(self.model.revision() - oldest <= (self.limits.events as u64).max(1));
        oldest
    }

    fn step(&mut self, step: &Step) {
        let current = self.model.revision();
        match *step {
            Step::Commit { collection, name, expect, put, size } => {
                let at = (COLLECTIONS[collection], NAMES[name]);
                let there = self.store.get(at.0, at.1).map_or(current, |record| record.revision);
                let expect = match expect {
                    Guess::Any => Expect::Any,
                    Guess::Absent => Expect::Absent,
                    Guess::Right => Expect::Revision(there),
                    Guess::Wrong => Expect::Revision(there + 1),
                };
                let text = "x".repeat(size);
                let got = if put {
                    put_as(&self.store, at, expect, &text, ())
                } else {
                    delete_as(&self.store, at, expect, &text)
                };
                let got = got.map(|event| show(&event)).map_err(|error| error.to_string());
                assert_eq!(got, self.model.commit(at, expect, put, &text));
            }
            Step::Compact { back } => {
                let before = current.saturating_sub(back);
                self.store.compact(before);
                self.model.compacted = self.model.compacted.max(before);
            }
            Step::Open { collection, back } => self.open(Some(COLLECTIONS[collection]), back),
            Step::OpenAll { back } => self.open(None, back),
            Step::Poll { cursor } => self.poll(cursor),
            Step::Past { back } => self.past(current.saturating_sub(back)),
        }
        assert_eq!(self.store.revision(), self.model.revision());
    }

    fn open(&mut self, collection: Option<&'static str>, back: u64) {
        let after = self.model.revision().saturating_sub(back);
        let cursor = match collection {
            Some(name) => self.store.watch(name, after),
            None => self.store.watch_all(after),
        };
        match cursor {
            Ok(cursor) => self.followers.push(Follower { cursor, collection, given: after }),
            Err(gone) => {
                assert!(after < gone.oldest && gone.oldest <= gone.current);
                assert!(after < self.oldest(), "{after} is in the window");
            }
        }
    }

    fn poll(&mut self, at: usize) {
        let oldest = self.oldest();
        let current = self.model.revision();
        let Some(follower) = self.followers.get_mut(at) else { return };
        let Follower { cursor, collection, given } = follower;
        assert!(cursor.seen() >= *given && cursor.seen() <= current);
        assert_eq!(self.model.between(*collection, *given, cursor.seen()), [""; 0], "seen, but not given");
        match drain(cursor) {
            Ok(events) => {
                assert_eq!(shown(&events), self.model.between(*collection, *given, current));
                assert_eq!(cursor.seen(), current);
                *given = current;
            }
            Err(gone) => {
                assert!(*given < oldest && *given < gone.oldest && gone.current == current);
                self.followers.remove(at);
            }
        }
    }

    fn past(&self, revision: Revision) {
        let oldest = self.oldest();
        match self.store.snapshot_at(revision) {
            Ok(snapshot) => {
                assert!(revision >= oldest);
                assert_eq!(snapshot.revision(), revision);
                same(&snapshot, self.model.state(revision));
            }
            Err(_) => assert!(revision < oldest, "{revision} is in the window"),
        }
    }

    /// The present, every past, and from every past the way to the present.
    fn check(&mut self) {
        let current = self.model.revision();
        same(&self.store.snapshot(), self.model.state(current));
        for revision in self.model.first..=current {
            self.past(revision);
            for collection in COLLECTIONS.into_iter().map(Some).chain([None]) {
                self.followers.clear();
                self.open(collection, current - revision);
                self.poll(0);
            }
        }
    }
}

/// Watching from any revision is the difference of the snapshots: applied to the old one it gives the new one.
fn watch_is_the_difference(store: &Memory<()>, from: Revision) {
    let (Ok(before), now) = (store.snapshot_at(from), store.snapshot()) else { return };
    let mut cursor = store.watch_all(from).expect("as old as the snapshot");
    let mut records: BTreeMap<_, _> = before
        .collections()
        .flat_map(|collection| before.range(collection, "", None))
        .map(|record| (record.key.clone(), record.revision))
        .collect();
    for event in drain(&mut cursor).expect("as old as the snapshot") {
        let was = match &event.now {
            Some(record) => records.insert(event.key.clone(), record.revision),
            None => records.remove(&event.key),
        };
        assert_eq!(was, event.prev.as_ref().map(|record| record.revision));
    }
    let after: BTreeMap<_, _> = now
        .collections()
        .flat_map(|collection| now.range(collection, "", None))
        .map(|record| (record.key.clone(), record.revision))
        .collect();
    assert_eq!(records, after);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_histories(limits in limits(), steps in prop::collection::vec(step(), 1..80)) {
        let mut world = World::new(limits);
        for step in &steps {
            world.step(step);
        }
        for revision in 1..=world.model.revision() {
            watch_is_the_difference(&world.store, revision);
        }
        world.check();
    }

    #[test]
    fn forks_are_worlds_of_their_own(
        limits in limits(),
        shared in prop::collection::vec(step(), 0..40),
        here in prop::collection::vec(step(), 0..40),
        there in prop::collection::vec(step(), 0..40),
    ) {
        let mut one = World::new(limits);
        shared.iter().for_each(|step| one.step(step));
        let mut other = one.fork();
        for at in 0..here.len().max(there.len()) {
            here.get(at).into_iter().for_each(|step| one.step(step));
            there.get(at).into_iter().for_each(|step| other.step(step));
        }
        one.check();
        other.check();
    }
}
