//! What runs the program in a cluster: Namespace, ServiceAccount, Deployment, Services, and what protects them.
//!
//! Pure functions of a name and a few options, as JSON values in the shape that people write. Invariant: the Deployment
//! passes Pod Security Standard `restricted`.

use serde_json::{Value, json};

use super::{HEALTH_PORT, METRICS_PORT, Options, WEBHOOK_PORT};

/// Labels of everything that belongs to the program.
pub(crate) fn labels(name: &str) -> Value {
    json!({
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/managed-by": "homeostat",
    })
}

/// The labels that select the program's pods. A Deployment's selector can't change, so they never do.
fn selector(name: &str) -> Value {
    json!({"app.kubernetes.io/name": name, "app.kubernetes.io/component": "manager"})
}

pub(crate) fn meta(name: &str, options: &Options, suffix: &str) -> Value {
    json!({
        "name": if suffix.is_empty() { name.to_owned() } else { format!("{name}-{suffix}") },
        "namespace": options.namespace,
        "labels": labels(name),
    })
}

pub(crate) fn namespace(name: &str, options: &Options) -> Value {
    let mut labels = labels(name);
    labels["pod-security.kubernetes.io/enforce"] = json!("restricted");
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": options.namespace, "labels": labels},
    })
}

pub(crate) fn service_account(name: &str, options: &Options) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(name, options, "")})
}

pub(crate) fn deployment(name: &str, options: &Options, webhooks: bool) -> Value {
    let mut args = vec![
        "--leader-elect".to_owned(),
        format!("--health-address=:{HEALTH_PORT}"),
        format!("--metrics-address=:{METRICS_PORT}"),
    ];
    if options.namespaced {
        args.push("--namespace=$(POD_NAMESPACE)".to_owned());
    }
    let mut ports = vec![
        json!({"name": "metrics", "containerPort": METRICS_PORT}),
        json!({"name": "health", "containerPort": HEALTH_PORT}),
    ];
    if webhooks {
        ports.push(json!({"name": "webhook", "containerPort": WEBHOOK_PORT}));
    }
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let mut pod_labels = labels(name);
    pod_labels["app.kubernetes.io/component"] = json!("manager");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(name, options, ""),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": selector(name)},
            "template": {
                "metadata": {
                    "labels": pod_labels,
                    "annotations": {"kubectl.kubernetes.io/default-container": "manager"},
                },
                "spec": {
                    "serviceAccountName": name,
                    "securityContext": {
                        "runAsNonRoot": true,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": "manager",
                        "image": options.image,
                        "args": args,
                        "env": [
                            {"name": "POD_NAME", "valueFrom": field("metadata.name")},
                            {"name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace")},
                        ],
                        "ports": ports,
                        "livenessProbe": {
                            "httpGet": {"path": "/healthz", "port": "health"},
                            "initialDelaySeconds": 15,
                            "periodSeconds": 20,
                        },
                        "readinessProbe": {
                            "httpGet": {"path": "/readyz", "port": "health"},
                            "periodSeconds": 5,
                        },
                        "resources": {
                            "requests": {"cpu": "10m", "memory": "64Mi"},
                            "limits": {"memory": "256Mi"},
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                    // Running reconciles have 30 s to finish after SIGTERM.
                    "terminationGracePeriodSeconds": 40,
                },
            },
        },
    })
}

pub(crate) fn metrics_service(name: &str, options: &Options) -> Value {
    service(name, options, "metrics", METRICS_PORT)
}

pub(crate) fn webhook_service(name: &str, options: &Options) -> Value {
    service(name, options, "webhook", 443)
}

/// A Service on the port of this name.
fn service(name: &str, options: &Options, what: &str, port: u16) -> Value {
    let mut meta = meta(name, options, what);
    meta["labels"]["app.kubernetes.io/component"] = json!(what);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {
            "selector": selector(name),
            "ports": [{"name": what, "port": port, "targetPort": what}],
        },
    })
}

/// Whoever may reach the program: Prometheus in namespaces that say so, and the API server its webhooks. Probes come
/// from the node, which no policy keeps out.
pub(crate) fn network_policy(name: &str, options: &Options, webhooks: bool) -> Value {
    let mut ingress = vec![json!({
        "from": [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
        "ports": [{"port": METRICS_PORT, "protocol": "TCP"}],
    })];
    if webhooks {
        // The API server isn't a pod, so no selector fits it.
        ingress.push(json!({"ports": [{"port": WEBHOOK_PORT, "protocol": "TCP"}]}));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": meta(name, options, ""),
        "spec": {
            "podSelector": {"matchLabels": selector(name)},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    })
}

/// At most one pod goes at a time. Not `minAvailable`, which with one replica would keep its node from being drained.
pub(crate) fn disruption_budget(name: &str, options: &Options) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": meta(name, options, ""),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(name)}},
    })
}

/// For the Prometheus operator.
pub(crate) fn service_monitor(name: &str, options: &Options) -> Value {
    let mut selector = labels(name);
    selector["app.kubernetes.io/component"] = json!("metrics");
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": meta(name, options, "metrics"),
        "spec": {
            "selector": {"matchLabels": selector},
            "endpoints": [{"port": "metrics", "path": "/metrics"}],
        },
    })
}
