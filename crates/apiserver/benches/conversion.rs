//! A list of 1,000 objects, each stored in another version than it is asked for in: one call to a webhook over TLS.
//!
//! The webhook runs in the same process and on the same thread: its own part (parsing, answering) is in the time.
#![allow(missing_docs)]

#[path = "../tests/support/hook.rs"]
mod hook;
#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hook::{Hook, Reply, converted};
use serde_json::{Value, json};
use support::{get, post, server};
use tokio::runtime::Builder;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/example.com/v1/namespaces/default/gadgets";
const V2: &str = "/apis/example.com/v2/namespaces/default/gadgets";

fn crd(hook: &Hook) -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [version("v1"), version("v2")],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": hook.config()}},
        },
    })
}

/// About 1 KB.
fn gadget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {"a": "x".repeat(700), "b": "y".repeat(100)}})
}

fn conversion(c: &mut Criterion) {
    let rt = Builder::new_current_thread().enable_all().build().unwrap();
    let (s, hook) = rt.block_on(async {
        let hook = Hook::start(|review| Reply::Json(converted(review, |_| ()))).await;
        let s = server();
        assert_eq!(post(&s, CRDS, crd(&hook)).await.code, 201);
        while get(&s, V1).await.code != 200 {
            tokio::task::yield_now().await;
        }
        for i in 0..1000 {
            assert_eq!(post(&s, V1, gadget(&format!("g-{i:04}"))).await.code, 201);
        }
        (s, hook)
    });
    let mut g = c.benchmark_group("list of 1,000");
    g.throughput(Throughput::Elements(1000)).sample_size(20);
    for (name, path, calls) in [("as stored", V1, 0), ("converted by a webhook", V2, 1)] {
        g.bench_function(name, |b| {
            b.iter(|| {
                rt.block_on(async {
                    let before = hook.asked();
                    let list = get(&s, path).await;
                    assert_eq!(list.body["items"].as_array().map(Vec::len), Some(1000));
                    assert_eq!(hook.asked(), before + calls);
                })
            })
        });
    }
    g.finish();
}

criterion_group!(benches, conversion);
criterion_main!(benches);
