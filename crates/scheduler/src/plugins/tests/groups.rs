//! Gangs and accelerators: pods that belong together, devices that do.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use super::{asks, both, cycle, labelled, node, on, pod, profile, refusal};
use crate::framework::{Cycle, CycleState, Permission, WaitingPod};
use crate::plugins::devices::{DEVICES, TOGETHER, TOPOLOGY};
use crate::plugins::{GROUP, MINIMUM};
use crate::snapshot::Snapshot;

const WITH: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Accelerators, weight: 5}, {name: Gang}]}}
";
const GPU: &str = "nvidia.com/gpu";

/// Eight devices: four on each NUMA node, in pairs that are linked.
pub(super) fn eight(name: &str) -> Node {
    let devices: Vec<Value> = (0..8)
        .map(|i| json!({"id": format!("g{i}"), "numa": i / 4, "link": format!("l{}", i / 2)}))
        .collect();
    let topology = json!({GPU: devices}).to_string();
    node(
        name,
        json!({"metadata": {"annotations": {TOPOLOGY: topology}},
        "status": {"allocatable": {GPU: "8", "cpu": "64", "pods": "64"}}}),
    )
}

pub(super) fn wants(n: usize) -> Value {
    asks(json!({GPU: n.to_string()}))
}

fn has(name: &str, at: &str, ids: &[&str]) -> Pod {
    let devices = json!({GPU: ids}).to_string();
    let annotations = json!({"metadata": {"annotations": {DEVICES: devices}}});
    pod(name, both(on(at, wants(ids.len())), annotations))
}

#[track_caller]
fn check(nodes: &[Node], pods: &[Pod], new: Value, want: Result<(&str, &str), &str>) {
    let mut snapshot = Snapshot::new(nodes.to_vec(), pods.to_vec());
    let info = snapshot.read(Arc::new(pod("new", new)));
    let got = cycle(&snapshot, &profile(Some(WITH)), &info);
    let devices = got.state.annotations.get(DEVICES).cloned().unwrap_or_default();
    let got = got.node.as_deref().map(|n| (n, devices.as_str())).map_err(|e| refusal(e));
    assert_eq!(got, want);
}

#[test]
fn devices_that_lie_well_are_chosen() {
    let one = [eight("a")];
    check(&one, &[], wants(2), Ok(("a", "{\"nvidia.com/gpu\":[\"g0\",\"g1\"]}")));
    check(&one, &[has("x", "a", &["g0"])], wants(1), Ok(("a", "{\"nvidia.com/gpu\":[\"g1\"]}")));
    check(
        &one,
        &[has("x", "a", &["g0"])],
        wants(4),
        Ok(("a", "{\"nvidia.com/gpu\":[\"g4\",\"g5\",\"g6\",\"g7\"]}")),
    );
    // A node where they are linked is better than one where they are not.
    let two = [eight("a"), eight("b")];
    let broken =
        [has("x", "a", &["g0"]), has("y", "a", &["g2"]), has("z", "a", &["g4"]), has("w", "a", &["g6"])];
    check(&two, &broken, wants(2), Ok(("b", "{\"nvidia.com/gpu\":[\"g0\",\"g1\"]}")));
    let tight = |how: &str| both(wants(2), json!({"metadata": {"annotations": {TOGETHER: how}}}));
    check(&one, &broken, tight("numa"), Ok(("a", "{\"nvidia.com/gpu\":[\"g1\",\"g3\"]}")));
    let why = "0/1 nodes are available: 1 node(s) didn't have 2 free nvidia.com/gpu devices on one link.";
    check(&one, &broken, tight("link"), Err(why));
    let why = "0/1 nodes are available: annotation accelerators.homeostat.dev/together is \"near\": it may be link, \
               numa or node.";
    check(&one, &[], tight("near"), Err(why));
}

#[test]
fn devices_nobody_knows_are_not_given_away() {
    let one = [eight("a")];
    // Seven devices are held by a pod that doesn't say which.
    let silent = [pod("x", on("a", wants(7)))];
    check(&one, &silent, wants(1), Ok(("a", "{\"nvidia.com/gpu\":[\"g0\"]}")));
    let why = Err("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
    check(&one, &silent, wants(2), why);
    let plain = node("p", json!({"status": {"allocatable": {GPU: "8"}}}));
    check(std::slice::from_ref(&plain), &[], wants(2), Ok(("p", "")));
    let tight = both(wants(2), json!({"metadata": {"annotations": {TOGETHER: "link"}}}));
    let why = "0/1 nodes are available: 1 node(s) didn't publish how their nvidia.com/gpu devices lie.";
    check(&[plain], &[], tight, Err(why));
    let bad = node(
        "b",
        json!({"metadata": {"annotations": {TOPOLOGY: "?"}}, "status": {"allocatable": {GPU: "8"}}}),
    );
    check(
        &[bad],
        &[],
        wants(1),
        Err("0/1 nodes are available: 1 node(s) had an invalid accelerator topology."),
    );
}

fn member() -> Value {
    both(labelled(GROUP, "train"), labelled(MINIMUM, "3"))
}

#[test]
fn a_group_is_bound_whole() {
    let framework = profile(Some(WITH));
    let mut snapshot = Snapshot::new([node("a", json!({}))], []);
    let first = snapshot.read(Arc::new(pod("m0", member())));
    snapshot.wait(first.clone());
    let too_few = cycle(&snapshot, &framework, &first).node.unwrap_err();
    let why = "0/1 nodes are available: pod group \"train\" has 1 of at least 3 pods.";
    assert_eq!(refusal(&too_few), why);
    for i in 1..3 {
        let info = snapshot.read(Arc::new(pod(&format!("m{i}"), member())));
        snapshot.wait(info);
    }
    assert!(cycle(&snapshot, &framework, &first).node.is_ok());
    // Each gets a place; the last lets all through.
    let mut waiting: Vec<WaitingPod> = Vec::new();
    for i in 0..3 {
        let placed = snapshot.read(Arc::new(pod(&format!("m{i}"), on("a", member()))));
        snapshot.place(placed.clone(), true);
        let cx = Cycle { snapshot: &snapshot, waiting: &waiting, now: Timestamp::UNIX_EPOCH };
        let (got, _) = framework.permit(&cx, &CycleState::default(), &placed, "a");
        if i < 2 {
            assert_eq!(got, Permission::Wait(Duration::from_secs(60)));
            waiting.push(WaitingPod { pod: placed, node: "a".into() });
        } else {
            assert_eq!(got, Permission::Allow(vec!["u-m0".into(), "u-m1".into()]));
        }
    }
    // One that leaves takes the waiting ones along.
    let gone = snapshot.remove("u-m2").unwrap();
    let cx = Cycle { snapshot: &snapshot, waiting: &waiting, now: Timestamp::UNIX_EPOCH };
    assert_eq!(framework.unreserve(&cx, &gone), ["u-m0".into(), "u-m1".into()]);
}
