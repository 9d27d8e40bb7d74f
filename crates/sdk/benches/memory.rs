//! Memory of cached objects: allocated bytes per object, against the JSON that the objects come in.
//!
//! `cargo bench -p homeostat-sdk --bench memory`. Aims: under 1.3 times the JSON; metadata only, under 500 bytes. The
//! objects come through the feed from a server in memory, so everything that a cache keeps is counted: keys, indexes,
//! what it remembers. What the allocator needs for itself isn't. Each kind has a process of its own, so that nothing of the
//! one before is given back meanwhile.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/manager/server.rs"]
mod server;

use std::time::Duration;

use homeostat_sdk::{Caches, Entropy, Selection, Watched};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::CustomResource;
use peak_alloc::PeakAlloc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use server::Server;

const OBJECTS: usize = 5_000;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

/// What a `RedisCluster` should be.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cache.example.com",
    version = "v1",
    kind = "RedisCluster",
    namespaced,
    status = "RedisClusterStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct RedisClusterSpec {
    replicas: i32,
    version: Option<String>,
}

/// How it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisClusterStatus {
    ready_replicas: Option<i32>,
}

/// What a server keeps of who wrote what, of a usual length.
fn managed() -> Value {
    let fields = json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}, "f:team": {}}},
        "f:spec": {"f:replicas": {}, "f:version": {}}});
    let entry = |manager: &str| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": "v1",
            "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    json!([entry("kubectl"), entry("operator")])
}

fn meta() -> Value {
    json!({"labels": {"app": "redis", "team": "shop"}, "managedFields": managed(), "generation": 1})
}

fn redis() -> Value {
    json!({"apiVersion": "cache.example.com/v1", "kind": "RedisCluster", "metadata": meta(),
        "spec": {"replicas": 3, "version": "7.2"}, "status": {"readyReplicas": 3}})
}

fn map() -> Value {
    json!({"metadata": meta(), "data": {"a": "x".repeat(500), "b": "y".repeat(500)}})
}

fn pod() -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example.com/{name}:7.2"), "imagePullPolicy": "IfNotPresent",
            "ports": [{"name": "redis", "containerPort": 6379, "protocol": "TCP"}],
            "env": [{"name": "A", "value": "b"}, {"name": "POD", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "1", "memory": "64Mi"}, "requests": {"cpu": "1", "memory": "64Mi"}},
            "volumeMounts": [{"name": "token", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"})
    };
    let status = |name: &str| {
        json!({"name": name, "ready": true, "restartCount": 0, "started": true, "image": "redis:7.2",
            "imageID": "sha256:0123456789abcdef", "containerID": "containerd://0123456789abcdef",
            "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}})
    };
    let condition = |name: &str| json!({"type": name, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-02T03:04:05Z"});
    json!({"metadata": meta(),
        "spec": {"containers": [container("redis"), container("exporter")], "nodeName": "node-1",
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "serviceAccount": "default", "schedulerName": "default-scheduler",
            "securityContext": {}, "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "volumes": [{"name": "token", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}]},
        "status": {"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
            "startTime": "2026-01-02T03:04:05Z", "qosClass": "Guaranteed",
            "conditions": (["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition)),
            "containerStatuses": [status("redis"), status("exporter")]}})
}

/// What a cache keeps.
#[derive(Clone, Copy)]
enum Keep {
    Objects,
    Texts,
    Metadata,
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
async fn measure<K: Watched<DynamicType = ()>>(name: &str, path: &str, object: Value, keep: Keep) {
    let server = Server::default();
    for i in 0..OBJECTS {
        server.put(&format!("{path}/object-{i:05}"), object.clone());
    }
    let caches = Caches::new(server.client(), Entropy::seeded(1));
    let before = ALLOCATED.current_usage();
    match keep {
        Keep::Metadata => caches.metadata::<K>((), &Selection::all()).synced().await,
        Keep::Objects => caches.get::<K>(&Selection::all()).synced().await,
        Keep::Texts => {
            caches.compact::<K>();
            caches.get::<K>(&Selection::all()).synced().await;
        }
    }
    // What was received is freed by now.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let size = &caches.sizes()[0];
    let (per_object, json) = (
        (ALLOCATED.current_usage() - before) as f64 / OBJECTS as f64,
        size.json_bytes as f64 / size.objects as f64,
    );
    println!("{name:<24} {per_object:>7.0} B each, {:.2} x its JSON of {json:.0} B", per_object / json);
    caches.stop().await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (redises, maps, pods) = (
        "/apis/cache.example.com/v1/namespaces/shop/redisclusters",
        "/api/v1/namespaces/shop/configmaps",
        "/api/v1/namespaces/shop/pods",
    );
    let named: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    runtime.block_on(async {
        match named.first().map(String::as_str) {
            Some("redis") => measure::<RedisCluster>("RedisCluster", redises, redis(), Keep::Objects).await,
            Some("map") => measure::<ConfigMap>("ConfigMap", maps, map(), Keep::Objects).await,
            Some("pod") => measure::<Pod>("Pod", pods, pod(), Keep::Objects).await,
            Some("compact-redis") => {
                measure::<RedisCluster>("RedisCluster, compact", redises, redis(), Keep::Texts).await;
            }
            Some("compact-map") => measure::<ConfigMap>("ConfigMap, compact", maps, map(), Keep::Texts).await,
            Some("compact-pod") => measure::<Pod>("Pod, compact", pods, pod(), Keep::Texts).await,
            Some("metadata") => measure::<Pod>("Pod, metadata only", pods, pod(), Keep::Metadata).await,
            _ => {
                for kind in ["redis", "map", "pod", "compact-redis", "compact-map", "compact-pod", "metadata"]
                {
                    let this = std::env::current_exe().expect("a path");
                    let _ = std::process::Command::new(this).arg(kind).status();
                }
            }
        }
    });
}
