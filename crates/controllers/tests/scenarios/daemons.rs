//! DaemonSets whose pods end.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "a"}}, "spec": {"tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": image}]}})
}

/// The set's only pod ends; whether another one has its place a second later.
async fn is_replaced(world: &Simulation, phase: &str) -> bool {
    let uid = async || world.items(PODS).await.first().map(|p| p["metadata"]["uid"].clone());
    let pods = world.items(PODS).await;
    let path = format!("{PODS}/{}/status", pods[0]["metadata"]["name"].as_str().unwrap());
    world.merge(&path, json!({"status": {"phase": phase}})).await;
    let before = uid().await;
    world.pass(1).await;
    let after = uid().await;
    after.is_some() && after != before
}

/// A node that nobody runs, so that its pod's life is the test's.
async fn start(seed: u64) -> Simulation {
    let world = Simulation::start(seed, 0).await;
    world.create("/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    let set = json!({"metadata": {"name": "ds"}, "spec": {"selector": {"matchLabels": {"app": "a"}},
        "template": template("one")}});
    world.create(SETS, set).await;
    world.pass(1).await;
    world
}

#[test]
fn a_template_that_was_put_right_does_not_wait() {
    simulate(async || {
        let world = start(41).await;
        let mut at_once = 0;
        while is_replaced(&world, "Failed").await {
            at_once += 1;
            assert!(at_once < 10, "nothing slows it down");
        }
        // The delays have grown; one more failure waits for seconds.
        world.pass(60).await;
        assert!(is_replaced(&world, "Failed").await);
        assert!(!is_replaced(&world, "Failed").await);
        world.merge(&format!("{SETS}/ds"), json!({"spec": {"template": template("two")}})).await;
        world.pass(1).await;
        let pods = world.items(PODS).await;
        assert_eq!(pods.len(), 1, "{pods:#?}");
        assert_eq!(pods[0]["spec"]["containers"][0]["image"], "two");
    })
    .unwrap();
}

#[test]
fn pods_that_succeed_are_replaced_at_once() {
    simulate(async || {
        let world = start(42).await;
        for _ in 0..10 {
            assert!(is_replaced(&world, "Succeeded").await);
        }
    })
    .unwrap();
}
