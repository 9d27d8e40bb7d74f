//! No hot loops: what can't be done is told and tried again ever more seldom.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const HOUR: u64 = 3600;

fn template(extra: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "busybox"}]});
    spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"metadata": {"labels": {"app": "a"}}, "spec": spec})
}

fn replicas(name: &str, count: i32) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": count, "selector": {"matchLabels": {"app": "a"}},
        "template": template(json!({}))}})
}

/// Inputs that nobody can make good.
async fn bad_inputs(world: &Simulation) {
    world.create("/api/v1/namespaces", json!({"metadata": {"name": "full"}})).await;
    world.pass(5).await;
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "1"}}});
    world.create("/api/v1/namespaces/full/resourcequotas", quota).await;
    world.pass(5).await;
    let account = || template(json!({"serviceAccountName": "nobody", "restartPolicy": "Never"}));
    for (path, object) in [
        // A quota in the way.
        ("/apis/apps/v1/namespaces/full/deployments", replicas("web", 3)),
        ("/apis/apps/v1/namespaces/full/statefulsets", {
            let mut set = replicas("db", 3);
            set["spec"]["serviceName"] = "db".into();
            set
        }),
        // Pods that can't be admitted.
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"metadata": {"name": "never"}, "spec": {"template": account()}}),
        ),
        // Two controllers that select the same pods.
        ("/apis/apps/v1/namespaces/default/replicasets", replicas("one", 2)),
        ("/apis/apps/v1/namespaces/default/replicasets", replicas("two", 2)),
        // Selectors that match nothing.
        (
            "/api/v1/namespaces/default/services",
            json!({"metadata": {"name": "empty"}, "spec": {"selector": {"app": "none"}, "ports": [{"port": 80}]}}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"metadata": {"name": "empty"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "none"}}}}),
        ),
        // Claims that get no volume.
        (
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"metadata": {"name": "lost"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "absent",
                "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        // Owners of each other.
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "a"}})),
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "b"}})),
    ] {
        world.create(path, object).await;
    }
    let maps = "/api/v1/namespaces/default/configmaps";
    let (a, b) = (world.get(&format!("{maps}/a")).await, world.get(&format!("{maps}/b")).await);
    for (owned, owner) in [(&a, &b), (&b, &a)] {
        let reference = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"]}]);
        let path = format!("{maps}/{}", owned["metadata"]["name"].as_str().unwrap());
        world.merge(&path, json!({"metadata": {"ownerReferences": reference}})).await;
    }
}

#[test]
fn what_cannot_be_done_costs_little() {
    simulate(async || {
        let world = Simulation::start(1, 0).await;
        bad_inputs(&world).await;
        world.pass(HOUR).await;
        world.count.take();
        world.pass(HOUR).await;
        let counted = world.count.take();
        let sum: usize = counted.values().sum();
        assert!(sum < 200, "{sum} requests in an hour: {counted:#?}");
        // And it was told.
        let events = world.items("/api/v1/namespaces/full/events").await;
        assert!(events.iter().any(|e| e["reason"] == "FailedCreate"), "{events:#?}");
        let deployment = world.get("/apis/apps/v1/namespaces/full/deployments/web").await;
        let conditions = deployment["status"]["conditions"].as_array().unwrap();
        assert!(conditions.iter().any(|c| c["type"] == "ReplicaFailure" && c["status"] == "True"));
    })
    .unwrap();
}

#[test]
fn an_idle_cluster_is_idle() {
    simulate(async || {
        let world = Simulation::start(2, 0).await;
        world.create("/apis/apps/v1/namespaces/default/deployments", replicas("web", 3)).await;
        world.pass(HOUR).await;
        world.count.take();
        world.pass(HOUR).await;
        let counted = world.count.take();
        let sum: usize = counted.values().sum();
        // There is no node: as in the reference, the scheduler tries each of the three pods again every five minutes.
        assert!(sum < 20 + 3 * 12, "{sum} requests in an hour: {counted:#?}");
    })
    .unwrap();
}
