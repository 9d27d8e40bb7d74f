//! Pods placed per second on 5,000 nodes, plugins and snapshot alone: no API, no queue.
//!
//! The reference is held to 270 (basic), 85 (spreading) and 60 (anti-affinity) pods per second on such a cluster; the
//! aim is ten times that. Each turn places one pod and lets the oldest go, so that the cluster stays as full.

use std::collections::VecDeque;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use homeostat_model::{Entropy, Timestamp};
use homeostat_scheduler::config::DEFAULT_PLUGINS;
use homeostat_scheduler::framework::{Cycle, CycleState, Framework, Plugin};
use homeostat_scheduler::plugins as p;
use homeostat_scheduler::snapshot::Snapshot;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

const NODES: usize = 5000;
/// Pods that are there when the measuring begins.
const THERE: usize = 2000;

fn plugin(name: &str) -> Arc<dyn Plugin> {
    match name {
        "SchedulingGates" => Arc::new(p::SchedulingGates),
        "PrioritySort" => Arc::new(p::PrioritySort),
        "NodeUnschedulable" => Arc::new(p::NodeUnschedulable),
        "NodeName" => Arc::new(p::NodeName),
        "TaintToleration" => Arc::new(p::TaintToleration),
        "NodeAffinity" => Arc::new(p::NodeAffinity::default()),
        "NodePorts" => Arc::new(p::NodePorts),
        "NodeResourcesFit" => Arc::new(p::NodeResourcesFit::default()),
        "VolumeRestrictions" => Arc::new(p::VolumeRestrictions),
        "NodeVolumeLimits" => Arc::new(p::NodeVolumeLimits),
        "VolumeBinding" => Arc::new(p::VolumeBinding::default()),
        "VolumeZone" => Arc::new(p::VolumeZone),
        "PodTopologySpread" => Arc::new(p::PodTopologySpread::default()),
        "InterPodAffinity" => Arc::new(p::InterPodAffinity::default()),
        "DefaultPreemption" => Arc::new(p::DefaultPreemption::default()),
        "NodeResourcesBalancedAllocation" => Arc::new(p::BalancedAllocation::default()),
        "ImageLocality" => Arc::new(p::ImageLocality),
        _ => Arc::new(p::DefaultBinder),
    }
}

fn nodes() -> impl Iterator<Item = Node> {
    (0..NODES).map(|i| {
        let node = json!({"metadata": {"name": format!("node-{i:05}"), "labels": {
                "kubernetes.io/hostname": format!("node-{i:05}"), "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": format!("zone-{}", i % 3),
                "topology.kubernetes.io/region": "r"}},
            "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"},
                "images": [{"names": ["registry.example/base:1"], "sizeBytes": 90_000_000}]}});
        serde_json::from_value(node).expect("a node")
    })
}

fn pod(i: usize, change: &Value, node: Option<&str>) -> Pod {
    let mut pod = json!({"metadata": {"name": format!("pod-{i}"), "namespace": "default", "uid": format!("u-{i}"),
            "labels": {"app": "web", "tier": "front"}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/web:1",
            "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}}]}});
    for (k, v) in change.as_object().into_iter().flatten() {
        pod["spec"][k] = v.clone();
    }
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    serde_json::from_value(pod).expect("a pod")
}

fn throughput(c: &mut Criterion) {
    let mut group = c.benchmark_group("5000 nodes");
    group.throughput(Throughput::Elements(1));
    group.sample_size(20);
    let selector = json!({"matchLabels": {"app": "web"}});
    let spreading = json!({"topologySpreadConstraints": [{"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]});
    let anti = json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]}}});
    for (name, change) in [("basic", json!({})), ("spreading", spreading), ("anti-affinity", anti)] {
        let framework = Framework::new(
            "default-scheduler",
            DEFAULT_PLUGINS.iter().map(|(n, w)| (plugin(n), *w)).collect(),
        );
        let mut snapshot = Snapshot::new(nodes(), []);
        let entropy = Entropy::seeded(1);
        let (mut start, mut next) = (0, 0);
        let mut there: VecDeque<String> = VecDeque::new();
        let mut turn = |snapshot: &mut Snapshot| {
            let info = snapshot.read(Arc::new(pod(next, &change, None)));
            let cx = Cycle { snapshot: &*snapshot, waiting: &[], now: Timestamp::UNIX_EPOCH };
            let node = framework
                .schedule(&cx, &mut CycleState::default(), &info, &mut start, &entropy)
                .expect("nothing breaks")
                .expect("a node");
            snapshot.release(&info);
            let placed = snapshot.read(Arc::new(pod(next, &change, Some(&node.name))));
            there.push_back(placed.uid.to_string());
            drop(node);
            snapshot.place(placed, true);
            next += 1;
            if there.len() > THERE
                && let Some(oldest) = there.pop_front()
            {
                snapshot.remove(&oldest);
            }
        };
        for _ in 0..THERE {
            turn(&mut snapshot);
        }
        group.bench_function(name, |b| b.iter(|| turn(&mut snapshot)));
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);
