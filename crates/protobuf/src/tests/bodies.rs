//! Bodies that kubectl 1.32 sent: read as the JSON that they mean, and written again byte by byte.

use serde_json::{Value, json};

use crate::{decode, encode};

fn bodies() -> Vec<Vec<u8>> {
    let hex = |line: &str| {
        (0..line.len()).step_by(2).map(|i| u8::from_str_radix(&line[i..i + 2], 16).unwrap()).collect()
    };
    include_str!("kubectl-1.32.txt").lines().map(hex).collect()
}

#[test]
fn bodies_of_kubectl_are_written_as_they_were_read() {
    let bodies = bodies();
    assert!(bodies.len() > 10);
    for body in bodies {
        let value = decode(&body).unwrap();
        let again = encode(&value).unwrap();
        assert_eq!(again, body, "{value}");
    }
}

#[test]
fn bodies_of_kubectl_mean_what_it_was_told() {
    let all: Vec<Value> = bodies().iter().map(|b| decode(b).unwrap()).collect();
    let check = |kind: &str, expect: Value| {
        let got = all.iter().find(|v| v["kind"] == kind).unwrap();
        assert_eq!(got, &expect);
    };
    check(
        "ConfigMap",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}),
    );
    check(
        "Secret",
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}}),
    );
    check(
        "ResourceQuota",
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
            "spec": {"hard": {"cpu": "1500m", "pods": "3"}}, "status": {},
        }),
    );
    check(
        "PodDisruptionBudget",
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pdb1"},
            "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "d"}}},
            "status": {
                "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
            },
        }),
    );
    check(
        "Deployment",
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"app": "d"}},
            "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "d"}}, "strategy": {},
                "template": {
                    "metadata": {"labels": {"app": "d"}},
                    "spec": {"containers": [
                        {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}},
                    ]},
                },
            },
            "status": {},
        }),
    );
}
