//! What a request costs in-process, transport aside: create, get, list, patch, apply, and the fan-out of a watch.
#![allow(missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use homeostat_apiserver::ApiServer;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use support::{get, merge, post, send, server, watch};
use tokio::runtime::{Builder, Runtime};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// About 1 KB.
fn object(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "bench"}}, "data": {"a": "x".repeat(700), "b": "y".repeat(100)}})
}

async fn filled(n: usize) -> ApiServer {
    let s = server();
    for i in 0..n {
        assert_eq!(post(&s, CONFIGMAPS, object(&format!("o-{i:06}"))).await.code, 201);
    }
    s
}

fn start(c: &mut Criterion) {
    let rt = runtime();
    c.bench_function("start", |b| b.iter(|| rt.block_on(async { server() })));
}

fn writes(c: &mut Criterion) {
    let rt = runtime();
    let s = rt.block_on(filled(1000));
    let mut n = 0;
    c.bench_function("create", |b| {
        b.iter_batched(
            || {
                n += 1;
                object(&format!("n-{n}")).to_string()
            },
            |body| {
                rt.block_on(async {
                    assert_eq!(send(&s, Method::POST, CONFIGMAPS, JSON, body).await.status(), 201)
                })
            },
            BatchSize::SmallInput,
        )
    });
    let path = format!("{CONFIGMAPS}/o-000001");
    c.bench_function("merge patch", |b| {
        b.iter(|| {
            n += 1;
            rt.block_on(async {
                assert_eq!(merge(&s, &path, json!({"data": {"n": n.to_string()}})).await.code, 200)
            })
        })
    });
    let apply = format!("{CONFIGMAPS}/applied?fieldManager=bench");
    let kind = "application/apply-patch+yaml";
    let body = |v: String| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"v": v}})
            .to_string()
    };
    c.bench_function("apply, one field", |b| {
        b.iter(|| {
            n += 1;
            rt.block_on(async {
                assert!(
                    send(&s, Method::PATCH, &apply, kind, body(n.to_string())).await.status().is_success()
                )
            })
        })
    });
    c.bench_function("apply, nothing", |b| {
        b.iter(|| {
            rt.block_on(async {
                assert_eq!(send(&s, Method::PATCH, &apply, kind, body("same".into())).await.status(), 200)
            })
        })
    });
    let other = format!("{CONFIGMAPS}/applied?fieldManager=other");
    c.bench_function("apply, a conflict", |b| {
        b.iter(|| {
            rt.block_on(async {
                assert_eq!(send(&s, Method::PATCH, &other, kind, body("theirs".into())).await.status(), 409)
            })
        })
    });
}

/// The same create where no policy is for it, and where one is.
fn policies(c: &mut Criterion) {
    const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
    let rt = runtime();
    for (name, resources) in
        [("create, a policy for others", "secrets"), ("create, a policy of three expressions", "configmaps")]
    {
        let s = rt.block_on(filled(1000));
        let policy = json!({"metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resources]}]},
            "validations": [
                {"expression": "size(object.data) < 100", "message": "too many keys"},
                {"expression": "!has(object.metadata.labels) || object.metadata.labels.all(k, !k.startsWith('internal/'))"},
                {"expression": "request.operation == 'CREATE' || oldObject.data.a == object.data.a"}]}});
        let binding =
            json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}});
        rt.block_on(async {
            assert_eq!(post(&s, &format!("{GROUP}/validatingadmissionpolicies"), policy).await.code, 201);
            assert_eq!(
                post(&s, &format!("{GROUP}/validatingadmissionpolicybindings"), binding).await.code,
                201
            );
        });
        let mut n = 0;
        c.bench_function(name, |b| {
            b.iter_batched(
                || {
                    n += 1;
                    object(&format!("n-{n}")).to_string()
                },
                |body| {
                    rt.block_on(async {
                        assert_eq!(send(&s, Method::POST, CONFIGMAPS, JSON, body).await.status(), 201)
                    })
                },
                BatchSize::SmallInput,
            )
        });
    }
}

fn reads(c: &mut Criterion) {
    let rt = runtime();
    let s = rt.block_on(filled(5000));
    c.bench_function("get", |b| b.iter(|| rt.block_on(get(&s, &format!("{CONFIGMAPS}/o-000777")))));
    let mut g = c.benchmark_group("list of 5,000");
    g.throughput(Throughput::Elements(5000)).sample_size(20);
    for (name, query) in [("all", ""), ("by label", "?labelSelector=app%3Dbench"), ("one page", "?limit=500")]
    {
        g.bench_function(name, |b| {
            b.iter(|| {
                rt.block_on(async {
                    let mut body =
                        send(&s, Method::GET, &format!("{CONFIGMAPS}{query}"), JSON, "").await.into_body();
                    let mut bytes = 0;
                    while let Some(frame) = body.frame().await {
                        bytes += frame.unwrap().into_data().map_or(0, |d| d.len());
                    }
                    bytes
                })
            })
        });
    }
    g.finish();
}

fn watches(c: &mut Criterion) {
    let rt = runtime();
    let s = rt.block_on(filled(1));
    let mut watchers: Vec<_> = (0..1000)
        .map(|_| rt.block_on(watch(&s, &format!("{CONFIGMAPS}?watch=true&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"))))
        .collect();
    let path = format!("{CONFIGMAPS}/o-000000");
    let mut n = 0;
    let mut g = c.benchmark_group("fan-out");
    g.throughput(Throughput::Elements(1000)).sample_size(20);
    g.bench_function("one event to 1,000 watchers", |b| {
        b.iter(|| {
            n += 1;
            rt.block_on(async {
                merge(&s, &path, json!({"data": {"n": n.to_string()}})).await;
                for w in &mut watchers {
                    assert!(w.frame().await > 0);
                }
            })
        })
    });
    g.finish();
}

criterion_group!(benches, start, writes, policies, reads, watches);
criterion_main!(benches);
