//! Pods that nobody else takes away.

use homeostat_cluster::{ClusterOptions, simulate};
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const PODS: &str = "/api/v1/namespaces/default/pods";
const NODES: &str = "/api/v1/nodes";

fn pod(name: &str, node: Option<&str>, finalizers: &[&str]) -> Value {
    json!({"metadata": {"name": name, "finalizers": finalizers}, "spec": {"nodeName": node,
        "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]}})
}

async fn names(world: &Simulation) -> Vec<String> {
    let pods = world.items(PODS).await;
    pods.iter().map(|p| p["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn pods_of_a_node_that_is_gone_fail_and_go() {
    simulate(async || {
        let world = Simulation::start(51, 0).await;
        world.create(PODS, pod("lost", Some("gone"), &[])).await;
        world.create(PODS, pod("held", Some("gone"), &["example.com/hold"])).await;
        // The node of this one comes in time.
        world.create(PODS, pod("early", Some("late"), &[])).await;
        world.pass(30).await;
        world.create(NODES, json!({"metadata": {"name": "late"}})).await;
        assert_eq!(names(&world).await, ["early", "held", "lost"]);
        world.pass(30).await;
        assert_eq!(names(&world).await, ["early", "held"]);
        let held = world.get(&format!("{PODS}/held")).await;
        assert_eq!(held["status"]["phase"], "Failed");
        assert!(!held["metadata"]["deletionTimestamp"].is_null());
        let conditions = held["status"]["conditions"].as_array().unwrap();
        let told = conditions.iter().find(|c| c["type"] == "DisruptionTarget").unwrap();
        assert_eq!((&told["status"], &told["reason"]), (&json!("True"), &json!("DeletionByPodGC")));
        world.count.take();
        world.pass(3600).await;
        let counted = world.count.take();
        assert!(counted.values().sum::<usize>() < 10, "{counted:#?}");
    })
    .unwrap();
}

#[test]
fn a_pod_that_never_had_a_node_goes_when_it_may() {
    simulate(async || {
        let world = Simulation::start(52, 0).await;
        world.create(PODS, pod("held", None, &["example.com/hold"])).await;
        world.pass(5).await;
        world.delete(&format!("{PODS}/held"), "Background").await;
        world.pass(60).await;
        assert_eq!(names(&world).await, ["held"]);
        world.merge(&format!("{PODS}/held"), json!({"metadata": {"finalizers": null}})).await;
        world.pass(5).await;
        assert!(names(&world).await.is_empty());
    })
    .unwrap();
}

#[test]
fn pods_leave_a_node_that_is_out_of_service() {
    simulate(async || {
        let world = Simulation::start(53, 0).await;
        world.create(NODES, json!({"metadata": {"name": "off"}})).await;
        let ready = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        world.merge(&format!("{NODES}/off/status"), ready("True")).await;
        world.create(PODS, pod("leaves", Some("off"), &[])).await;
        world.create(PODS, pod("stays", Some("off"), &[])).await;
        world.pass(5).await;
        world.delete(&format!("{PODS}/leaves"), "Background").await;
        let taint = json!({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]}});
        world.merge(&format!("{NODES}/off"), taint).await;
        world.pass(10).await;
        // It is ready: there is a kubelet that will end the pod.
        assert_eq!(names(&world).await, ["leaves", "stays"]);
        world.merge(&format!("{NODES}/off/status"), ready("False")).await;
        world.pass(10).await;
        assert_eq!(names(&world).await, ["stays"]);
        // One that is deleted later doesn't wait either.
        world.delete(&format!("{PODS}/stays"), "Background").await;
        world.pass(5).await;
        assert!(names(&world).await.is_empty());
    })
    .unwrap();
}

#[test]
fn of_pods_that_ended_some_stay() {
    simulate(async || {
        let options = ClusterOptions { nodes: 0, terminated_pods: 2, ..ClusterOptions::simulated(54) };
        let world = Simulation::with(options).await;
        world.create(PODS, pod("running", None, &[])).await;
        for (name, phase, reason) in [
            ("a", "Succeeded", ""),
            ("b", "Failed", ""),
            ("c", "Failed", "Evicted"),
            ("d", "Succeeded", ""),
            ("e", "Failed", ""),
        ] {
            world.create(PODS, pod(name, None, &[])).await;
            let status = json!({"status": {"phase": phase, "reason": reason}});
            world.merge(&format!("{PODS}/{name}/status"), status).await;
            world.pass(2).await;
        }
        world.pass(60).await;
        assert_eq!(names(&world).await, ["d", "e", "running"]);
    })
    .unwrap();
}
