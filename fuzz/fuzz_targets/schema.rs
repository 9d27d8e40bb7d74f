//! The schema compiler: any JSON as a CRD's schema, and any JSON as an object of it.
//!
//! The input is two JSON documents with a line break between them. Nothing may panic or run for ever; a CRD that is
//! accepted makes a resource; what was pruned or defaulted once stays as it is.
#![no_main]

use homeostat_resources::crd;
use homeostat_schema::Schema;
use homeostat_schema::decode::{MAX_DEPTH, parse_json};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |b| *b == b'\n');
    let mut next = || parse_json(parts.next().unwrap_or_default(), MAX_DEPTH).map(|(value, _)| value);
    let Ok(source) = next() else { return };
    let object = next().unwrap_or_else(|_| json!({}));
    registers(&source);
    if let Ok(schema) = Schema::compile(&source) {
        serves(&schema, object);
    }
});

fn registers(source: &Value) {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": source}}]},
    });
    crd::default(&mut definition);
    crd::prepare_create(&mut definition);
    let refused = !crd::validate_create(&definition).is_empty();
    if let Err(why) = crd::to_resource(&definition, 1) {
        assert!(refused, "accepted, but no resource: {why}");
    }
}

fn serves(schema: &Schema, mut object: Value) {
    schema.validate(&object, None);
    let mut pruned = object.clone();
    schema.prune(&mut pruned);
    assert!(schema.prune(&mut pruned).is_empty(), "pruned twice");
    schema.default(&mut object);
    let once = object.clone();
    schema.default(&mut object);
    assert_eq!(object, once, "defaulted twice");
}
