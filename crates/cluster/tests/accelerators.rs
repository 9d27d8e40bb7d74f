//! Simulated devices and the scheduler's plugin for them, together: who gets which, and what becomes of those who want
//! sick ones.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use homeostat_cluster::{Cluster, ClusterOptions, simulate};
use homeostat_sdk::{CancellationToken, Entropy, Manager};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BEHAVIORS: &str = "/apis/simulation.homeostat.dev/v1alpha1/behaviors";
const GPU: &str = "nvidia.com/gpu";
const WITH: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Accelerators, weight: 5}]}}}]
";

/// A device: its node and its id.
type Device = (String, String);

struct World {
    cluster: Cluster,
    client: Client,
    /// Devices that were sick when last looked.
    sick: BTreeSet<Device>,
    /// The devices of pods that had some when last looked, by pod.
    given: BTreeMap<String, Vec<Device>>,
}

/// A scheduler beside the cluster, which can be ended while it works.
struct Scheduler {
    stop: CancellationToken,
    runs: JoinHandle<()>,
}

impl Scheduler {
    fn start(cluster: &Cluster, seed: u64) -> Self {
        let mut manager = Manager::new(cluster.client_as("system:kube-controller-manager", &[]))
            .with_clock(cluster.clock().clone())
            .with_entropy(Entropy::seeded(seed));
        manager.act_through(cluster.client_as("system:kube-scheduler", &[]));
        homeostat_scheduler::add_with(&mut manager, homeostat_scheduler::Configuration::parse(WITH).unwrap());
        let stop = CancellationToken::new();
        let running = manager.run(stop.clone());
        let runs = tokio::spawn(async move { running.await.unwrap() });
        Self { stop, runs }
    }

    /// Ends it: in order, or in the middle of whatever it does.
    async fn end(self, in_order: bool) {
        if in_order {
            self.stop.cancel();
        } else {
            self.runs.abort();
        }
        let _ = self.runs.await;
        self.stop.cancel();
    }
}

/// Follows every change of a pod, from the API, and panics where a device has two pods at any moment. How many pods got
/// devices, once the watch ends.
async fn watch(client: Client, seconds: u32) -> usize {
    let pods: Api<Pod> = Api::default_namespaced(client);
    let all = pods.list(&ListParams::default()).await.unwrap();
    let from = all.metadata.resource_version.unwrap();
    let params = WatchParams::default().timeout(seconds);
    let mut changes = pin!(pods.watch(&params, &from).await.unwrap());
    let mut holders: BTreeMap<Device, String> = BTreeMap::new();
    let mut served = BTreeSet::new();
    while let Some(change) = changes.next().await {
        let (pod, gone) = match change.unwrap() {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
            WatchEvent::Deleted(pod) => (pod, true),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(error) => panic!("{error}"),
        };
        let name = pod.metadata.name.unwrap();
        holders.retain(|_, holder| *holder != name);
        let phase = pod.status.and_then(|s| s.phase).unwrap_or_default();
        let node = pod.spec.and_then(|s| s.node_name);
        let Some(node) = node.filter(|_| !gone && phase != "Succeeded" && phase != "Failed") else {
            continue;
        };
        let told = pod.metadata.annotations.and_then(|mut a| a.remove("accelerators.homeostat.dev/devices"));
        let told: BTreeMap<String, Vec<String>> = serde_json::from_str(&told.expect("devices")).unwrap();
        for id in &told[GPU] {
            if let Some(other) = holders.insert((node.clone(), id.clone()), name.clone()) {
                panic!("{name} and {other} have {id} of {node}");
            }
        }
        served.insert(name);
    }
    served.len()
}

impl World {
    async fn start(nodes: usize, gpus: usize) -> Self {
        Self::start_with(nodes, gpus, "*").await
    }

    async fn start_with(nodes: usize, gpus: usize, controllers: &str) -> Self {
        let mut options = ClusterOptions::simulated(7);
        options.controllers(controllers).unwrap();
        options.nodes(nodes, &format!("{GPU}={gpus}"), "").unwrap();
        options.scheduler(WITH).unwrap();
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        tokio::time::sleep(Duration::from_secs(2)).await;
        Self { cluster, client, sick: BTreeSet::new(), given: BTreeMap::new() }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Value {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.client
            .request(request.body(body).unwrap())
            .await
            .unwrap_or_else(|e| panic!("{method} {path}: {e}"))
    }

    async fn sicken(&self, name: &str, node: &str, stages: Value, repeat: bool) {
        let spec = json!({"selector": {"nodes": [node]}, "node": {"stages": stages, "repeat": repeat}});
        let object = json!({"apiVersion": "simulation.homeostat.dev/v1alpha1", "kind": "Behavior",
            "metadata": {"name": name}, "spec": spec});
        self.send("POST", BEHAVIORS, object).await;
    }

    async fn pod(&self, name: &str, gpus: usize, exit: Option<&str>) {
        let mut pod = json!({"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers":
            [{"name": "c", "image": "i", "resources": {"limits": {GPU: gpus.to_string()}}}]}});
        if let Some(exit) = exit {
            pod["metadata"]["annotations"] = json!({"simulation.homeostat.dev/exit": exit});
        }
        self.send("POST", PODS, pod).await;
    }

    async fn items(&self, path: &str) -> Vec<Value> {
        self.send("GET", path, Value::Null).await["items"].as_array().unwrap().clone()
    }

    /// A second passes; then every device that is held is held once, and none was given while it was sick.
    async fn second(&mut self) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut sick = BTreeSet::new();
        for node in self.items("/api/v1/nodes").await {
            let name = node["metadata"]["name"].as_str().unwrap();
            let topology = node["metadata"]["annotations"]["accelerators.homeostat.dev/topology"].as_str();
            let topology: Value = serde_json::from_str(topology.expect("a topology")).unwrap();
            let devices = topology[GPU].as_array().unwrap();
            let well = devices.iter().filter(|d| d["healthy"] != false).count();
            assert_eq!(node["status"]["allocatable"][GPU], well.to_string(), "{name}");
            let ill = devices.iter().filter(|d| d["healthy"] == false);
            sick.extend(ill.map(|d| (name.to_owned(), d["id"].as_str().unwrap().to_owned())));
        }
        let (mut given, mut held) = (BTreeMap::new(), BTreeMap::new());
        for pod in self.items(PODS).await {
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            if node.is_empty() || matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
                continue;
            }
            let told = pod["metadata"]["annotations"]["accelerators.homeostat.dev/devices"].as_str();
            let told: BTreeMap<String, Vec<String>> = serde_json::from_str(told.expect("devices")).unwrap();
            let wanted = &pod["spec"]["containers"][0]["resources"]["limits"][GPU];
            assert_eq!(*wanted, told[GPU].len().to_string(), "{name}");
            let devices: Vec<Device> = told[GPU].iter().map(|id| (node.to_owned(), id.clone())).collect();
            for device in &devices {
                if let Some(other) = held.insert(device.clone(), name.clone()) {
                    panic!("{name} and {other} have {device:?}");
                }
                let new = !self.given.contains_key(&name);
                // Sick before and after it was given: stages are longer than a second.
                assert!(
                    !(new && self.sick.contains(device) && sick.contains(device)),
                    "{name}: {device:?} is sick"
                );
            }
            given.insert(name, devices);
        }
        (self.sick, self.given) = (sick, given);
    }

    async fn seconds(&mut self, seconds: usize) {
        for _ in 0..seconds {
            self.second().await;
        }
    }

    async fn stop(self) {
        self.cluster.stop(Duration::from_secs(5)).await;
    }
}

#[test]
fn pods_wait_for_sick_devices_until_these_are_healed() {
    simulate(async || {
        let mut world = World::start(2, 4).await;
        let all = json!([{"for": "300s", "unhealthy": {GPU: 4}}]);
        let half = json!([{"for": "300s", "unhealthy": {GPU: 2}}]);
        world.sicken("all", "node-2", all, false).await;
        world.sicken("half", "node-1", half, false).await;
        world.seconds(2).await;
        for (name, gpus) in [("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 2), ("f", 2)] {
            world.pod(name, gpus, None).await;
            world.second().await;
        }
        world.seconds(30).await;
        let device = |node: &str, id: &str| (node.to_owned(), id.to_owned());
        let want = [("a", "gpu-0"), ("b", "gpu-1")].map(|(p, id)| (p.to_owned(), vec![device("node-1", id)]));
        assert_eq!(world.given, want.into());
        let waits = world.send("GET", &format!("{PODS}/e"), Value::Null).await;
        let why = waits["status"]["conditions"][0]["message"].as_str().unwrap();
        assert!(why.starts_with(&format!("0/2 nodes are available: 2 Insufficient {GPU}.")), "{why}");
        // Healed: all have theirs, those of two on one link.
        world.seconds(330).await;
        assert_eq!(world.given.len(), 6, "{:?}", world.given);
        for pod in ["e", "f"] {
            let ids: BTreeSet<&str> = world.given[pod].iter().map(|(_, id)| id.as_str()).collect();
            let near = [["gpu-0", "gpu-1"], ["gpu-2", "gpu-3"]].map(BTreeSet::from);
            assert!(near.contains(&ids), "{pod}: {ids:?}");
        }
        world.stop().await;
    })
    .unwrap();
}

/// Pods come, end and are deleted at random, devices turn sick and heal, and the scheduler is ended again and again, in
/// order or not, and started anew with nothing but what the API says.
#[test]
fn a_scheduler_that_begins_anew_gives_no_device_that_is_held() {
    simulate(async || {
        const SECONDS: u32 = 120;
        let mut world = World::start_with(3, 4, "*,-scheduler").await;
        for (i, ill) in [2, 1, 4].into_iter().enumerate() {
            let stages = json!([{"for": "40s", "jitter": "20s"}, {"for": "15s", "unhealthy": {GPU: ill}}]);
            world.sicken(&format!("sick-{i}"), &format!("node-{}", i + 1), stages, true).await;
        }
        let watched = tokio::spawn(watch(world.client.clone(), SECONDS + 20));
        let chance = Entropy::seeded(11);
        let mut scheduler = Scheduler::start(&world.cluster, 1);
        let (mut made, mut restarts) = (0_u64, 0_u64);
        for _ in 0..SECONDS {
            for _ in 0..chance.below(3) {
                let ends = format!("0 after {}s", 2 + chance.below(9));
                let exit = (chance.below(6) > 0).then_some(ends.as_str());
                world.pod(&format!("p{made}"), 1 + chance.below(3) as usize, exit).await;
                made += 1;
            }
            // Of those that are there, whether they run, wait or are over.
            let pods = world.items(PODS).await;
            if !pods.is_empty() && chance.below(3) == 0 {
                let pod = &pods[chance.below(pods.len() as u64) as usize]["metadata"]["name"];
                let grace = json!({"gracePeriodSeconds": chance.below(3)});
                world.send("DELETE", &format!("{PODS}/{}", pod.as_str().unwrap()), grace).await;
            }
            if chance.below(6) == 0 {
                restarts += 1;
                // At any moment of what it does about the pods that have just come.
                tokio::time::sleep(Duration::from_millis(chance.below(5))).await;
                scheduler.end(chance.below(2) == 0).await;
                scheduler = Scheduler::start(&world.cluster, restarts);
            }
            world.second().await;
        }
        let served = watched.await.unwrap();
        assert!(restarts > 12 && served > 50, "{restarts} restarts, {made} pods, {served} got devices");
        scheduler.end(true).await;
        world.stop().await;
    })
    .unwrap();
}

#[test]
fn devices_that_come_and_go_are_never_given_twice() {
    simulate(async || {
        let mut world = World::start(3, 4).await;
        for (i, ill) in [3, 1, 4].into_iter().enumerate() {
            let stages = json!([{"for": "20s", "jitter": "20s", "unhealthy": {GPU: ill}}, {"for": "30s"}]);
            world.sicken(&format!("sick-{i}"), &format!("node-{}", i + 1), stages, true).await;
        }
        world.seconds(2).await;
        for i in 0..45_usize {
            world.pod(&format!("p{i}"), i % 3 + 1, Some("0 after 11s")).await;
            world.seconds(3).await;
        }
        world.seconds(120).await;
        for pod in world.items(PODS).await {
            assert_eq!(pod["status"]["phase"], "Succeeded", "{}", pod["metadata"]["name"]);
        }
        world.stop().await;
    })
    .unwrap();
}
