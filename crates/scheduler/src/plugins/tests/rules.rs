//! Rules about other pods: spreading, affinity, anti-affinity.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{both, check, check_in, labelled, node, on, pod, zoned};
use crate::snapshot::Snapshot;
use homeostat_sdk::Key;

const ZONE: &str = "topology.kubernetes.io/zone";

fn web(n: usize, node: &str) -> Pod {
    pod(&format!("w{n}"), on(node, labelled("app", "web")))
}

fn affinity(kind: &str, key: &str) -> Value {
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution":
        [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key}]}}}})
}

#[test]
fn pods_stay_near_what_they_want() {
    let nodes = [zoned("a", "1"), zoned("b", "1"), zoned("c", "2"), node("d", json!({}))];
    check(&nodes, &[web(1, "c")], affinity("podAffinity", ZONE), Ok("c"));
    let why = "0/4 nodes are available: 4 node(s) didn't match pod affinity rules.";
    check(&nodes, &[], affinity("podAffinity", ZONE), Err(why));
    // The first of its kind may go where the label is.
    let own = both(labelled("app", "web"), affinity("podAffinity", ZONE));
    check(&nodes[2..], &[], own, Ok("c"));
}

#[test]
fn pods_stay_away_from_what_they_avoid() {
    let nodes = [zoned("a", "1"), zoned("b", "1"), zoned("c", "2")];
    check(&nodes, &[web(1, "a")], affinity("podAntiAffinity", ZONE), Ok("c"));
    let why = "0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules.";
    check(&nodes, &[web(1, "a"), web(2, "c")], affinity("podAntiAffinity", ZONE), Err(why));
    // Others avoid it.
    let shy = |n: &str| pod(&format!("shy-{n}"), on(n, affinity("podAntiAffinity", ZONE)));
    check(&nodes, &[shy("b")], labelled("app", "web"), Ok("c"));
    let why = "0/3 nodes are available: 3 node(s) didn't satisfy existing pods anti-affinity rules.";
    check(&nodes, &[shy("b"), shy("c")], labelled("app", "web"), Err(why));
    check(&nodes[..1], &[shy("a")], labelled("app", "db"), Ok("a"));
}

#[test]
fn namespaces_are_named_or_selected() {
    let nodes = [zoned("a", "1"), zoned("c", "2")];
    let elsewhere =
        pod("o", both(on("a", labelled("app", "web")), json!({"metadata": {"namespace": "other"}})));
    let term = |more: Value| {
        let term = both(json!({"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}), more);
        json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}})
    };
    let one = || Snapshot::new(nodes[..1].to_vec(), [elsewhere.clone()]);
    let why = Err("0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.");
    check_in(&mut one(), term(json!({})), Ok("a"));
    check_in(&mut one(), term(json!({"namespaces": ["other"]})), why);
    check_in(&mut one(), term(json!({"namespaceSelector": {}})), why);
    let selected = json!({"namespaceSelector": {"matchLabels": {"team": "x"}}});
    check_in(&mut one(), term(selected.clone()), Ok("a"));
    let mut labelled = one();
    labelled.objects.namespaces.insert("other".into(), [("team".to_owned(), "x".to_owned())].into());
    check_in(&mut labelled, term(selected), why);
}

#[test]
fn preferences_weigh() {
    let nodes = [zoned("a", "1"), zoned("c", "2")];
    let prefers = |kind: &str| {
        json!({"spec": {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100,
            "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": ZONE}}]}}}})
    };
    check(&nodes, &[web(1, "c")], prefers("podAffinity"), Ok("c"));
    check(&nodes, &[web(1, "c")], prefers("podAntiAffinity"), Ok("a"));
    // What pods on nodes prefer counts too, their required affinity as well.
    let fond = pod("fond", on("c", affinity("podAffinity", ZONE)));
    check(&nodes, &[fond], labelled("app", "web"), Ok("c"));
}

fn spread(skew: i32, key: &str, more: Value) -> Value {
    let constraint = both(
        json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}}),
        more,
    );
    both(labelled("app", "web"), json!({"spec": {"topologySpreadConstraints": [constraint]}}))
}

#[test]
fn domains_fill_evenly() {
    let nodes = [zoned("a", "1"), zoned("b", "1"), zoned("c", "2"), node("d", json!({}))];
    check(&nodes, &[web(1, "a")], spread(1, ZONE, json!({})), Ok("c"));
    let why = "0/4 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required \
               label), 3 node(s) didn't match pod topology spread constraints.";
    check(&nodes, &[web(1, "a"), web(2, "c")], spread(1, ZONE, json!({"minDomains": 3})), Err(why));
    // Pods that go don't count.
    let mut going = web(1, "a");
    going.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    check(&nodes[..1], &[going], spread(1, ZONE, json!({})), Ok("a"));
}

#[test]
fn domains_out_of_reach_do_not_count_unless_told() {
    let nodes = [zoned("a", "1"), zoned("c", "2")];
    let there = [web(1, "a"), web(2, "a")];
    let only = json!({"spec": {"nodeSelector": {ZONE: "1"}}});
    check(&nodes, &there, both(spread(1, ZONE, json!({})), only.clone()), Ok("a"));
    let why = "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't match pod \
               topology spread constraints.";
    let ignore = json!({"nodeAffinityPolicy": "Ignore"});
    check(&nodes, &there, both(spread(1, ZONE, ignore), only), Err(why));
}

#[test]
fn the_pods_of_a_service_or_a_workload_spread() {
    let nodes = [node("a", json!({})), node("b", json!({})), node("c", json!({}))];
    let mut snapshot = Snapshot::new(nodes, [web(1, "a"), web(2, "b")]);
    let selector = [("app".to_owned(), "web".to_owned())].into();
    snapshot.objects.services.insert(Key::namespaced("default", "web"), selector);
    check_in(&mut snapshot, labelled("app", "web"), Ok("c"));

    let nodes = [node("a", json!({})), node("b", json!({}))];
    let mut snapshot = Snapshot::new(nodes, [web(1, "a")]);
    let of = homeostat_model::selector::Labels::from_map(&json!({"app": "web"}));
    snapshot.objects.workloads.insert("r".into(), of);
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true});
    let owned = both(labelled("app", "web"), json!({"metadata": {"ownerReferences": [owner]}}));
    check_in(&mut snapshot, owned, Ok("b"));
}
