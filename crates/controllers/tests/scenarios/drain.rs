//! Evictions, as `kubectl drain` asks for them.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// Evicts the only pod there is, and returns it as it is right after that.
async fn evicted(world: &Simulation) -> Value {
    let pods = world.items(PODS).await;
    let [pod] = &*pods else { panic!("{} pods", pods.len()) };
    let name = pod["metadata"]["name"].as_str().unwrap();
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        "deleteOptions": {"preconditions": {"resourceVersion": pod["metadata"]["resourceVersion"]}}});
    assert!(world.post(&format!("{PODS}/{name}/eviction"), eviction).await);
    world.get(&format!("{PODS}/{name}")).await
}

#[test]
fn an_eviction_is_no_failure_of_a_job_that_ignores_disruptions() {
    for (ignores, want) in [(true, Value::Null), (false, json!("BackoffLimitExceeded"))] {
        simulate(async || {
            let world = Simulation::start(1, 1).await;
            // Somebody's finalizer keeps the pod, to be looked at.
            let mut spec = json!({"backoffLimit": 0, "template": {
                "metadata": {"finalizers": ["example.com/look"],
                    "annotations": {"simulation.homeostat.dev/exit": "0 after 1h",
                        "simulation.homeostat.dev/stop": "143 after 1s"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "work:1"}]}}});
            if ignores {
                spec["podFailurePolicy"] = json!({"rules": [{"action": "Ignore",
                    "onPodConditions": [{"type": "DisruptionTarget"}]}]});
            }
            world.create(JOBS, json!({"metadata": {"name": "work"}, "spec": spec})).await;
            world.pass(10).await;
            let pod = evicted(&world).await;
            let told = pod["status"]["conditions"].as_array().unwrap().iter();
            let told: Vec<_> = told.filter(|c| c["type"] == "DisruptionTarget").collect();
            let [told] = told[..] else { panic!("{pod:#}") };
            assert_eq!(
                (&told["status"], &told["reason"], &told["message"]),
                (&json!("True"), &json!("EvictionByEvictionAPI"), &json!("Eviction API: evicting"))
            );
            world.pass(120).await;
            let job = world.get(&format!("{JOBS}/work")).await;
            let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let failed = conditions.iter().find(|c| c["type"] == "Failed");
            assert_eq!(failed.map_or(Value::Null, |c| c["reason"].clone()), want, "{job:#}");
            assert_eq!(job["status"]["active"], if ignores { json!(1) } else { Value::Null });
        })
        .unwrap();
    }
}

#[test]
fn an_announced_disruption_that_does_not_come_is_taken_back() {
    simulate(async || {
        let world = Simulation::start(2, 1).await;
        let template = json!({"metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 1,
            "selector": {"matchLabels": {"app": "a"}}, "template": template}});
        world.create(SETS, set).await;
        world.pass(10).await;
        let name = world.items(PODS).await[0]["metadata"]["name"].as_str().unwrap().to_owned();
        // The server wrote it and then was ended, before it deleted the pod.
        let announced = json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastTransitionTime": world.get(&format!("{PODS}/{name}"))
                .await["metadata"]["creationTimestamp"]}]);
        let pod = world.get(&format!("{PODS}/{name}")).await;
        let mut conditions = pod["status"]["conditions"].as_array().unwrap().clone();
        conditions.extend(announced.as_array().unwrap().clone());
        world.merge(&format!("{PODS}/{name}/status"), json!({"status": {"conditions": conditions}})).await;
        let told = async || {
            let pod = world.get(&format!("{PODS}/{name}")).await;
            let all = pod["status"]["conditions"].as_array().unwrap();
            all.iter().find(|c| c["type"] == "DisruptionTarget").unwrap().clone()
        };
        world.pass(90).await;
        assert_eq!(told().await["status"], "True");
        world.pass(30).await;
        let told = told().await;
        assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("EvictionByEvictionAPI")));
    })
    .unwrap();
}
