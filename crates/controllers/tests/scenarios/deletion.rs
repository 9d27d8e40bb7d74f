//! Workloads that are deleted while their pods take their time: nothing is made again, and waiting costs nothing.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const APPS: &str = "/apis/apps/v1/namespaces/default";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// A workload whose pods take ten minutes to stop.
fn slow(name: &str) -> Value {
    let template = json!({"metadata": {"labels": {"app": name},
        "annotations": {"simulation.homeostat.dev/stop": "never"}},
        "spec": {"terminationGracePeriodSeconds": 600, "containers": [{"name": "c", "image": "i"}]}});
    json!({"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}})
}

async fn names(world: &Simulation, path: &str) -> Vec<String> {
    let items = world.items(path).await;
    items.iter().map(|i| i["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_workload_that_waits_for_its_pods_is_quiet() {
    for kind in ["daemonsets", "statefulsets", "deployments", "replicasets"] {
        simulate(async || {
            let world = Simulation::start(31, 1).await;
            let path = format!("{APPS}/{kind}");
            world.create(&path, slow("web")).await;
            world.pass(30).await;
            assert_eq!(world.items(PODS).await.len(), 1, "{kind}");
            world.delete(&format!("{path}/web"), "Foreground").await;
            world.pass(60).await;
            world.count.take();
            world.pass(300).await;
            let counted = world.count.take();
            let about: usize = counted.values().sum();
            assert!(about < 10, "{kind}: {counted:#?}");
            assert_eq!(names(&world, &path).await, ["web"], "{kind}");
            world.pass(300).await;
            for path in [&*path, PODS, &format!("{APPS}/controllerrevisions"), &format!("{APPS}/replicasets")]
            {
                assert!(names(&world, path).await.is_empty(), "{kind}: {path}");
            }
        })
        .unwrap();
    }
}

#[test]
fn orphans_of_a_workload_stay_and_are_left_alone() {
    for kind in ["daemonsets", "statefulsets"] {
        simulate(async || {
            let world = Simulation::start(32, 1).await;
            let path = format!("{APPS}/{kind}");
            world.create(&path, slow("web")).await;
            world.pass(30).await;
            let revisions = format!("{APPS}/controllerrevisions");
            let (pods, history) = (names(&world, PODS).await, names(&world, &revisions).await);
            // One that is on its way out for a long time.
            world.delete(&format!("{PODS}/{}", pods[0]), "Background").await;
            world.pass(5).await;
            world.count.take();
            world.delete(&format!("{path}/web"), "Orphan").await;
            world.pass(60).await;
            let counted = world.count.take();
            let about: usize = counted.values().sum();
            assert!(about < 30, "{kind}: {counted:#?}");
            assert!(names(&world, &path).await.is_empty(), "{kind}");
            assert_eq!(
                (names(&world, PODS).await, names(&world, &revisions).await),
                (pods, history),
                "{kind}"
            );
            for orphan in world.items(PODS).await.iter().chain(&world.items(&revisions).await) {
                assert!(orphan["metadata"]["ownerReferences"].is_null(), "{kind}: {orphan:#}");
            }
        })
        .unwrap();
    }
}
