//! A 2 KB object against a schema of 500 fields, with and without 20 rules in CEL: what every write of a custom
//! resource costs here.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use homeostat_schema::Schema;
use homeostat_schema::decode::{MAX_DEPTH, parse_json};
use serde_json::{Map, Value, json};

/// Ten sections of fifty fields: texts with patterns, numbers with ranges, lists, maps, defaults.
fn schema() -> Value {
    let mut sections = Map::new();
    for s in 0..10 {
        let mut fields = Map::new();
        for f in 0..46 {
            let field = match f % 4 {
                0 => json!({"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}),
                1 => json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535}),
                2 => json!({"type": "string", "enum": ["Always", "IfNotPresent", "Never"]}),
                _ => json!({"type": "boolean"}),
            };
            fields.insert(format!("field{f}"), field);
        }
        fields.insert("kind".into(), json!({"type": "string", "default": "Plain"}));
        fields.insert("labels".into(), json!({"type": "object", "additionalProperties": {"type": "string"}}));
        fields.insert(
            "ports".into(),
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"}}}}),
        );
        sections.insert(format!("section{s}"), json!({"type": "object", "properties": fields}));
    }
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": sections}}})
}

fn object() -> Value {
    let section = json!({
        "field0": "a-name", "field1": 8080, "field2": "Always", "field3": true, "field4": "another-name",
        "field5": 1, "field6": "Never", "labels": {"app": "web", "tier": "front"},
        "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
    });
    let sections: Map<String, Value> = (0..8).map(|s| (format!("section{s}"), section.clone())).collect();
    json!({"apiVersion": "bench.example.com/v1", "kind": "Bench",
        "metadata": {"name": "bench", "labels": {"a": "b"}}, "spec": sections})
}

/// The schema with two rules at each section.
fn ruled() -> Value {
    let mut schema = schema();
    let sections = schema["properties"]["spec"]["properties"].as_object_mut().unwrap();
    for section in sections.values_mut() {
        section["x-kubernetes-validations"] = json!([
            {"rule": "!has(self.field1) || self.field1 >= 0 && self.field1 < 65536", "message": "field1 is a port"},
            {"rule": "!has(self.ports) || self.ports.all(p, p.name != '' && p.port > 0)",
                "messageExpression": "'ports: %d'.format([self.ports.size()])"},
        ]);
    }
    schema
}

fn bench(c: &mut Criterion) {
    let source = schema();
    let schema = Schema::compile(&source).unwrap();
    let text = object().to_string();
    let object = object();
    let mut group = c.benchmark_group("schema");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("parse_json", |b| b.iter(|| parse_json(black_box(text.as_bytes()), MAX_DEPTH)));
    group.bench_function("clone", |b| b.iter(|| black_box(&object).clone()));
    group.bench_function("decode", |b| {
        b.iter_batched_ref(|| object.clone(), |o| schema.decode(o), criterion::BatchSize::SmallInput);
    });
    group.bench_function("default", |b| {
        b.iter_batched_ref(|| object.clone(), |o| schema.default(o), criterion::BatchSize::SmallInput);
    });
    let mut filled = object.clone();
    schema.default(&mut filled);
    group.bench_function("validate", |b| b.iter(|| schema.validate(black_box(&filled), None)));
    group
        .bench_function("validate_update", |b| b.iter(|| schema.validate(black_box(&filled), Some(&filled))));
    // As a write does it: unknown fields go, defaults come, what results is judged.
    let ruled = Schema::compile(&ruled()).unwrap();
    let write = |o: &mut Value| {
        ruled.prune(o);
        ruled.default(o);
        assert!(ruled.validate(o, None).is_empty());
    };
    group.bench_function("prune, default and validate with 20 rules", |b| {
        b.iter_batched_ref(|| object.clone(), write, criterion::BatchSize::SmallInput);
    });
    group.bench_function("validate with 20 rules", |b| b.iter(|| ruled.validate(black_box(&filled), None)));
    group.finish();
    c.bench_function("compile_500_fields", |b| b.iter(|| Schema::compile(black_box(&source))));
}

criterion_group!(benches, bench);
criterion_main!(benches);
