//! Patches of any form, however wrong, give a document or a refusal; and the laws that patches have.

use homeostat_schema::patch::{json, merge, strategic};
use homeostat_schema::{Definitions, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[ab]?".prop_map(Value::from),
        Just(json!("replace")),
        Just(json!("delete")),
    ];
    let key = prop_oneof![
        4 => prop_oneof![Just("items"), Just("set"), Just("map"), Just("name"), Just("plain")].prop_map(str::to_owned),
        1 => prop_oneof![
            Just("$patch"), Just("$retainKeys"), Just("$setElementOrder/items"), Just("$setElementOrder/set"),
            Just("$deleteFromPrimitiveList/set"), Just("$deleteFromPrimitiveList"), Just("$setElementOrder"),
            Just("$setElementOrder/none")
        ]
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn null_in_list(v: &Value, inside: bool) -> bool {
    match v {
        Value::Null => inside,
        Value::Array(list) => list.iter().any(|v| null_in_list(v, true)),
        Value::Object(map) => map.values().any(|v| null_in_list(v, inside)),
        _ => false,
    }
}

/// A document has no directives.
fn document() -> impl Strategy<Value = Value> {
    value().prop_map(|mut v| {
        fn clean(v: &mut Value) {
            match v {
                Value::Object(map) => {
                    map.retain(|k, _| !k.starts_with('$'));
                    map.values_mut().for_each(clean);
                }
                Value::Array(list) => list.iter_mut().for_each(clean),
                _ => {}
            }
        }
        clean(&mut v);
        if v.is_object() { v } else { json!({"items": v}) }
    })
}

fn schema() -> Schema {
    let definitions = json!({"Node": {"type": "object", "properties": {
        "name": {"type": "string"},
        "items": {"type": "array", "items": {"$ref": "Node"},
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
        "map": {"type": "object", "additionalProperties": {"$ref": "Node"}},
        "plain": {"$ref": "Node"}
    }}});
    Schema::builtin(Definitions::parse(definitions.to_string().as_bytes()).unwrap(), "Node").unwrap()
}

fn operations() -> impl Strategy<Value = Value> {
    let path = "(/(items|set|map|name|0|1|-|-1|~1|x)){0,4}";
    let operation = (
        prop_oneof![
            Just("add"),
            Just("remove"),
            Just("replace"),
            Just("move"),
            Just("copy"),
            Just("test"),
            Just("x")
        ],
        path,
        path,
        value(),
    )
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
    prop::collection::vec(operation, 0..6).prop_map(Value::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_strategic_patch_gives_an_object_or_a_refusal(document in document(), patch in value()) {
        if let Ok(patched) = strategic(&document, &patch, schema().root()) {
            prop_assert!(patched.is_object());
        }
    }

    #[test]
    fn an_empty_patch_changes_nothing(document in document()) {
        prop_assert_eq!(strategic(&document, &json!({}), schema().root()).unwrap(), document.clone());
        prop_assert_eq!(merge(&document, &json!({})).unwrap(), document.clone());
        prop_assert_eq!(json(&document, &json!([])).unwrap(), document);
    }

    #[test]
    fn merging_twice_is_merging_once(document in document(), patch in value()) {
        // Nulls in lists are kept or dropped by what was there before.
        prop_assume!(!null_in_list(&patch, false));
        if let Ok(once) = merge(&document, &patch) {
            prop_assert_eq!(merge(&once, &patch).unwrap(), once);
        }
    }

    #[test]
    fn operations_apply_or_are_refused(document in document(), operations in operations()) {
        let _ = json(&document, &operations);
    }

    #[test]
    fn a_test_guards_what_follows(document in document(), mut operations in operations()) {
        operations.as_array_mut().unwrap().push(json!({"op": "test", "path": "/no/such", "value": 1}));
        prop_assert!(json(&document, &operations).is_err());
    }
}
