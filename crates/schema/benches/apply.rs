//! Server-side apply on an object of a Deployment's size: the hot path of every operator.
//!
//! The definitions are the project's own. Times are per call, without parsing and storing.

use std::hint::black_box;
use std::path::PathBuf;

use criterion::{Criterion, criterion_group, criterion_main};
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx, OneVersion, keep_times};
use homeostat_schema::{Definitions, Schema, patch};
use serde_json::{Map, Value, json};

fn schema() -> Schema {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../resources/data/definitions");
    let mut all = Map::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let part: Value = serde_json::from_str(&text).unwrap();
        all.extend(part.as_object().unwrap().clone());
    }
    let definitions = Definitions::parse(Value::Object(all).to_string().as_bytes()).unwrap();
    Schema::builtin(definitions, "io.k8s.api.apps.v1.Deployment").unwrap()
}

fn deployment() -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example.com/{name}:1.27.3"),
            "args": ["--config=/etc/app/config.yaml", "--verbosity=2"],
            "env": (0..6).map(|i| json!({"name": format!("VARIABLE_{i}"), "value": format!("value {i}")}))
                .collect::<Vec<_>>(),
            "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
            "livenessProbe": {"httpGet": {"path": "/livez", "port": "http"}, "initialDelaySeconds": 10},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}, {"name": "data", "mountPath": "/data"}]
        })
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web", "team": "shop", "tier": "front"},
            "annotations": {"example.com/owner": "shop", "example.com/docs": "https://docs.example.com/web"}},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {"app": "web", "team": "shop"}},
                "spec": {
                    "containers": [container("web"), container("proxy")],
                    "serviceAccountName": "web",
                    "volumes": [{"name": "config", "configMap": {"name": "web"}}, {"name": "data", "emptyDir": {}}]
                }
            }
        }
    })
}

fn bench(c: &mut Criterion) {
    let schema = schema();
    let nothing = FieldSet::new();
    let cx = |manager: &'static str| ManagerCx {
        schema: &schema,
        api_version: "apps/v1",
        kind: "Deployment",
        manager,
        subresource: "",
        now: "2024-01-01T00:00:00Z",
        reset: &nothing,
        versions: &OneVersion,
    };
    let applied = deployment();
    let mut live = managed::apply(&Value::Null, &applied, &cx("operator"), false).unwrap();
    live["metadata"]["uid"] = json!("u");
    // A second manager, as a controller's status or an autoscaler is one.
    let mut scaled = live.clone();
    scaled["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(30);
    managed::update(&live, &mut scaled, &cx("controller"));
    let live = scaled;

    let mut group = c.benchmark_group("deployment");
    group.bench_function("apply, nothing changes", |b| {
        b.iter(|| {
            let mut new =
                managed::apply(black_box(&live), black_box(&applied), &cx("operator"), false).unwrap();
            keep_times(&live, &mut new);
            new
        });
    });
    let mut changed = applied.clone();
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example.com/web:1.28.0");
    group.bench_function("apply, one field changes", |b| {
        b.iter(|| managed::apply(black_box(&live), black_box(&changed), &cx("operator"), false).unwrap());
    });
    let mut given_up = applied.clone();
    given_up["spec"]["template"]["spec"]["containers"][1].as_object_mut().unwrap().remove("livenessProbe");
    group.bench_function("apply, one field is given up", |b| {
        b.iter(|| managed::apply(black_box(&live), black_box(&given_up), &cx("operator"), false).unwrap());
    });
    let conflicting = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 5}});
    group.bench_function("apply, one conflict", |b| {
        b.iter(|| {
            managed::apply(black_box(&live), black_box(&conflicting), &cx("scaler"), false).unwrap_err()
        });
    });
    group.bench_function("apply, a new object", |b| {
        b.iter(|| managed::apply(&Value::Null, black_box(&applied), &cx("operator"), false).unwrap());
    });
    group.bench_function("update, one field changes", |b| {
        b.iter_batched(
            || {
                let mut new = live.clone();
                new["spec"]["replicas"] = json!(4);
                new
            },
            |mut new| {
                managed::update(black_box(&live), &mut new, &cx("scaler"));
                new
            },
            criterion::BatchSize::SmallInput,
        );
    });
    let strategic = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "x"}]}}}});
    group.bench_function("strategic merge patch", |b| {
        b.iter(|| patch::strategic(black_box(&live), black_box(&strategic), schema.root()).unwrap());
    });
    let entries = live["metadata"]["managedFields"][0]["fieldsV1"].clone();
    group.bench_function("fieldsV1, read and write", |b| {
        b.iter(|| FieldSet::parse(black_box(&entries)).unwrap().to_value());
    });
    group.bench_function("for scale: clone of the object", |b| b.iter(|| black_box(&live).clone()));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = bench
}
criterion_main!(benches);
