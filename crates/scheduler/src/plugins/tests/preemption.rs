//! Preemption: who has to go, and what is said where nobody can.

use std::sync::Arc;

use homeostat_model::selector::Labels;
use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::{asks, both, cpu, cycle, labelled, node, on, pod, profile};
use crate::snapshot::{Budget, Snapshot};

fn prio(p: i32) -> Value {
    json!({"spec": {"priority": p}})
}

fn low(name: &str, at: &str, cores: &str, p: i32) -> Pod {
    pod(name, both(on(at, cpu(cores)), prio(p)))
}

fn room(snapshot: &mut Snapshot, new: Value) -> Option<(String, Vec<String>)> {
    let info = snapshot.read(Arc::new(pod("new", new)));
    cycle(snapshot, &profile(None), &info).room()
}

#[track_caller]
fn check(nodes: &[Node], pods: &[Pod], new: Value, want: Option<(&str, &[&str])>) {
    let mut snapshot = Snapshot::new(nodes.to_vec(), pods.to_vec());
    let want = want.map(|(n, v)| (n.to_owned(), v.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>()));
    assert_eq!(room(&mut snapshot, new), want);
}

#[track_caller]
fn says(nodes: &[Node], pods: &[Pod], new: Value, want: &str) {
    let mut snapshot = Snapshot::new(nodes.to_vec(), pods.to_vec());
    let info = snapshot.read(Arc::new(pod("new", new)));
    assert_eq!(cycle(&snapshot, &profile(None), &info).node.unwrap_err(), want);
}

#[test]
fn the_fewest_and_least_important_go() {
    let two = [node("a", json!({})), node("b", json!({}))];
    let new = || both(cpu("3"), prio(100));
    // One node's victim is less important.
    check(&two, &[low("x", "a", "3", 50), low("y", "b", "3", 10)], new(), Some(("b", &["y"])));
    // Only as many as needed, the least important of them.
    let several =
        [low("x", "a", "2", 10), low("y", "a", "1", 20), low("z", "a", "1", 30), low("w", "b", "4", 100)];
    check(&two, &several, new(), Some(("a", &["y", "x"])));
    check(
        &two[..1],
        &[low("x", "a", "1", 10), low("y", "a", "3", 20)],
        both(cpu("1"), prio(100)),
        Some(("a", &["x"])),
    );
    // Never an equal.
    check(&two, &[low("x", "a", "3", 100), low("y", "b", "3", 200)], new(), None);
}

#[test]
fn budgets_are_respected_where_they_can_be() {
    let two = [node("a", json!({})), node("b", json!({}))];
    let mut snapshot = Snapshot::new(
        two,
        [pod("x", both(on("a", cpu("3")), both(prio(10), labelled("app", "db")))), low("y", "b", "3", 50)],
    );
    let new = || both(cpu("3"), prio(100));
    assert_eq!(room(&mut snapshot, new()).unwrap().0, "a");
    let budget = Budget {
        namespace: "default".into(),
        selector: Labels::from_map(&json!({"app": "db"})),
        allowed: 0,
        disrupted: Default::default(),
    };
    snapshot.objects.budgets.insert(Key::namespaced("default", "b"), budget);
    assert_eq!(room(&mut snapshot, new()).unwrap().0, "b");
}

#[test]
fn what_is_said_is_the_references() {
    let tainted = node("t", json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}));
    let nodes = [node("a", json!({})), tainted];
    let head = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). no new claims to deallocate, \
         preemption: ";
    let says_of = |pods: &[Pod], new: Value, tail: &str| says(&nodes, pods, new, &format!("{head}{tail}"));
    let busy = [low("x", "a", "4", 100)];
    says_of(
        &busy,
        cpu("1"),
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for \
         scheduling.",
    );
    // More than the node has, whoever goes.
    says_of(&busy, cpu("5"), "0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
    let never = both(both(cpu("1"), prio(200)), json!({"spec": {"preemptionPolicy": "Never"}}));
    says_of(&busy, never, "not eligible due to preemptionPolicy=Never.");
}

#[test]
fn a_pod_waits_for_those_that_go_for_it() {
    let nodes = [node("a", json!({}))];
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions":
        [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}});
    let victim = pod("x", both(both(on("a", cpu("4")), prio(10)), going));
    let new = both(both(cpu("1"), prio(100)), json!({"status": {"nominatedNodeName": "a"}}));
    let why = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to a \
               terminating pod on the nominated node.";
    says(&nodes, &[victim], new, why);
}

#[test]
fn room_that_was_made_is_kept_from_the_less_important() {
    let mut snapshot = Snapshot::new([node("a", json!({}))], []);
    let first = pod("first", both(both(cpu("3"), prio(100)), json!({"status": {"nominatedNodeName": "a"}})));
    let first = snapshot.read(Arc::new(first));
    snapshot.wait(first.clone());
    let tries = |snapshot: &mut Snapshot, p: i32| {
        let info = snapshot.read(Arc::new(pod("new", both(cpu("2"), prio(p)))));
        cycle(snapshot, &profile(None), &info).node.is_ok()
    };
    assert!(!tries(&mut snapshot, 10) && !tries(&mut snapshot, 100) && tries(&mut snapshot, 101));
    assert_eq!(cycle(&snapshot, &profile(None), &first).node.as_deref(), Ok("a"));
}

#[test]
fn rules_about_pods_are_met_by_those_that_go() {
    // The victim is what the anti-affinity is about, not the room.
    let anti = json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}]}}}});
    let there = pod("web", both(both(on("a", cpu("1")), labelled("app", "web")), prio(1)));
    let other = low("other", "a", "1", 0);
    let new = both(both(asks(json!({"cpu": "1"})), prio(10)), anti);
    check(&[node("a", json!({}))], &[there, other], new, Some(("a", &["web"])));
}
