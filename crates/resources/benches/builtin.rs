//! What a write of a built-in type costs beyond its schema, and what the list of types costs at start.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use homeostat_model::{Entropy, GroupVersion};
use homeostat_resources::{Cx, builtin};
use serde_json::{Value, json};

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "n", "labels": {"app": "web"}},
        "spec": {
            "containers": [{
                "name": "app", "image": "registry.example.com/app:1.0", "ports": [{"containerPort": 8080}],
                "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "250m"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
                "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    })
}

fn bench(c: &mut Criterion) {
    c.bench_function("list of built-in types", |b| b.iter(|| black_box(builtin::resources())));
    let resources = builtin::resources();
    let pods = resources.iter().find(|r| &*r.id.resource == "pods").expect("pods are served");
    let (gv, entropy) = (GroupVersion::new("", "v1"), Entropy::seeded(1));
    let cx = Cx {
        now: "2026-01-02T03:04:05Z".parse().expect("a time"),
        entropy: &entropy,
        user: "u",
        groups: &[],
        subresource: "",
    };
    c.bench_function("default, prepare and validate a pod", |b| {
        b.iter_batched(
            pod,
            |mut pod| {
                pods.strategy.default(&gv, &mut pod);
                pods.strategy.prepare_create(&cx, &mut pod);
                assert!(pods.strategy.validate(&cx, &pod).is_empty());
                pod
            },
            criterion::BatchSize::SmallInput,
        );
    });
    let mut stored = pod();
    pods.strategy.default(&gv, &mut stored);
    pods.strategy.prepare_create(&cx, &mut stored);
    c.bench_function("row of a pod", |b| b.iter(|| pods.strategy.row(black_box(&stored), cx.now)));
}

criterion_group!(benches, bench);
criterion_main!(benches);
