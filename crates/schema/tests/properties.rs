//! Random schemas and objects: nothing panics, and what was pruned, decoded or defaulted once stays as it is.

use homeostat_schema::Schema;
use homeostat_schema::decode::{MAX_DEPTH, parse_json, parse_yaml};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NAMES: [&str; 8] = ["a", "b", "c", "name", "metadata", "kind", "apiVersion", "spec"];

/// Pieces of rules in CEL.
const TOKENS: [&str; 44] = [
    "self",
    "oldSelf",
    ".a",
    ".b",
    ".?a",
    "[0]",
    "[?1]",
    " == ",
    " < ",
    " + ",
    " - ",
    " / ",
    " % ",
    " && ",
    " || ",
    "!",
    "-",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ", ",
    " ? ",
    " : ",
    " in ",
    "1",
    "9223372036854775807",
    "2u",
    "1.5",
    "'x'",
    "b'x'",
    "null",
    "true",
    ".all(x, x > 0)",
    ".map(x, x)",
    ".size()",
    ".substring(1, 2)",
    "'%d'.format([1])",
    "int(",
    "string(",
    "duration('1s')",
    "quantity('1Gi')",
];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(&NAMES[..]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-20_i64..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::sample::select(&["", "a", "x-y", "10.0.0.1", "3 weeks", "2024-01-02", "ünïcode", "1Gi"][..])
            .prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..5)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(name(), value(), 0..6).prop_map(|m| Value::Object(m.into_iter().collect()))
}

/// Keywords that any schema may have; most make no sense together, which is the point.
fn keywords() -> impl Strategy<Value = Map<String, Value>> {
    let one = prop_oneof![
        prop::sample::select(&["object", "array", "string", "integer", "number", "boolean"][..])
            .prop_map(|t| ("type", json!(t))),
        any::<bool>().prop_map(|b| ("nullable", json!(b))),
        scalar().prop_map(|v| ("default", v)),
        prop::collection::vec(scalar(), 0..3).prop_map(|v| ("enum", json!(v))),
        (-5.0..5.0_f64).prop_map(|n| ("minimum", json!(n))),
        any::<f64>().prop_map(|n| ("maximum", json!(n))),
        any::<bool>().prop_map(|b| ("exclusiveMinimum", json!(b))),
        prop::sample::select(&[-1.0, 0.0, 0.5, 2.0, 1e300][..]).prop_map(|n| ("multipleOf", json!(n))),
        (-1_i64..4).prop_map(|n| ("minLength", json!(n))),
        (-1_i64..4).prop_map(|n| ("maxLength", json!(n))),
        prop::sample::select(&["^a", r"^\d+$", "[[:alpha:]-]", "a{2}"][..])
            .prop_map(|p| ("pattern", json!(p))),
        (0_i64..4).prop_map(|n| ("minItems", json!(n))),
        (0_i64..4).prop_map(|n| ("maxItems", json!(n))),
        (0_i64..4).prop_map(|n| ("maxProperties", json!(n))),
        prop::collection::vec(name(), 0..3).prop_map(|v| ("required", json!(v))),
        prop::sample::select(
            &["date", "ipv4", "duration", "int32", "byte", "uri", "email", "cidr", "nonsense"][..]
        )
        .prop_map(|f| ("format", json!(f))),
        any::<bool>().prop_map(|b| ("x-kubernetes-preserve-unknown-fields", json!(b))),
        any::<bool>().prop_map(|b| ("x-kubernetes-embedded-resource", json!(b))),
        any::<bool>().prop_map(|b| ("x-kubernetes-int-or-string", json!(b))),
        prop::sample::select(&["set", "map", "atomic"][..])
            .prop_map(|t| ("x-kubernetes-list-type", json!(t))),
        prop::collection::vec(name(), 0..2).prop_map(|v| ("x-kubernetes-list-map-keys", json!(v))),
        any::<bool>().prop_map(|b| ("additionalProperties", json!(b))),
    ];
    prop::collection::vec(one, 0..6)
        .prop_map(|list| list.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}

fn schema() -> impl Strategy<Value = Value> {
    keywords().prop_map(Value::Object).prop_recursive(4, 30, 4, |inner| {
        let part = prop_oneof![
            prop::collection::btree_map(name(), inner.clone(), 0..4)
                .prop_map(|m| ("properties", Value::Object(m.into_iter().collect()))),
            inner.clone().prop_map(|s| ("additionalProperties", s)),
            inner.clone().prop_map(|s| ("items", s)),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|v| ("anyOf", Value::from(v))),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|v| ("oneOf", Value::from(v))),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|v| ("allOf", Value::from(v))),
            inner.prop_map(|s| ("not", s)),
        ];
        (keywords(), prop::collection::vec(part, 0..3)).prop_map(|(mut map, parts)| {
            map.extend(parts.into_iter().map(|(k, v)| (k.to_owned(), v)));
            Value::Object(map)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_nothing_is_changed_twice(schema in schema(), new in object(), old in object()) {
        let schema = Schema::compile(&schema).unwrap();

        let mut pruned = new.clone();
        schema.prune(&mut pruned);
        let once = pruned.clone();
        prop_assert_eq!(schema.prune(&mut pruned), Vec::<String>::new());
        prop_assert_eq!(&pruned, &once);

        let mut filled = new.clone();
        schema.default(&mut filled);
        let once = filled.clone();
        schema.default(&mut filled);
        prop_assert_eq!(&filled, &once);

        let mut decoded = new.clone();
        if schema.decode(&mut decoded).is_ok() {
            let once = decoded.clone();
            prop_assert_eq!(schema.decode(&mut decoded), Ok(Vec::new()));
            prop_assert_eq!(&decoded, &once);
        }

        schema.validate(&new, None);
        schema.validate(&new, Some(&old));
        // What doesn't change never fails, but for apiVersion, kind and what is embedded.
        let unchanged = schema.validate(&new, Some(&new));
        let allowed = |path: &str| ["apiVersion", "kind", "metadata"].iter().any(|name| path.ends_with(name))
            || path.contains("metadata");
        prop_assert!(unchanged.iter().all(|e| allowed(&e.path)), "{:?}", unchanged);
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[\\[\\]{}:,\"\\\\a-z0-9 \n&*!|>-]{0,60}") {
        let _ = parse_json(&bytes, MAX_DEPTH);
        let _ = parse_json(text.as_bytes(), MAX_DEPTH);
        let _ = parse_yaml(&bytes, MAX_DEPTH);
        let _ = parse_yaml(text.as_bytes(), MAX_DEPTH);
    }

    #[test]
    fn rules_never_panic(
        tokens in prop::collection::vec(prop::sample::select(&TOKENS[..]), 1..12),
        old in any::<bool>(),
        new in object(),
    ) {
        let rule = tokens.concat();
        let schema = Schema::compile(&json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": rule, "messageExpression": rule}],
        })).unwrap();
        let before = old.then(|| json!({"a": [1], "b": "x"}));
        let errors = schema.validate(&new, before.as_ref());
        // What no parser takes is never passed over.
        if homeostat_schema::cel::check(&rule).is_err() {
            prop_assert!(!errors.is_empty(), "{rule}");
        }
    }

    #[test]
    fn json_reads_back_what_was_written(value in value()) {
        let text = value.to_string();
        let (read, duplicates) = parse_json(text.as_bytes(), MAX_DEPTH).unwrap();
        prop_assert!(duplicates.is_empty());
        // Numbers may be written otherwise, but a second reading changes nothing.
        prop_assert_eq!(parse_json(read.to_string().as_bytes(), MAX_DEPTH).unwrap().0, read);
    }
}

#[test]
fn deep_schemas_are_refused_and_deep_objects_walked() {
    let mut schema = json!({"type": "string"});
    for _ in 0..1000 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    assert!(Schema::compile(&schema).is_err());
    let schema =
        Schema::compile(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).unwrap();
    let text = format!("{{\"a\":{}1{}}}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
    let (mut object, _) = parse_json(text.as_bytes(), MAX_DEPTH).unwrap();
    schema.decode(&mut object).unwrap();
    schema.default(&mut object);
    assert!(schema.validate(&object, None).is_empty());
}
