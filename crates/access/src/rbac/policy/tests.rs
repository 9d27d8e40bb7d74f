//! Decisions of small policies, as recorded of the reference.

use serde_json::{Value, json};

use super::*;

fn objects() -> Vec<Value> {
    let role =
        |kind: &str, meta: Value, rules: Value| json!({"kind": kind, "metadata": meta, "rules": rules});
    let bind = |kind: &str, meta: Value, role: [&str; 2], subjects: Value| json!({"kind": kind, "metadata": meta, "roleRef": {"kind": role[0], "name": role[1]}, "subjects": subjects});
    vec![
        role(
            "Role",
            json!({"name": "reader", "namespace": "d"}),
            json!([
                {"apiGroups": ["cache.example.com"], "resources": ["redisclusters", "redisclusters/status"], "verbs": ["get", "list"]},
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["redis-auth"]},
            ]),
        ),
        bind(
            "RoleBinding",
            json!({"name": "reader", "namespace": "d"}),
            ["Role", "reader"],
            json!([
                {"kind": "User", "name": "eve"}, {"kind": "ServiceAccount", "name": "op", "namespace": "d"},
                {"kind": "ServiceAccount", "name": "local"},
            ]),
        ),
        role(
            "ClusterRole",
            json!({"name": "nodes"}),
            json!([
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]},
                {"nonResourceURLs": ["/logs*"], "verbs": ["get"]},
            ]),
        ),
        bind(
            "ClusterRoleBinding",
            json!({"name": "nodes"}),
            ["ClusterRole", "nodes"],
            json!([{"kind": "Group", "name": "ops"}]),
        ),
        bind(
            "RoleBinding",
            json!({"name": "dangling", "namespace": "d"}),
            ["Role", "missing"],
            json!([{"kind": "User", "name": "dave"}]),
        ),
        bind(
            "RoleBinding",
            json!({"name": "local-nodes", "namespace": "d"}),
            ["ClusterRole", "nodes"],
            json!([{"kind": "User", "name": "eve"}]),
        ),
    ]
}

fn check(policy: &Policy, a: Attributes<'_>, allowed: bool, reason: &str) {
    assert_eq!(policy.allows(&a), Decision { allowed, reason: reason.into() }, "{a:?}");
}

#[test]
fn decisions_and_their_reasons() {
    let p = Policy::from_objects(&objects());
    let eve = User::new("eve", [crate::AUTHENTICATED]);
    let redis = Attributes::resource(&eve, "list", "cache.example.com", "redisclusters");
    check(
        &p,
        redis.namespace("d"),
        true,
        r#"RBAC: allowed by RoleBinding "reader/d" of Role "reader" to User "eve""#,
    );
    check(&p, redis, false, "");
    check(&p, redis.namespace("other"), false, "");
    check(&p, Attributes { verb: "delete", ..redis.namespace("d") }, false, "");
    let secrets = Attributes::resource(&eve, "get", "", "secrets").namespace("d");
    check(
        &p,
        secrets.name("redis-auth"),
        true,
        r#"RBAC: allowed by RoleBinding "reader/d" of Role "reader" to User "eve""#,
    );
    check(&p, secrets.name("other"), false, "");
    check(&p, secrets, false, "");

    let op = User::service_account("d", "op", "");
    let status = Attributes::resource(&op, "get", "cache.example.com", "redisclusters").subresource("status");
    let why = r#"RBAC: allowed by RoleBinding "reader/d" of Role "reader" to ServiceAccount "op/d""#;
    check(&p, status.namespace("d").name("main"), true, why);
    let local = User::service_account("d", "local", "");
    let why = r#"RBAC: allowed by RoleBinding "reader/d" of Role "reader" to ServiceAccount "local/d""#;
    check(&p, Attributes { user: &local, ..redis.namespace("d") }, true, why);

    let zoe = User::new("zoe", ["ops"]);
    let why = r#"RBAC: allowed by ClusterRoleBinding "nodes" of ClusterRole "nodes" to Group "ops""#;
    check(&p, Attributes::resource(&zoe, "drain", "", "nodes").name("n1"), true, why);
    check(&p, Attributes::path(&zoe, "get", "/logs/kubelet.log"), true, why);
    check(&p, Attributes::path(&zoe, "get", "/healthz"), false, "");

    let dave = User::new("dave", ["x"]);
    let missing = r#"RBAC: role.rbac.authorization.k8s.io "missing" not found"#;
    check(&p, Attributes::resource(&dave, "get", "", "pods").namespace("d"), false, missing);

    let root = User::administrator("root");
    check(&p, Attributes::resource(&root, "delete", "", "nodes"), true, "");
}

#[test]
fn objects_come_and_go() {
    let mut p = Policy::default();
    let eve = User::new("eve", [""; 0]);
    let a = Attributes::resource(&eve, "get", "", "nodes").namespace("d");
    let all = objects();
    for o in &all {
        p.upsert(o);
        p.upsert(o);
    }
    assert!(p.allows(&a).allowed);
    p.remove(&all[5]);
    assert!(!p.allows(&a).allowed);
    p.upsert(&all[5]);
    assert!(p.allows(&a).allowed);
    // A binding that changes its subjects leaves no trace of the old ones.
    let mut changed = all[5].clone();
    changed["subjects"] = json!([{"kind": "User", "name": "other"}]);
    p.upsert(&changed);
    assert!(!p.allows(&a).allowed);
    p.remove(&all[2]);
    let why = r#"RBAC: clusterrole.rbac.authorization.k8s.io "nodes" not found"#;
    let other = User::new("other", [""; 0]);
    check(&p, Attributes { user: &other, ..a }, false, why);
    for o in &all {
        p.remove(o);
    }
    assert!(
        p.users.is_empty()
            && p.groups.is_empty()
            && p.roles.is_empty()
            && p.cluster_roles.is_empty()
            && p.bindings.is_empty()
    );
}

#[test]
fn rules_are_listed_once() {
    let mut all = objects();
    all[1]["subjects"].as_array_mut().unwrap().push(json!({"kind": "Group", "name": "g"}));
    let p = Policy::from_objects(&all);
    let (rules, error) = p.rules_for(&User::new("eve", ["g"]), "d");
    assert_eq!((rules.len(), error), (4, None));
    let (rules, error) = p.rules_for(&User::new("dave", ["g"]), "d");
    assert_eq!(rules.len(), 2);
    assert_eq!(error.as_deref(), Some(r#"role.rbac.authorization.k8s.io "missing" not found"#));
}
