//! Laws: encoding and decoding are each other's inverse on every kind, and no bytes whatever make a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::generate::Generator;
use crate::descriptor::messages;
use crate::wire::Reader;
use crate::*;

fn object(api_version: &str, kind: &str, choices: &[u8]) -> Value {
    let mut value = Generator::new(choices).kind(api_version, kind);
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    value
}

fn all() -> Vec<(&'static str, &'static str)> {
    kinds().collect()
}

/// A kind with a place for another object of its own choosing is tested by cases, not at random.
fn check_round_trip(api_version: &str, kind: &str, choices: &[u8]) {
    let value = object(api_version, kind, choices);
    let bytes = encode(&value).unwrap_or_else(|e| panic!("{e}: {value}"));
    let back = decode(&bytes).unwrap_or_else(|e| panic!("{e}: {value}"));
    assert_eq!(back, value);
    assert_eq!(encode(&back).as_ref(), Ok(&bytes));
    let json = serde_json::to_vec(&value).unwrap();
    assert_eq!(encode_json(&json, api_version, kind).as_ref(), Ok(&bytes), "{value}");
    let mut quick = Vec::new();
    let at = messages().kind(api_version, kind).unwrap();
    assert!(crate::transcode::quickly(at, &json, &mut quick), "{value}");
}

#[test]
fn every_kind_comes_back_with_nothing_set_and_with_much_set() {
    for (api_version, kind) in all() {
        check_round_trip(api_version, kind, &[]);
        for seed in 0..8u32 {
            let mut state = seed.wrapping_mul(2_654_435_761) ^ 0x9e37;
            let choices: Vec<u8> = (0..4096)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            check_round_trip(api_version, kind, &choices);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_objects_come_back(at in 0usize..1000, choices in vec(any::<u8>(), 0..1500)) {
        let all = all();
        let (api_version, kind) = all[at % all.len()];
        check_round_trip(api_version, kind, &choices);
    }

    #[test]
    fn random_bytes_are_refused_or_read(at in 0usize..1000, bytes in vec(any::<u8>(), 0..300)) {
        let all = all();
        let (api_version, kind) = all[at % all.len()];
        let _ = decode(&bytes);
        let message = messages().kind(api_version, kind).unwrap();
        if let Ok(value) = crate::decode::message(message, &bytes) {
            // What was read can be written, times beyond what RFC 3339 has aside.
            let _ = encode_as(&value, api_version, kind);
        }
    }

    #[test]
    fn damaged_bodies_are_refused_or_read(
        at in 0usize..1000,
        choices in vec(any::<u8>(), 0..600),
        cut in any::<prop::sample::Index>(),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let all = all();
        let (api_version, kind) = all[at % all.len()];
        let mut bytes = encode(&object(api_version, kind, &choices)).unwrap();
        for (at, with) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        let _ = decode(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        let _ = decode(&bytes);
    }

    #[test]
    fn a_list_written_by_items_is_the_list(choices in vec(any::<u8>(), 0..900)) {
        for kind in ["PodList", "ConfigMapList", "List"] {
            let list = object("v1", kind, &choices);
            let mut writer = ListWriter::new("v1", kind).unwrap();
            for item in list["items"].as_array().into_iter().flatten() {
                match item.get("spec") {
                    Some(_) => writer.item(item).unwrap(),
                    None => writer.item_json(&serde_json::to_vec(item).unwrap()).unwrap(),
                }
            }
            prop_assert_eq!(writer.finish(&list["metadata"]), encode(&list));
        }
    }
}

#[test]
fn every_cut_of_a_body_is_told() {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}});
    let bytes = encode(&object).unwrap();
    for length in 0..bytes.len() - 4 {
        let got = decode(&bytes[..length]);
        match length {
            0 => assert_eq!(got, Err(Error::EmptyData)),
            1..=3 => assert_eq!(got, Err(Error::Prefix)),
            4 => assert_eq!(got, Err(Error::EmptyBody)),
            // After the version and kind nothing is missing that is known to be.
            21 => assert!(got.is_ok()),
            _ => assert_eq!(got, Err(Error::Truncated), "{length}"),
        }
    }
}

#[test]
fn depth_and_number_of_values_are_limited() {
    // A schema within a schema, each `not` of the one around it.
    let schema = messages().kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
    let field = |message: usize, name: &str| {
        let field = messages().get(message).fields.iter().find(|f| f.name == name).unwrap();
        let crate::descriptor::Type::Message(of) = field.of else { panic!("{name} is no message") };
        (field.number, of)
    };
    let mut path = Vec::new();
    let mut at = schema;
    for name in ["spec", "versions", "schema", "openAPIV3Schema"] {
        let (number, of) = field(at, name);
        path.push(number);
        at = of;
    }
    let (not, _) = field(at, "not");
    path.extend(std::iter::repeat_n(not, 100_000));
    let mut bytes = Vec::new();
    for number in path.into_iter().rev().take(5000) {
        let mut outer = Vec::new();
        crate::wire::put_bytes(&mut outer, number, &bytes);
        bytes = outer;
    }
    assert_eq!(crate::decode::message(at, &bytes), Err(Error::TooDeep));

    // Two bytes each make a container with all its fields.
    let pods = messages().kind("v1", "PodList").unwrap();
    let many = [0x12, 0].repeat(MAX_VALUES);
    assert_eq!(crate::decode::message(pods, &many), Err(Error::TooMany));

    let mut deep = json!({});
    for _ in 0..MAX_DEPTH {
        deep = json!({"not": deep});
    }
    let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": deep}}]}});
    assert_eq!(encode_as(&crd, "apiextensions.k8s.io/v1", "CustomResourceDefinition"), Err(Error::TooDeep));
}

#[test]
fn frames_of_a_watch_hold_their_length_the_event_and_the_object() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "7"}, "data": {"x": "y"},
    });
    let frame = encode_watch_event("ADDED", &object).unwrap();
    let (length, event) = frame.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, event.len());
    let at = messages().kind("v1", "WatchEvent").unwrap();
    assert_eq!(crate::decode::message(at, event), Ok(json!({"type": "ADDED", "object": object})));
    let json = object.to_string();
    assert_eq!(encode_watch_event_json("ADDED", json.as_bytes(), "v1", "ConfigMap").as_ref(), Ok(&frame));
    let mut reader = Reader::new(event);
    assert_eq!(reader.tag("WatchEvent"), Ok((1, 2)));
    assert_eq!(reader.bytes(), Ok(b"ADDED".as_slice()));
    assert!(matches!(encode_watch_event("ADDED", &json!({"kind": "Widget"})), Err(Error::NotMarshalable(_))));
}

#[test]
fn values_that_do_not_fit_are_named() {
    let check = |spec: Value, expect: &str| {
        let e = encode(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec})).unwrap_err();
        assert_eq!(e.to_string(), expect);
    };
    check(json!({"replicas": "3"}), "DeploymentSpec: \"3\" does not fit field replicas");
    check(json!({"replicas": 1_i64 << 31}), "DeploymentSpec: 2147483648 does not fit field replicas");
    check(json!({"template": []}), "PodTemplateSpec: [] does not fit field ");
    check(
        json!({"selector": {"matchLabels": ["a"]}}),
        "LabelSelector: [\"a\"] does not fit field matchLabels",
    );
}

#[test]
fn pieces_of_a_message_are_merged_as_protobuf_has_it() {
    let at = messages().kind("v1", "ConfigMap").unwrap();
    let half = |metadata: Value| {
        let mut out = Vec::new();
        let meta = messages().get(at).fields[0].of;
        let crate::descriptor::Type::Message(meta) = meta else { panic!("metadata is a message") };
        let mut inner = Vec::new();
        crate::encode::message(meta, &metadata, &mut inner).unwrap();
        // Only what is set: drop the fields that are written empty.
        let mut reader = Reader::new(&inner);
        let mut kept = Vec::new();
        while !reader.is_empty() {
            let (number, kind) = reader.tag("ObjectMeta").unwrap();
            if kind == crate::wire::BYTES {
                let bytes = reader.bytes().unwrap();
                if !bytes.is_empty() {
                    crate::wire::put_bytes(&mut kept, number, bytes);
                }
            } else {
                reader.skip(kind).unwrap();
            }
        }
        crate::wire::put_bytes(&mut out, 1, &kept);
        out
    };
    let mut bytes = half(json!({"name": "a"}));
    bytes.extend(half(json!({"namespace": "b"})));
    assert_eq!(crate::decode::message(at, &bytes), Ok(json!({"metadata": {"name": "a", "namespace": "b"}})));
}
