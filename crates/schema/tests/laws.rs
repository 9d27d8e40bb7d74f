//! Laws of field sets and of apply, on random sets, objects and histories.

use homeostat_schema::Schema;
use homeostat_schema::fields::{FieldSet, Path, PathElement};
use homeostat_schema::managed::{self, ApplyError, ManagerCx, OneVersion, keep_times};
use homeostat_schema::typed;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        5 => "[a-c]".prop_map(|s| PathElement::field(&s)),
        2 => (0..3i64, "[a-b<\"]{0,2}").prop_map(|(n, s)| {
            PathElement::key(vec![("port".into(), json!(n)), ("name".into(), json!(s))])
        }),
        1 => prop_oneof![Just(json!("x")), Just(json!(1)), Just(json!(1.5)), Just(json!(true))]
            .prop_map(PathElement::value),
        1 => (-2..3i64).prop_map(PathElement::Index),
    ]
}

fn set() -> impl Strategy<Value = FieldSet> {
    prop::collection::vec(prop::collection::vec(element(), 1..4), 0..12)
        .prop_map(|paths| paths.iter().map(Vec::as_slice).collect())
}

fn members(set: &FieldSet) -> Vec<Path> {
    let mut paths = set.paths();
    paths.sort();
    paths
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sets_read_back_from_their_json(set in set()) {
        prop_assert_eq!(&FieldSet::parse(&set.to_value()).unwrap(), &set);
        let text: Value = serde_json::from_str(&set.to_json()).unwrap();
        prop_assert_eq!(&text, &set.to_value());
        prop_assert_eq!(set.len(), set.paths().len());
        for path in set.paths() {
            prop_assert!(set.has(&path.0));
        }
    }

    #[test]
    fn sets_are_sets(a in set(), b in set()) {
        let has = |s: &FieldSet, p: &Path| s.has(&p.0);
        let union = a.union(&b);
        let both = a.intersection(&b);
        let rest = a.difference(&b);
        for path in members(&union) {
            prop_assert!(has(&a, &path) || has(&b, &path));
            prop_assert_eq!(has(&both, &path), has(&a, &path) && has(&b, &path));
            prop_assert_eq!(has(&rest, &path), has(&a, &path) && !has(&b, &path));
        }
        prop_assert_eq!(union.len() + both.len(), a.len() + b.len());
        prop_assert_eq!(&union, &b.union(&a));
        prop_assert_eq!(&rest.union(&both), &a);
        prop_assert_eq!(both.is_empty(), !a.intersects(&b));
        prop_assert!(both.is_subset(&a) && a.is_subset(&union) && rest.is_subset(&a));
        prop_assert_eq!(a.is_subset(&b), rest.is_empty());
        prop_assert!(a.leaves().is_subset(&a));
    }

    #[test]
    fn a_recursive_difference_takes_what_is_below(a in set(), b in set()) {
        let left = a.recursive_difference(&b);
        for path in members(&a) {
            let gone = (1..=path.0.len()).any(|n| b.has(&path.0[..n]));
            prop_assert_eq!(left.has(&path.0), !gone);
        }
    }

    #[test]
    fn any_json_is_a_set_or_an_error(value in json_value()) {
        if let Ok(set) = FieldSet::parse(&value) {
            prop_assert_eq!(FieldSet::parse(&set.to_value()).unwrap(), set);
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), "[a-z]?".prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(
                prop_oneof![
                    "f:[a-b]",
                    "k:\\{\"a\":[0-9]\\}",
                    "v:[0-9]?",
                    "i:-?[0-9x]",
                    ".",
                    "x:y",
                    "[a-z]{0,2}"
                ],
                inner,
                0..4
            )
            .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn schema() -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "users": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "args": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
        "auth": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {
                "name": {"type": "string"}, "value": {"type": "integer"},
                "nested": {"type": "object", "properties": {"deep": {"type": "string"}}}}}},
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
    }}}}))
    .unwrap()
}

/// A configuration of some of the fields; values are few, so that managers meet.
fn configuration() -> impl Strategy<Value = Value> {
    let item =
        (0..3u8, prop::option::of(0..2i64), prop::option::of("[xy]")).prop_map(|(name, value, deep)| {
            let mut item = json!({"name": format!("i{name}")});
            if let Some(value) = value {
                item["value"] = json!(value);
            }
            if let Some(deep) = deep {
                item["nested"] = json!({"deep": deep});
            }
            item
        });
    // Never empty: an empty list that merges is stored but names nothing, and so has no owner.
    let items = prop::collection::vec(item, 1..4).prop_map(|items| {
        let mut seen = Vec::new();
        let once: Vec<Value> = items
            .into_iter()
            .filter(|i| {
                let new = !seen.contains(&i["name"]);
                seen.push(i["name"].clone());
                new
            })
            .collect();
        json!(once)
    });
    let map = || prop::collection::btree_map("[a-c]", "[xy]", 0..3).prop_map(|m| json!(m));
    let list = || prop::collection::vec("[a-c]", 0..3).prop_map(|l| json!(l));
    let set = prop::collection::btree_set("[a-d]", 1..4).prop_map(|l| json!(l));
    let extra =
        prop_oneof![map(), list(), Just(json!({"a": {"b": 1}, "c": [1]})), Just(json!({"a": "text"}))]
            .prop_map(|v| json!({"any": v}));
    let field = |name: &'static str, value: BoxedStrategy<Value>| {
        prop::option::of(value).prop_map(move |v| v.map(|v| (name.to_owned(), v)))
    };
    (
        field("replicas", (0..2i64).prop_map(|n| json!(n)).boxed()),
        field("labels", map().boxed()),
        field("users", set.boxed()),
        field("args", list().boxed()),
        field("auth", map().boxed()),
        field("items", items.boxed()),
        field("extra", extra.boxed()),
    )
        .prop_map(|(a, b, c, d, e, f, g)| {
            let spec: Map<String, Value> = [a, b, c, d, e, f, g].into_iter().flatten().collect();
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
        })
}

struct World {
    schema: Schema,
    nothing: FieldSet,
}

impl World {
    fn new() -> Self {
        Self { schema: schema(), nothing: FieldSet::new() }
    }

    fn cx<'a>(&'a self, manager: &'a str) -> ManagerCx<'a> {
        ManagerCx {
            schema: &self.schema,
            api_version: "example.com/v1",
            kind: "Thing",
            manager,
            subresource: "",
            now: "2024-01-01T00:00:00Z",
            reset: &self.nothing,
            versions: &OneVersion,
        }
    }

    /// Applies, and stores as a server does.
    fn apply(&self, live: &Value, applied: &Value, manager: &str, force: bool) -> Result<Value, ApplyError> {
        let mut new = managed::apply(live, applied, &self.cx(manager), force)?;
        self.schema.decode(&mut new).unwrap();
        if live.is_object() {
            keep_times(live, &mut new);
        } else {
            new["metadata"]["uid"] = json!("u");
        }
        Ok(new)
    }
}

/// All fields that someone owns.
fn owned(object: &Value) -> FieldSet {
    let mut all = FieldSet::new();
    for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
        all = all.union(&FieldSet::parse(&entry["fieldsV1"]).unwrap());
    }
    all
}

#[derive(Clone, Debug)]
enum Write {
    Apply { manager: u8, configuration: Value },
    Update { manager: u8, configuration: Value },
}

fn history() -> impl Strategy<Value = Vec<Write>> {
    let write = (any::<bool>(), 0..3u8, configuration()).prop_map(|(apply, manager, configuration)| {
        if apply { Write::Apply { manager, configuration } } else { Write::Update { manager, configuration } }
    });
    prop::collection::vec(write, 0..5)
}

/// The object after a history of forced applies and updates.
fn live(world: &World, history: &[Write]) -> Value {
    let mut live = Value::Null;
    for write in history {
        live = match write {
            Write::Apply { manager, configuration } => {
                world.apply(&live, configuration, &format!("m{manager}"), true).unwrap()
            }
            Write::Update { manager, configuration } => {
                let mut new = configuration.clone();
                if live.is_object() {
                    new["metadata"] = live["metadata"].clone();
                }
                managed::update(&live, &mut new, &world.cx(&format!("m{manager}")));
                new["metadata"]["uid"] = json!("u");
                new
            }
        };
    }
    live
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn applying_twice_is_applying_once(history in history(), applied in configuration()) {
        let world = World::new();
        let once = world.apply(&live(&world, &history), &applied, "m0", true).unwrap();
        let twice = world.apply(&once, &applied, "m0", false).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn what_is_applied_is_there_and_owned(history in history(), applied in configuration()) {
        let world = World::new();
        let after = world.apply(&live(&world, &history), &applied, "m0", true).unwrap();
        let set = typed::field_set(&applied, &world.schema).difference(&FieldSet::of(&[
            "apiVersion", "kind", "metadata.name",
        ]));
        prop_assert!(set.is_subset(&owned(&after)), "{set} is not all owned in {after}");
        let mut again = after.clone();
        typed::merge(&mut again, &applied, &world.schema);
        prop_assert_eq!(&again, &after, "applied values are in the result");
    }

    #[test]
    fn nobody_owns_what_is_not_there(history in history()) {
        let world = World::new();
        let object = live(&world, &history);
        if object.is_object() {
            let there = all_fields(&object, &world);
            let owned = owned(&object);
            prop_assert!(owned.is_subset(&there), "{} is owned but not in {object}", owned.difference(&there));
        }
    }

    #[test]
    fn a_refused_apply_conflicts_only_with_others(history in history(), applied in configuration()) {
        let world = World::new();
        let before = live(&world, &history);
        // An object without managers gets one that has all that was there.
        prop_assume!(!before.is_object() || before["metadata"]["managedFields"].is_array());
        let others = {
            let mut all = FieldSet::new();
            for entry in before["metadata"]["managedFields"].as_array().into_iter().flatten() {
                if !(entry["manager"] == "m0" && entry["operation"] == "Apply") {
                    all = all.union(&FieldSet::parse(&entry["fieldsV1"]).unwrap());
                }
            }
            all
        };
        match world.apply(&before, &applied, "m0", false) {
            Ok(after) => prop_assert_eq!(world.apply(&before, &applied, "m0", true).unwrap(), after),
            Err(ApplyError::Conflicts(conflicts)) => {
                prop_assert!(!conflicts.is_empty());
                for conflict in conflicts {
                    prop_assert!(others.has(&conflict.path.0));
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn unrelated_managers_do_not_depend_on_their_order(a in configuration(), b in configuration()) {
        let world = World::new();
        let start = world.apply(&Value::Null, &json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "t"}, "spec": {}}), "base", true).unwrap();
        let mut b = b;
        let spec = b["spec"].as_object_mut().unwrap();
        spec.retain(|key, _| a["spec"].get(key).is_none());
        let ab = world.apply(&world.apply(&start, &a, "a", false).unwrap(), &b, "b", false).unwrap();
        let ba = world.apply(&world.apply(&start, &b, "b", false).unwrap(), &a, "a", false).unwrap();
        prop_assert_eq!(sorted(&ab), sorted(&ba));
    }

    #[test]
    fn giving_up_and_applying_again_gives_the_same_object(
        a in configuration(), given_up in any::<u8>(), other in configuration()
    ) {
        let world = World::new();
        let start = world.apply(&Value::Null, &other, "other", true).unwrap();
        let first = world.apply(&start, &a, "m", true).unwrap();
        let mut less = a.clone();
        let mut field = 0;
        less["spec"].as_object_mut().unwrap().retain(|_, _| {
            field += 1;
            given_up & (1 << field) == 0
        });
        let second = world.apply(&first, &less, "m", true).unwrap();
        let third = world.apply(&second, &a, "m", true).unwrap();
        prop_assert_eq!(sorted(&third), sorted(&first));
    }

    #[test]
    fn a_sole_manager_gets_exactly_what_it_applies(a in configuration(), b in configuration()) {
        let world = World::new();
        let first = world.apply(&Value::Null, &a, "m", false).unwrap();
        let second = world.apply(&first, &b, "m", false).unwrap();
        let fresh = world.apply(&Value::Null, &b, "m", false).unwrap();
        let owns = |o: &Value| owned(o);
        prop_assert_eq!(owns(&second), owns(&fresh));
        let (second, fresh) = (typed::field_set(&second, &world.schema), typed::field_set(&fresh, &world.schema));
        prop_assert_eq!(second.difference(&fresh), FieldSet::new());
    }
}

/// Every path of an object, parents included.
fn all_fields(object: &Value, world: &World) -> FieldSet {
    let mut owner = object.clone();
    owner["metadata"] = json!({});
    managed::update(&Value::Null, &mut owner, &world.cx("all"));
    let mut all = owned(&owner).union(&typed::field_set(object, &world.schema));
    // Updates own objects that they make; applies own the fields of objects.
    for path in all.clone().paths() {
        for n in 1..path.0.len() {
            all.insert(&path.0[..n]);
        }
    }
    all
}

/// The object with the lists sorted whose order depends on who came first.
fn sorted(object: &Value) -> Value {
    let mut object = object.clone();
    for pointer in ["/spec/users", "/spec/items", "/metadata/managedFields"] {
        if let Some(list) = object.pointer_mut(pointer).and_then(Value::as_array_mut) {
            list.sort_by_key(ToString::to_string);
        }
    }
    // Empty or absent is the same here: nobody owns it.
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|_, v| !v.as_array().is_some_and(Vec::is_empty));
    }
    if let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
        for entry in entries {
            entry.as_object_mut().unwrap().remove("time");
        }
    }
    object
}
