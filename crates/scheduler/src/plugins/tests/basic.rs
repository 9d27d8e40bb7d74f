//! One node at a time: resources, taints, selectors, ports, images.

use serde_json::{Value, json};

use super::{asks, both, check, cpu, node, on, pod, profile};
use crate::framework::Event;
use crate::snapshot::Snapshot;
use std::sync::Arc;

#[test]
fn pods_go_where_there_is_room() {
    let two = [node("a", json!({})), node("b", json!({}))];
    check(&two, &[pod("x", on("a", cpu("1")))], json!({}), Ok("b"));
    check(&two, &[pod("x", on("a", cpu("3")))], cpu("2"), Ok("b"));
    check(&two, &[], cpu("5"), Err("0/2 nodes are available: 2 Insufficient cpu."));
    check(
        &two,
        &[],
        asks(json!({"cpu": "5", "memory": "9Gi"})),
        Err("0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory."),
    );
    check(&[], &[], json!({}), Err("no nodes available to schedule pods"));
    let full = node("a", json!({"status": {"allocatable": {"pods": "1"}}}));
    check(
        &[full],
        &[pod("x", on("a", json!({})))],
        json!({}),
        Err("0/1 nodes are available: 1 Too many pods."),
    );
}

#[test]
fn devices_and_storage_count() {
    let gpu =
        node("g", json!({"status": {"allocatable": {"nvidia.com/gpu": "2", "ephemeral-storage": "1Gi"}}}));
    let nodes = [node("a", json!({})), gpu];
    check(&nodes, &[], asks(json!({"nvidia.com/gpu": "2"})), Ok("g"));
    let held = pod("x", on("g", asks(json!({"nvidia.com/gpu": "1"}))));
    let why = Err("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.");
    check(&nodes, &[held], asks(json!({"nvidia.com/gpu": "2"})), why);
    check(&nodes, &[], asks(json!({"ephemeral-storage": "1Gi"})), Ok("g"));
    let why = Err("0/2 nodes are available: 2 Insufficient ephemeral-storage.");
    check(&nodes, &[], asks(json!({"ephemeral-storage": "2Gi"})), why);
}

#[test]
fn ended_pods_take_nothing() {
    let over = pod("x", both(on("a", cpu("4")), json!({"status": {"phase": "Succeeded"}})));
    check(&[node("a", json!({}))], &[over], cpu("4"), Ok("a"));
}

#[test]
fn taints_and_cordons() {
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "k", "value": "v", "effect": effect}]}});
    let nodes = [node("a", taint("NoSchedule")), node("b", json!({"spec": {"unschedulable": true}}))];
    let why = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.";
    check(&nodes, &[], json!({}), Err(why));
    let tolerates = |t: Value| json!({"spec": {"tolerations": [t]}});
    check(&nodes, &[], tolerates(json!({"key": "k", "value": "v"})), Ok("a"));
    check(&nodes, &[], tolerates(json!({"key": "k", "value": "w"})), Err(why));
    check(&nodes, &[], tolerates(json!({"key": "k", "operator": "Exists", "effect": "NoExecute"})), Err(why));
    check(
        &nodes,
        &[],
        tolerates(json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})),
        Ok("b"),
    );
    let soft = [node("a", taint("PreferNoSchedule")), node("b", json!({}))];
    check(&soft, &[], json!({}), Ok("b"));
    let number =
        [node("a", json!({"spec": {"taints": [{"key": "sla", "value": "950", "effect": "NoSchedule"}]}}))];
    check(&number, &[], tolerates(json!({"key": "sla", "operator": "Gt", "value": "900"})), Ok("a"));
    let why = Err("0/1 nodes are available: 1 node(s) had untolerated taint(s).");
    check(&number, &[], tolerates(json!({"key": "sla", "operator": "Lt", "value": "900"})), why);
}

#[test]
fn selectors_and_affinity() {
    let nodes = [node("a", json!({})), node("b", json!({"metadata": {"labels": {"disk": "ssd", "n": "5"}}}))];
    check(&nodes, &[], json!({"spec": {"nodeSelector": {"disk": "ssd"}}}), Ok("b"));
    let none = Err("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.");
    check(&nodes, &[], json!({"spec": {"nodeSelector": {"disk": "tape"}}}), none);
    let term = |key: &str, op: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": op, "values": values}]});
    let required = |term: Value| {
        json!({"spec": {"affinity": {"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}})
    };
    check(&nodes, &[], required(term("disk", "Exists", &[])), Ok("b"));
    check(&nodes, &[], required(term("disk", "DoesNotExist", &[])), Ok("a"));
    check(&nodes, &[], required(term("n", "Gt", &["4"])), Ok("b"));
    check(&nodes, &[], required(term("n", "Lt", &["4"])), none);
    let preferred = json!({"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
        [{"weight": 50, "preference": term("disk", "Exists", &[])}]}}}});
    check(&nodes, &[], preferred, Ok("b"));
    // As the pods of a DaemonSet.
    let named = |name: &str| {
        required(json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}))
    };
    check(&nodes, &[], named("a"), Ok("a"));
    let busy = [pod("x", on("a", cpu("4")))];
    let why =
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity].";
    check(&nodes, &busy, both(cpu("1"), named("a")), Err(why));
    let why = "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity].";
    check(&nodes, &[], named("gone"), Err(why));
}

#[test]
fn host_ports_are_taken_once() {
    let port = |ip: &str| json!({"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": ip}]}]}});
    let nodes = [node("a", json!({})), node("b", json!({}))];
    check(&nodes, &[pod("x", on("a", port("")))], port("10.0.0.1"), Ok("b"));
    let one = [node("a", json!({}))];
    let why = Err("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.");
    check(&one, &[pod("x", on("a", port("10.0.0.1")))], port("0.0.0.0"), why);
    check(&one, &[pod("x", on("a", port("10.0.0.1")))], port("10.0.0.2"), Ok("a"));
}

#[test]
fn images_draw_pods() {
    let image = json!({"status": {"images": [{"names": ["big:1"], "sizeBytes": 2_000_000_000_i64}]}});
    let nodes = [node("a", json!({})), node("b", image)];
    check(&nodes, &[], json!({"spec": {"containers": [{"name": "c", "image": "big:1"}]}}), Ok("b"));
}

#[test]
fn a_named_node_is_the_only_one() {
    let info = Snapshot::default().read(Arc::new(pod("p", on("b", json!({})))));
    let event = |name: &str| Event::NodeAdded(Arc::new(node(name, json!({}))));
    let helps = |e: Event| profile(None).helps(&e, &info, &["NodeName"].into(), &Snapshot::default());
    assert!(helps(event("b")) && !helps(event("a")));
}

#[test]
fn strategies_want_nodes_full_or_empty() {
    let with = |strategy: &str| {
        let text = format!(
            "{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{{pluginConfig: \
             [{{name: NodeResourcesFit, args: {{scoringStrategy: {strategy}}}}}], \
             plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesBalancedAllocation}}]}}}}}}]}}"
        );
        let mut snapshot =
            Snapshot::new([node("a", json!({})), node("b", json!({}))], [pod("x", on("a", cpu("2")))]);
        let info = snapshot.read(Arc::new(pod("new", cpu("1"))));
        super::cycle(&snapshot, &profile(Some(&text)), &info).node.unwrap()
    };
    assert_eq!(with("{type: LeastAllocated}"), "b");
    assert_eq!(with("{type: MostAllocated}"), "a");
    let ratio = "{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}";
    assert_eq!(with(ratio), "a");
}
