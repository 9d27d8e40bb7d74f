//! What it costs to register a large CRD (1.5 MB in three versions), and to print a table of 1,000 objects.

use criterion::{Criterion, criterion_group, criterion_main};
use homeostat_resources::crd;
use homeostat_resources::table::{Include, Printer};
use serde_json::{Map, Value, json};

/// What the bench registers has at least this many bytes of JSON.
const BYTES: usize = 1_500_000;

/// A schema of `depth` levels with `width` fields each, descriptions included.
fn schema(depth: usize, width: usize) -> Value {
    if depth == 0 {
        return json!({"type": "string", "description": "What this field is for, in a sentence or two. ".repeat(2)});
    }
    let field = |i: usize| {
        let inner = schema(depth - 1, width);
        let inner = if i % 4 == 3 { json!({"type": "array", "items": inner}) } else { inner };
        (format!("field{i}"), inner)
    };
    let properties: Map<String, Value> = (0..width).map(field).collect();
    json!({"type": "object", "description": "A part of the whole.", "required": ["field0"], "properties": properties})
}

fn definition() -> Value {
    let version = |name: &str| {
        let root = json!({"type": "object", "properties": {"spec": schema(4, 7), "status": schema(3, 10)}});
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": root},
            "subresources": {"status": {}}})
    };
    json!({"metadata": {"name": "bigs.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "bigs", "kind": "Big"},
        "versions": [version("v1alpha1"), version("v1beta1"), version("v1")]}})
}

fn register(c: &mut Criterion) {
    let sent = definition();
    let bytes = sent.to_string().len();
    assert!(bytes >= BYTES, "{bytes}");
    let megabytes = bytes as f64 / 1e6;
    c.bench_function(&format!("register a CRD of {megabytes:.1} MB"), |b| {
        b.iter(|| {
            let mut crd = sent.clone();
            crd::default(&mut crd);
            crd::prepare_create(&mut crd);
            assert!(crd::validate_create(&crd).is_empty());
            let resource = crd::to_resource(&crd, 1).expect("a valid CRD makes a resource");
            std::sync::LazyLock::force(&*resource.storage_version().schema);
            resource
        });
    });
}

fn print(c: &mut Criterion) {
    let crd = json!({"spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            "additionalPrinterColumns": [
                {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]}]}});
    let resource = crd::to_resource(&crd, 1).expect("a valid CRD makes a resource");
    let object = |i: usize| {
        json!({"metadata": {"name": format!("w{i}"), "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"conditions": [{"type": "Synced", "status": "True"}, {"type": "Ready", "status": "True"}]}})
    };
    let objects: Vec<Value> = (0..1000).map(object).collect();
    let now = "2026-01-02T00:00:00Z".parse().expect("a time");
    c.bench_function("print 1,000 objects", |b| {
        let printer = Printer::new(&resource, &resource.versions[0], Include::None, "v1");
        b.iter(|| printer.table(&objects, json!({}), true, now));
    });
}

criterion_group!(benches, register, print);
criterion_main!(benches);
