//! What many nodes, many pods and a large namespace cost: everything in this process, in real time.
//!
//! `cargo bench -p homeostat-cluster --bench scale` prints what each takes. Aims on two cores: 1,000 Deployments of ten pods
//! on 100 nodes are ready in 15 s; a namespace of 10,000 objects is gone in 3 s; a simulated pod takes 8 KB beyond its
//! objects; ten times as many pods are bound per second on 5,000 nodes as kube-scheduler is held to by its own benchmark
//! (scheduler_perf: 270 basic pods, 85 that spread, 60 that keep apart), through the API as there.

mod shared;

use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::Instant;

use shared::memory;

const DEPLOYMENTS: usize = 1_000;
const REPLICAS: usize = 10;
const IN_NAMESPACE: usize = 10_000;
const NODES: usize = 5_000;
/// What was read in order to look is given back by then.
const QUIET: Duration = Duration::from_secs(3);
/// A single object, and a list of thousands.
const OFTEN: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(1);

async fn post(client: &Client, path: &str, object: Value) {
    let request = Request::post(path).body(object.to_string().into_bytes()).expect("a request");
    client.request::<Value>(request).await.unwrap_or_else(|e| panic!("{path}: {e}"));
}

async fn text(client: &Client, path: &str) -> Result<String, kube::Error> {
    client.request_text(Request::get(path).body(Vec::new()).expect("a request")).await
}

async fn items(client: &Client, path: &str) -> Vec<Value> {
    let list: Value = serde_json::from_str(&text(client, path).await.expect("a list")).expect("JSON");
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Looks every so often, for five minutes.
async fn until(every: Duration, holds: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < Duration::from_secs(300), "not within five minutes");
        tokio::time::sleep(every).await;
    }
}

async fn cluster(nodes: usize) -> (Cluster, Client) {
    let mut options = ClusterOptions::default();
    options.nodes(nodes, "cpu=64,memory=256Gi,pods=250", "zone=a|b|c").expect("options");
    let cluster = Cluster::with(options).await.expect("a control plane");
    let client = cluster.client();
    until(SELDOM, async || ready_nodes(&client).await == nodes).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    until(OFTEN, async || text(&client, account).await.is_ok()).await;
    (cluster, client)
}

async fn ready_nodes(client: &Client) -> usize {
    let is_ready = |n: &Value| {
        let conditions = n["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
    };
    items(client, "/api/v1/nodes").await.iter().filter(|n| is_ready(n)).count()
}

async fn deployments() {
    let (cluster, client) = cluster(100).await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let (began, before) = (Instant::now(), memory());
    for i in 0..DEPLOYMENTS {
        let labels = json!({"app": format!("web-{i}")});
        let container = json!({"name": "web", "image": "registry.example/web:1",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}});
        let spec = json!({"replicas": REPLICAS, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}});
        post(&client, path, json!({"metadata": {"name": format!("web-{i}")}, "spec": spec})).await;
    }
    let applied = began.elapsed();
    // The last one alone is cheap to look at; the others are not far when it is ready.
    let last = format!("{path}/web-{}", DEPLOYMENTS - 1);
    until(OFTEN, async || {
        let object = text(&client, &last).await.ok().and_then(|t| serde_json::from_str::<Value>(&t).ok());
        object.is_some_and(|d| d["status"]["readyReplicas"] == REPLICAS)
    })
    .await;
    until(SOON, async || {
        let ready = items(&client, path)
            .await
            .iter()
            .filter_map(|d| d["status"]["readyReplicas"].as_u64())
            .sum::<u64>();
        ready == (DEPLOYMENTS * REPLICAS) as u64
    })
    .await;
    println!(
        "{DEPLOYMENTS} Deployments of {REPLICAS} pods on 100 nodes: applied in {applied:.1?}, ready after {:.1?}",
        began.elapsed()
    );
    tokio::time::sleep(QUIET).await;
    // Before all of them are listed, which takes memory too.
    let each = (memory() - before) * 1024.0 / (DEPLOYMENTS * REPLICAS) as f64;
    let one = text(&client, "/api/v1/pods?limit=1").await.expect("a list");
    let one = serde_json::from_str::<Value>(&one).expect("JSON");
    println!("{} writes in all", one["metadata"]["resourceVersion"].as_str().unwrap_or_default());
    println!(
        "memory: {each:.1} KB for each pod, whose JSON is {:.1} KB; everything that a pod brings with it included",
        one["items"][0].to_string().len() as f64 / 1024.0
    );
    cluster.stop(Duration::from_secs(5)).await;
}

async fn namespace() {
    let (cluster, client) = cluster(1).await;
    post(&client, "/api/v1/namespaces", json!({"metadata": {"name": "large"}})).await;
    for i in 0..IN_NAMESPACE {
        let object = json!({"metadata": {"name": format!("c-{i}")}, "data": {"key": "value"}});
        post(&client, "/api/v1/namespaces/large/configmaps", object).await;
    }
    let began = Instant::now();
    let path = "/api/v1/namespaces/large";
    client
        .request::<Value>(Request::delete(path).body(Vec::new()).expect("a request"))
        .await
        .expect("an answer");
    until(OFTEN, async || matches!(text(&client, path).await, Err(kube::Error::Api(s)) if s.code == 404))
        .await;
    println!("a namespace of {IN_NAMESPACE} objects is gone after {:.2?}", began.elapsed());
    cluster.stop(Duration::from_secs(5)).await;
}

async fn nodes() {
    let (began, before) = (Instant::now(), memory());
    let (cluster, _) = cluster(NODES).await;
    let ready = began.elapsed();
    tokio::time::sleep(QUIET).await;
    println!(
        "{NODES} nodes are ready after {ready:.1?} and take {:.1} KB each, object and lease included",
        (memory() - before) * 1024.0 / NODES as f64
    );
    cluster.stop(Duration::from_secs(5)).await;
}

/// Pods of a kind, from the first one's creation until the last one is bound; the nodes are objects without kubelets.
async fn scheduling(kind: &str, pods: usize) {
    let mut options = ClusterOptions { nodes: 0, ..ClusterOptions::default() };
    options.controllers("scheduler").expect("a scheduler");
    options.disabled_admission(&["ServiceAccount".to_owned()]).expect("a plugin");
    let cluster = Cluster::with(options).await.expect("a control plane");
    let client = cluster.client();
    for i in 0..NODES {
        let name = format!("node-{i:05}");
        let labels =
            json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("zone-{}", i % 3)});
        let room = json!({"cpu": "4", "memory": "32Gi", "pods": "110"});
        let status = json!({"capacity": room, "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}]});
        post(
            &client,
            "/api/v1/nodes",
            json!({"metadata": {"name": name, "labels": labels}, "status": status}),
        )
        .await;
    }
    let selector = json!({"matchLabels": {"app": "web"}});
    let container = json!({"name": "c", "image": "registry.example/web:1",
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}}});
    let mut spec = json!({"containers": [container]});
    match kind {
        "spreading" => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
        }
        "anti-affinity" => {
            spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                [{"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]}});
        }
        _ => {}
    }
    let path = "/api/v1/namespaces/default/pods";
    let create = async |name: &str| {
        let meta = json!({"name": name, "labels": {"app": "web"}});
        post(&client, path, json!({"metadata": meta, "spec": spec})).await;
    };
    let bound = async |name: &str| {
        let pod = text(&client, &format!("{path}/{name}")).await.ok();
        pod.is_some_and(|p| p.contains("\"nodeName\""))
    };
    // Until it knows the nodes.
    create("first").await;
    until(SOON, async || bound("first").await).await;
    let began = Instant::now();
    for i in 0..pods {
        create(&format!("pod-{i}")).await;
    }
    let last = format!("pod-{}", pods - 1);
    until(OFTEN, async || bound(&last).await).await;
    let unbound = format!("{path}?fieldSelector=spec.nodeName=");
    until(OFTEN, async || items(&client, &unbound).await.is_empty()).await;
    let rate = pods as f64 / began.elapsed().as_secs_f64();
    println!("{kind}: {rate:.0} of {pods} pods bound per second on {NODES} nodes, through the API");
    cluster.stop(Duration::from_secs(5)).await;
}

#[tokio::main]
async fn main() {
    // What one has freed would count for the next: each has a process of its own.
    match std::env::var("SCALE").as_deref() {
        Ok("deployments") => deployments().await,
        Ok("namespace") => namespace().await,
        Ok("nodes") => nodes().await,
        // As many of each as in scheduler_perf.
        Ok("basic") => scheduling("basic", 10_000).await,
        Ok("spreading") => scheduling("spreading", 5_000).await,
        Ok("anti-affinity") => scheduling("anti-affinity", 2_000).await,
        _ => {
            for part in ["deployments", "namespace", "nodes", "basic", "spreading", "anti-affinity"] {
                let me = std::env::current_exe().expect("a path");
                let status = std::process::Command::new(me).env("SCALE", part).status();
                assert!(status.is_ok_and(|s| s.success()), "{part} failed");
            }
        }
    }
}
