//! What becomes of pods on nodes that drive them out or stop answering.

use homeostat_cluster::simulate;
use serde_json::json;

use crate::virtual_time::Simulation;

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn node(world: &Simulation) -> String {
    let nodes = world.items("/api/v1/nodes").await;
    format!("/api/v1/nodes/{}", nodes[0]["metadata"]["name"].as_str().unwrap())
}

#[test]
fn tolerations_of_a_taint_run_out() {
    simulate(async || {
        let world = Simulation::start(21, 1).await;
        let path = node(&world).await;
        for (name, seconds) in [("never", json!(0)), ("short", json!(60)), ("long", json!(null))] {
            let pod = json!({"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 1,
                "containers": [{"name": "c", "image": "i"}],
                "tolerations": [{"key": "out", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]}});
            world.create(PODS, pod).await;
        }
        world.pass(30).await;
        world.merge(&path, json!({"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})).await;
        let names = async |world: &Simulation| {
            let pods = world.items(PODS).await;
            pods.iter().map(|p| p["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        world.pass(30).await;
        assert_eq!(names(&world).await, ["long", "short"]);
        world.pass(60).await;
        assert_eq!(names(&world).await, ["long"]);
        let events = world.items("/api/v1/namespaces/default/events").await;
        let told = |text: &str| events.iter().any(|e| e["message"] == text);
        assert!(told("Marking for deletion Pod default/short"), "{events:#?}");
    })
    .unwrap();
}
