//! The life of a ReplicationController.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const CONTROLLERS: &str = "/api/v1/namespaces/default/replicationcontrollers";
const PODS: &str = "/api/v1/namespaces/default/pods";

async fn names(world: &Simulation) -> Vec<Value> {
    world.items(PODS).await.iter().map(|p| p["metadata"]["name"].clone()).collect()
}

#[test]
fn a_replication_controller_lives() {
    simulate(async || {
        let world = Simulation::start(101, 1).await;
        let controller = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"app": "web"},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"terminationGracePeriodSeconds": 1,
                "containers": [{"name": "c", "image": "i"}]}}}});
        world.create(CONTROLLERS, controller).await;
        world.pass(30).await;
        let web = format!("{CONTROLLERS}/web");
        let status = world.get(&web).await["status"].clone();
        assert_eq!((&status["replicas"], &status["readyReplicas"], &status["availableReplicas"]),
            (&json!(2), &json!(2), &json!(2)));

        // One that vanishes is replaced.
        let before = names(&world).await;
        world.delete(&format!("{PODS}/{}", before[0].as_str().unwrap()), "Background").await;
        world.pass(30).await;
        let after = names(&world).await;
        assert!(after.len() == 2 && after != before, "{before:?} {after:?}");

        // One that changes its labels is let go and replaced.
        let path = format!("{PODS}/{}", after[0].as_str().unwrap());
        world.merge(&path, json!({"metadata": {"labels": {"app": "other"}}})).await;
        world.pass(30).await;
        assert_eq!(names(&world).await.len(), 3);
        assert!(world.get(&path).await["metadata"]["ownerReferences"].is_null());

        world.merge(&format!("{web}/scale"), json!({"spec": {"replicas": 1}})).await;
        world.pass(30).await;
        assert_eq!(world.get(&web).await["status"]["readyReplicas"], 1);
        assert_eq!(names(&world).await.len(), 2);

        world.delete(&web, "Foreground").await;
        world.pass(30).await;
        assert!(world.items(CONTROLLERS).await.is_empty());
        assert_eq!(names(&world).await.len(), 1, "the one that was let go stays");
    })
    .unwrap();
}
