//! A snapshot kept up to date equals one made from scratch, whatever happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn node(i: u8, zone: u8) -> Node {
    let mut node = json!({"metadata": {"name": format!("n{i}"), "labels": {"topology.kubernetes.io/zone": zone.to_string()}},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}, "images": [{"names": [format!("i{zone}")], "sizeBytes": 5}]}});
    if zone == 0 {
        node["metadata"]["labels"] = json!({});
    }
    serde_json::from_value(node).unwrap()
}

fn pod(i: u8, app: u8, at: Option<u8>) -> Pod {
    let mut pod = json!({"metadata": {"name": format!("p{i}"), "namespace": "d", "uid": format!("u{i}"),
        "labels": {"app": app.to_string()}}, "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": i}],
        "resources": {"requests": {"cpu": "1", "a.b/c": "1"}}}]}});
    if let Some(at) = at {
        pod["spec"]["nodeName"] = format!("n{at}").into();
    }
    if app == 1 {
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            [{"labelSelector": {"matchLabels": {"app": "1"}}, "topologyKey": "k"}]}});
    }
    serde_json::from_value(pod).unwrap()
}

/// Everything that plugins can see, in a form that can be compared.
fn seen(snapshot: &Snapshot) -> String {
    let mut nodes: Vec<String> = snapshot
        .nodes()
        .map(|n| {
            let mut pods: Vec<&str> = n.pods.iter().map(|p| p.key.name()).collect();
            pods.sort_unstable();
            format!(
                "{} {:?} {:?} {:?} {pods:?} {:?}",
                n.name,
                n.requested.iter().filter(|r| r.1 > 0).collect::<Vec<_>>(),
                n.non_zero,
                n.allocatable,
                n.ports
            )
        })
        .collect();
    nodes.sort();
    let name = |slot: &usize| snapshot.slot(*slot).map(|n| n.name.to_string());
    let mut classes: Vec<String> = snapshot
        .classes()
        .map(|s| {
            let on: BTreeMap<_, _> = s.nodes.iter().map(|(slot, n)| (name(slot), *n)).collect();
            format!("{:?} {on:?}", s.part.labels)
        })
        .collect();
    classes.sort();
    let affinities: usize = snapshot.affinities().map(|s| s.nodes.values().sum::<u32>() as usize).sum();
    let column = snapshot.column("topology.kubernetes.io/zone");
    let zones: BTreeMap<_, _> = snapshot
        .nodes()
        .map(|n| (n.name.to_string(), column.of(n.slot).and_then(|d| column.name(d))))
        .collect();
    let order: Vec<String> = snapshot.nodes().map(|n| n.name.to_string()).collect();
    let images: Vec<usize> = (0..4).map(|z| snapshot.image_nodes(&format!("i{z}"))).collect();
    format!("{nodes:#?} {classes:#?} {affinities} {zones:?} {order:?} {images:?}")
}

#[derive(Clone, Debug)]
enum Step {
    Node(u8, u8),
    NoNode(u8),
    Pod(u8, u8, u8),
    Assume(u8, u8, u8),
    NoPod(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..4_u8, 0..3_u8).prop_map(|(n, z)| Step::Node(n, z)),
        (0..4_u8).prop_map(Step::NoNode),
        (1..6_u8, 0..3_u8, 0..4_u8).prop_map(|(p, a, n)| Step::Pod(p, a, n)),
        (1..6_u8, 0..3_u8, 0..4_u8).prop_map(|(p, a, n)| Step::Assume(p, a, n)),
        (1..6_u8).prop_map(Step::NoPod),
    ]
}

proptest! {
    #[test]
    fn changes_add_up(steps in prop::collection::vec(step(), 0..40)) {
        let mut kept = Snapshot::default();
        let (mut nodes, mut pods) = (BTreeMap::new(), BTreeMap::new());
        for step in steps {
            match step {
                Step::Node(n, z) => {
                    kept.set_node(&Arc::new(node(n, z)));
                    nodes.insert(n, z);
                }
                Step::NoNode(n) => {
                    kept.remove_node(&format!("n{n}"));
                    nodes.remove(&n);
                }
                Step::Pod(p, a, n) | Step::Assume(p, a, n) => {
                    let assumed = matches!(step, Step::Assume(..));
                    let waiting = kept.read(Arc::new(pod(p, a, None)));
                    kept.wait(waiting);
                    let info = kept.read(Arc::new(pod(p, a, Some(n))));
                    kept.place(info, assumed);
                    pods.insert(p, (a, n));
                }
                Step::NoPod(p) => {
                    prop_assert_eq!(kept.remove(&format!("u{p}")).is_some(), pods.remove(&p).is_some());
                }
            }
        }
        kept.settle();
        let scratch = Snapshot::new(
            nodes.iter().map(|(n, z)| node(*n, *z)),
            pods.iter().map(|(p, (a, n))| pod(*p, *a, Some(*n))),
        );
        prop_assert_eq!(seen(&kept), seen(&scratch));
        // Nothing that nobody uses is kept.
        prop_assert_eq!((kept.classes.index.len(), kept.affinities.len()), (scratch.classes.index.len(), scratch.affinities.len()));
        for selector in ["", "app=1", "app in (1,2)", "app=7", "app,app!=1"] {
            let selector = Labels::parse(selector).unwrap();
            let selected = |classes: Vec<&Shared<Class>>| -> Vec<Arc<Class>> {
                let mut parts: Vec<_> = classes.iter().map(|s| s.part.clone()).collect();
                parts.retain(|c| &*c.namespace == "d" && c.selected(&selector));
                parts.sort();
                parts
            };
            let narrowed = selected(kept.classes_for("d", std::slice::from_ref(&selector)));
            prop_assert_eq!(narrowed, selected(kept.classes().collect()));
        }
    }
}

#[test]
fn nodes_are_looked_at_zone_by_zone() {
    let snapshot = Snapshot::new([node(0, 1), node(1, 1), node(2, 2), node(3, 2), node(4, 1)], []);
    let order: Vec<&str> = snapshot.nodes().map(|n| &*n.name).collect();
    assert_eq!(order, ["n0", "n2", "n1", "n3", "n4"]);
}
