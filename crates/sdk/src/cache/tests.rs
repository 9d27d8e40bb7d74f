//! What may replace what: late events, own writes, lists that cross them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use proptest::prelude::*;

use super::packed::Pool;
use super::state::{Event, OWNERS, State};
use super::*;

fn map(name: &str, uid: &str, version: u64) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.namespace = Some("a".into());
    map.metadata.name = Some(name.into());
    map.metadata.uid = Some(uid.into());
    map.metadata.resource_version = Some(version.to_string());
    map
}

fn item(object: ConfigMap) -> Item {
    let text = serde_json::to_string(&object).unwrap();
    Item { object: Arc::new(object), size: 0, text: Packed::new(text.into(), false) }
}

/// A state that keeps objects, and one that keeps their texts.
fn states(selective: bool) -> [State; 2] {
    let unpack = |text: &str| Some(Arc::new(serde_json::from_str::<ConfigMap>(text).ok()?) as Arc<dyn Held>);
    [State::new(selective), State::keeping(selective, Some(Arc::new(unpack)))]
}

/// What is done to a cache of one name.
enum Do {
    /// Watch events: uid and version.
    Apply(&'static str, u64),
    Delete(&'static str, u64),
    /// A list of these.
    Init,
    Listed(&'static [(&'static str, u64)]),
    /// Own writes.
    Wrote(&'static str, u64),
    Deleted(&'static str),
}

fn check(steps: &[Do], expect: Option<u64>, doubtful: bool) {
    for state in states(false) {
        check_in(state, steps, expect, doubtful);
    }
}

fn check_in(mut state: State, steps: &[Do], expect: Option<u64>, doubtful: bool) {
    let mut doubts = Vec::new();
    for step in steps {
        match step {
            Do::Apply(uid, v) => {
                state.event(Event::Apply(item(map("x", uid, *v))));
            }
            Do::Delete(uid, v) => {
                state.delete(&map("x", uid, *v).metadata);
            }
            Do::Init => {
                state.event(Event::Init);
            }
            Do::Listed(objects) => {
                for (uid, v) in *objects {
                    state.event(Event::InitApply(item(map("x", uid, *v))));
                }
                doubts = state.event(Event::InitDone).1;
            }
            Do::Wrote(uid, v) => {
                state.wrote(item(map("x", uid, *v)));
            }
            Do::Deleted(uid) => {
                state.deleted(&Key::namespaced("a", "x"), Some(uid));
            }
        }
    }
    let has = state.objects.values().next().and_then(|o| crate::object::revision(&o.metadata()));
    assert_eq!((has, !doubts.is_empty()), (expect, doubtful));
}

#[test]
fn events_apply_in_order() {
    check(&[Do::Apply("u", 1), Do::Apply("u", 2)], Some(2), false);
    check(&[Do::Apply("u", 1), Do::Delete("u", 2)], None, false);
    check(&[Do::Apply("u", 1), Do::Delete("u", 2), Do::Apply("v", 3)], Some(3), false);
}

#[test]
fn older_events_do_not_take_back_own_writes() {
    check(&[Do::Apply("u", 1), Do::Wrote("u", 5), Do::Apply("u", 3)], Some(5), false);
    check(&[Do::Wrote("u", 5), Do::Apply("u", 5), Do::Apply("u", 6)], Some(6), false);
    // Deleted and made again by this process; the deletion's event comes last.
    check(&[Do::Apply("u", 1), Do::Deleted("u"), Do::Wrote("v", 9), Do::Delete("u", 4)], Some(9), false);
}

#[test]
fn what_is_dead_stays_dead() {
    // The answer to a write comes after the event of somebody else's deletion.
    check(&[Do::Apply("u", 1), Do::Delete("u", 3), Do::Wrote("u", 2)], None, false);
    check(&[Do::Apply("u", 1), Do::Deleted("u"), Do::Apply("u", 2)], None, false);
    check(&[Do::Apply("u", 1), Do::Init, Do::Deleted("u"), Do::Listed(&[("u", 1)])], None, false);
    check(&[Do::Apply("u", 1), Do::Init, Do::Listed(&[]), Do::Wrote("u", 2)], None, false);
}

#[test]
fn what_leaves_a_selection_may_come_back() {
    let check = |steps: &[Do], expect| {
        for state in states(true) {
            check_in(state, steps, expect, false);
        }
    };
    check(&[Do::Apply("u", 1), Do::Delete("u", 3), Do::Apply("u", 4)], Some(4));
    check(&[Do::Apply("u", 1), Do::Delete("u", 3), Do::Wrote("u", 2)], None);
    check(&[Do::Apply("u", 1), Do::Init, Do::Listed(&[]), Do::Apply("u", 4)], Some(4));
}

#[test]
fn a_deletion_of_another_incarnation_is_not_ours() {
    check(&[Do::Apply("v", 5), Do::Deleted("u")], Some(5), false);
}

#[test]
fn lists_replace_but_not_own_writes_made_meanwhile() {
    check(&[Do::Apply("u", 1), Do::Init, Do::Listed(&[])], None, false);
    check(&[Do::Apply("u", 1), Do::Init, Do::Listed(&[("u", 4)])], Some(4), false);
    check(&[Do::Wrote("u", 1), Do::Init, Do::Listed(&[])], None, false);
    check(&[Do::Init, Do::Wrote("u", 7), Do::Listed(&[("u", 4)])], Some(7), false);
    // Before the write, or after a deletion? The server is to be asked.
    check(&[Do::Init, Do::Wrote("u", 7), Do::Listed(&[])], Some(7), true);
}

#[test]
fn subscribers_hear_of_what_was_there_and_of_each_change() {
    let cache = Cache::<ConfigMap>::new();
    cache.wrote(map("x", "u", 1));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let to = heard.clone();
    cache.subscribe(move |change| {
        let version =
            |o: &Option<Arc<ConfigMap>>| o.as_ref().and_then(|o| crate::object::revision(&o.metadata));
        to.lock().unwrap().push((version(&change.old), version(&change.new), change.listed));
    });
    cache.wrote(map("x", "u", 2));
    let tell = |event| {
        let (changes, _) = cache.inner.write().event(event);
        cache.inner.tell(changes);
    };
    tell(Event::Apply(item(map("x", "u", 2))));
    tell(Event::Apply(item(map("x", "u", 3))));
    tell(Event::Init);
    tell(Event::InitApply(item(map("y", "v", 4))));
    tell(Event::InitDone);
    assert_eq!(
        *heard.lock().unwrap(),
        [
            (None, Some(1), true),
            (Some(1), Some(2), false),
            (Some(2), Some(3), false),
            (Some(3), None, true),
            (None, Some(4), true),
        ]
    );
}

#[test]
fn namespaces_are_listed_apart_and_in_order() {
    let cache = Cache::<ConfigMap>::new();
    for (ns, name) in [("b", "x"), ("a", "z"), ("a", "y"), ("aa", "w")] {
        let mut object = map(name, &format!("{ns}{name}"), 1);
        object.metadata.namespace = Some(ns.into());
        cache.wrote(object);
    }
    let names = |objects: Vec<Arc<ConfigMap>>| -> Vec<String> {
        objects.iter().map(|o| Key::of(&**o).to_string()).collect()
    };
    assert_eq!(names(cache.in_namespace("a")), ["a/y", "a/z"]);
    assert_eq!(names(cache.in_namespace("c")), [""; 0]);
    assert_eq!(names(cache.list()), ["a/y", "a/z", "aa/w", "b/x"]);
    let everything = Labels::default();
    assert_eq!(names(cache.select(Some("aa"), &everything)), ["aa/w"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever happens, an index says what going through all objects would.
    #[test]
    fn indexes_follow_objects(steps in proptest::collection::vec((0..4u8, 0..5u8, 0..3u8, 0..4u8), 0..120)) {
      for mut state in states(false) {
        let mut version = 0;
        for &(what, name, owner, uid) in &steps {
            version += 1;
            let mut object = map(&format!("m{name}"), &format!("u{name}-{uid}"), version);
            object.metadata.owner_references =
                Some(vec![OwnerReference { uid: format!("o{owner}"), ..Default::default() }]);
            match what {
                0 => { state.event(Event::Apply(item(object))); }
                1 => { state.delete(&object.metadata); }
                2 => { state.wrote(item(object)); }
                _ => {
                    state.event(Event::Init);
                    state.event(Event::InitApply(item(object)));
                    state.event(Event::InitDone);
                }
            }
        }
        let mut expect: BTreeMap<String, BTreeSet<Key>> = BTreeMap::new();
        for (key, entry) in &state.objects {
            for owner in entry.metadata().owner_references.iter().flatten() {
                expect.entry(owner.uid.clone()).or_default().insert(key.clone());
            }
        }
        for owner in ["o0", "o1", "o2"] {
            let has: BTreeSet<Key> = all::<ConfigMap>(state.indexed(OWNERS, owner)).iter().map(|o| Key::of(&**o)).collect();
            prop_assert_eq!(has, expect.remove(owner).unwrap_or_default());
        }
      }
    }
}

/// More objects than the pool has room for: whatever is asked, both kinds of cache say the same.
#[test]
fn a_compact_cache_answers_as_any_other() {
    let both = [Cache::<ConfigMap>::new(), Cache::compact(false, false)];
    let by_color = both.clone().map(|cache| {
        cache.index(|m| m.data.iter().filter_map(|d| d.get("color").cloned()).collect::<Vec<_>>())
    });
    let heard: [Arc<Mutex<Vec<_>>>; 2] = Default::default();
    for (cache, heard) in both.iter().zip(&heard) {
        let heard = heard.clone();
        cache.subscribe(move |c| heard.lock().unwrap().push((c.old.clone(), c.new.clone(), c.listed)));
    }
    let mut version = 0;
    let mut tell = |i: usize, color: &str| {
        version += 1;
        let mut object = map(&format!("m{i}"), &format!("u{i}"), version);
        object.metadata.namespace = Some(format!("n{}", i % 3));
        object.metadata.labels = Some(BTreeMap::from([("parity".to_owned(), (i % 2).to_string())]));
        object.data = Some(BTreeMap::from([("color".to_owned(), color.to_owned())]));
        for cache in &both {
            let (changes, _) = cache.inner.write().event(Event::Apply(item(object.clone())));
            cache.inner.tell(changes);
        }
    };
    for i in 0..300 {
        tell(i, ["red", "blue"][i % 2]);
    }
    for i in (0..300).step_by(7) {
        tell(i, "green");
    }
    for cache in &both {
        cache.deleted(&Key::namespaced("n1", "m4"), Some("u4"));
    }
    let odd = Labels::parse("parity=1").unwrap();
    let seen = both.clone().map(|cache| {
        let each: Vec<_> = cache.keys().iter().map(|key| cache.get(key)).collect();
        (cache.list(), cache.in_namespace("n2"), cache.select(Some("n0"), &odd), each)
    });
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0].0.len(), 299);
    for color in ["red", "blue", "green", "none"] {
        assert_eq!(by_color[0].get(color), by_color[1].get(color), "{color}");
    }
    assert_eq!(*heard[0].lock().unwrap(), *heard[1].lock().unwrap());
    assert!(both[1].inner.read().pool().len() <= Pool::room(299));
}

#[test]
fn of_metadata_nothing_else_is_kept() {
    let text = r#"{"kind":"ConfigMap","metadata":{"name":"a","labels":{"b":"c"}},"data":{"big":"one"}}"#;
    let packed = Packed::new(text.into(), true).unwrap();
    assert_eq!(packed.text(), r#"{"metadata":{"name":"a","labels":{"b":"c"}}}"#);
    assert_eq!(packed.metadata().labels.unwrap().get("b").map(String::as_str), Some("c"));
    assert!(Packed::new("[]".into(), true).is_none());

    // What is told of an object is what is read again, whatever the server sent beside it.
    let cache = Cache::<kube::core::PartialObjectMeta<ConfigMap>>::compact(false, true);
    let told = cache.read(&Text::of(text).unwrap()).unwrap();
    let first = typed::<kube::core::PartialObjectMeta<ConfigMap>>(&told.object).unwrap();
    cache.inner.wrote(told);
    let key = Key::cluster("a");
    cache.inner.read().pool().remove(&key);
    let again = cache.get(&key).unwrap();
    assert_eq!((&again.types, &again.metadata), (&first.types, &first.metadata));
}
