//! What a Pod costs in protobuf, in each direction, beside the same Pod in JSON.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use homeostat_protobuf::{decode, encode, encode_json, encode_watch_event};
use serde_json::{Value, json};

/// A running Pod of ordinary size, as a server stores it.
fn pod() -> Value {
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "observedGeneration": 2, "lastProbeTime": null,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web-5fc99ddcd4-29k46", "namespace": "default", "generateName": "web-5fc99ddcd4-",
            "uid": "97e006d1-2076-4094-8195-3e7c40d7928f", "resourceVersion": "170", "generation": 2,
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "web", "pod-template-hash": "5fc99ddcd4"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5fc99ddcd4",
                "uid": "68faee78-31cb-40aa-9a09-6c8b504f9a7a", "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": [{
                "manager": "controllers", "operation": "Update", "apiVersion": "v1",
                "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}}}},
                },
            }],
        },
        "spec": {
            "containers": [{
                "name": "web", "image": "nginx:1.29", "imagePullPolicy": "IfNotPresent",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "A", "value": "b"}],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                "readinessProbe": {
                    "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1,
                    "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
                },
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                "volumeMounts": [{
                    "name": "kube-api-access", "readOnly": true,
                    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                }],
            }],
            "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ]}}],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "serviceAccount": "default", "nodeName": "node-1",
            "securityContext": {}, "schedulerName": "default-scheduler", "priority": 0,
            "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running", "qosClass": "Burstable", "hostIP": "10.0.0.1", "podIP": "10.244.0.7",
            "podIPs": [{"ip": "10.244.0.7"}], "startTime": "2026-01-02T03:04:05Z",
            "conditions": [condition("Initialized"), condition("Ready"), condition("PodScheduled")],
            "containerStatuses": [{
                "name": "web", "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "lastState": {},
                "ready": true, "restartCount": 0, "image": "nginx:1.29", "imageID": "nginx@sha256:0",
                "containerID": "simulated://1", "started": true,
            }],
        },
    })
}

fn transcode(c: &mut Criterion) {
    let value = pod();
    let text = serde_json::to_vec(&value).unwrap_or_default();
    let packed = encode(&value).unwrap_or_default();
    println!("a Pod of {} bytes of JSON is {} bytes of protobuf", text.len(), packed.len());
    let mut group = c.benchmark_group("pod");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("json to value", |b| {
        b.iter(|| serde_json::from_slice::<Value>(black_box(&text)).map(|v| v.is_object()));
    });
    group.bench_function("value to json", |b| {
        b.iter(|| serde_json::to_vec(black_box(&value)).map(|v| v.len()))
    });
    group.bench_function("protobuf to value", |b| {
        b.iter(|| decode(black_box(&packed)).map(|v| v.is_object()))
    });
    group.bench_function("value to protobuf", |b| b.iter(|| encode(black_box(&value)).map(|v| v.len())));
    group.bench_function("json to protobuf", |b| {
        b.iter(|| encode_json(black_box(&text), "v1", "Pod").map(|v| v.len()));
    });
    group.bench_function("json to its metadata in protobuf", |b| {
        b.iter(|| encode_json(black_box(&text), "meta.k8s.io/v1", "PartialObjectMetadata").map(|v| v.len()));
    });
    group.bench_function("value to a watch's frame", |b| {
        b.iter(|| encode_watch_event("ADDED", black_box(&value)).map(|v| v.len()));
    });
    group.finish();
}

criterion_group!(benches, transcode);
criterion_main!(benches);
