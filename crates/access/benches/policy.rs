//! How long a decision takes: the default policy plus a thousand tenants, for requests that come all the time.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use homeostat_access::{AUTHENTICATED, Attributes, Policy, User, bootstrap};
use serde_json::json;

fn policy() -> Policy {
    let mut policy = Policy::from_objects(&bootstrap::objects());
    for i in 0..1000 {
        let metadata = json!({"name": "tenant", "namespace": format!("tenant-{i}")});
        policy.upsert(&json!({"kind": "Role", "metadata": metadata, "rules": [
            {"verbs": ["get", "list", "watch", "create", "update", "patch", "delete"], "apiGroups": ["cache.example.com"],
             "resources": ["redisclusters", "redisclusters/status", "redisclusters/finalizers"]},
            {"verbs": ["get", "list", "watch"], "apiGroups": ["", "apps"], "resources": ["pods", "services", "statefulsets"]}]}));
        policy.upsert(&json!({"kind": "RoleBinding", "metadata": metadata, "roleRef": {"kind": "Role", "name": "tenant"},
            "subjects": [{"kind": "ServiceAccount", "name": "operator"}, {"kind": "Group", "name": "tenants"}]}));
    }
    policy
}

fn decisions(c: &mut Criterion) {
    let policy = policy();
    let operator = User::service_account("tenant-500", "operator", "u").authenticated();
    let member = User::new("m", ["tenants", AUTHENTICATED]);
    let root = User::administrator("root");
    let redis = Attributes::resource(&operator, "update", "cache.example.com", "redisclusters")
        .namespace("tenant-500")
        .subresource("status")
        .name("main");
    let mut group = c.benchmark_group("policy");
    for (name, a, want) in [
        ("operator updates a status", redis, true),
        (
            "member of a large group lists pods",
            Attributes { user: &member, subresource: "", verb: "list", group: "", resource: "pods", ..redis },
            true,
        ),
        ("operator is refused", Attributes { namespace: "tenant-1", ..redis }, false),
        ("administrator", Attributes { user: &root, ..redis }, true),
        ("discovery", Attributes::path(&operator, "get", "/apis"), true),
    ] {
        assert_eq!(policy.allows(&a).allowed, want, "{name}");
        group.bench_function(name, |b| b.iter(|| policy.allows(black_box(&a))));
    }
    group.finish();
}

fn start(c: &mut Criterion) {
    let objects = bootstrap::objects();
    c.bench_function("bootstrap objects", |b| b.iter(bootstrap::objects));
    c.bench_function("policy of the bootstrap objects", |b| {
        b.iter(|| Policy::from_objects(black_box(&objects)))
    });
}

criterion_group!(benches, decisions, start);
criterion_main!(benches);
