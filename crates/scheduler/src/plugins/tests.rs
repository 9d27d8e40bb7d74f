//! The default profile as a table: a pod and nodes in, a node or the reason out.

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::default_profile;
use crate::snapshot::Snapshot;

fn node(name: &str, change: Value) -> Node {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}]},
    });
    merge(&mut node, &change);
    serde_json::from_value(node).unwrap()
}

fn pod(name: &str, change: Value) -> Pod {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c"}]}});
    merge(&mut pod, &change);
    serde_json::from_value(pod).unwrap()
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (k, v) in from {
                merge(into.entry(k).or_insert(Value::Null), v);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

#[track_caller]
fn check(nodes: &[Node], pods: &[Pod], new: Value, want: Result<&str, &str>) {
    let snapshot = Snapshot::new(nodes, pods);
    let got =
        default_profile().schedule(&pod("new", new), &snapshot).map(str::to_owned).map_err(|e| e.to_string());
    assert_eq!(got, want.map(str::to_owned).map_err(str::to_owned));
}

fn asks(cpu: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn on(node: &str, mut what: Value) -> Value {
    what["spec"]["nodeName"] = node.into();
    what
}

#[test]
fn pods_go_where_there_is_room() {
    let two = [node("a", json!({})), node("b", json!({}))];
    check(&two, &[], json!({}), Ok("a"));
    check(&two, &[pod("x", on("a", asks("1")))], json!({}), Ok("b"));
    check(&two, &[pod("x", on("a", asks("3")))], asks("2"), Ok("b"));
    check(&two, &[], asks("5"), Err("0/2 nodes are available: 2 Insufficient cpu."));
    check(&[], &[], json!({}), Err("no nodes available to schedule pods"));
}

#[test]
fn ended_pods_take_nothing() {
    let over = pod("x", merge_of(on("a", asks("4")), json!({"status": {"phase": "Succeeded"}})));
    check(&[node("a", json!({}))], &[over], asks("4"), Ok("a"));
}

fn merge_of(mut a: Value, b: Value) -> Value {
    merge(&mut a, &b);
    a
}

#[test]
fn nodes_that_keep_pods_away() {
    let cordoned = node("a", json!({"spec": {"unschedulable": true}}));
    let tainted =
        node("b", json!({"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}));
    let down = node("c", json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}));
    let full = node("d", json!({"status": {"allocatable": {"pods": "0"}}}));
    let nodes = [cordoned, tainted, down, full];
    let why = "0/4 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint {gpu: yes}, \
               1 node(s) were not ready, 1 node(s) were unschedulable.";
    check(&nodes, &[], json!({}), Err(why));
    let tolerant = json!({"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}});
    check(&nodes, &[], tolerant, Ok("b"));
}

#[test]
fn selectors_and_affinity() {
    let nodes = [node("a", json!({})), node("b", json!({"metadata": {"labels": {"disk": "ssd"}}}))];
    check(&nodes, &[], json!({"spec": {"nodeSelector": {"disk": "ssd"}}}), Ok("b"));
    let none = Err("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
    check(&nodes, &[], json!({"spec": {"nodeSelector": {"disk": "tape"}}}), none);
    let term = |op: &str| json!({"matchExpressions": [{"key": "disk", "operator": op}]});
    let required = |op: &str| {
        json!({"spec": {"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term(op)]}}}}})
    };
    check(&nodes, &[], required("Exists"), Ok("b"));
    check(&nodes, &[], required("DoesNotExist"), Ok("a"));
    let preferred = json!({"spec": {"affinity": {"nodeAffinity":
        {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "preference": term("Exists")}]}}}});
    check(&nodes, &[], preferred, Ok("b"));
}

#[test]
fn host_ports_are_taken_once() {
    let port =
        json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}});
    let nodes = [node("a", json!({})), node("b", json!({}))];
    check(&nodes, &[pod("x", on("a", port.clone()))], port.clone(), Ok("b"));
    let one = [node("a", json!({}))];
    let why = Err("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.");
    check(&one, &[pod("x", on("a", port.clone()))], port, why);
}

#[test]
fn the_pods_of_one_controller_spread() {
    let nodes = [node("a", json!({})), node("b", json!({})), node("c", json!({}))];
    let owned = |change: Value| {
        let owner = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": true});
        merge_of(json!({"metadata": {"ownerReferences": [owner]}, "spec": {}}), change)
    };
    let small = || json!({"spec": {"containers": [{"name": "c"}]}});
    let first = pod("s-0", on("a", owned(small())));
    check(&nodes, std::slice::from_ref(&first), owned(small()), Ok("b"));
    let second = pod("s-1", on("b", owned(small())));
    check(&nodes, &[first, second], owned(small()), Ok("c"));
}
