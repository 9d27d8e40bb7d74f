//! Quotas give back what is no longer used.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

fn pod(name: &str, extra: Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "i",
        "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}}],
        "tolerations": [{"operator": "Exists"}]});
    spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn used(world: &Simulation, name: &str) -> Value {
    world.get(&format!("{QUOTAS}/{name}")).await["status"]["used"].clone()
}

#[test]
fn what_is_deleted_is_given_back() {
    simulate(async || {
        let world = Simulation::start(61, 0).await;
        let hard = json!({"pods": "2", "requests.cpu": "1", "count/configmaps": "9"});
        world.create(QUOTAS, json!({"metadata": {"name": "team"}, "spec": {"hard": hard}})).await;
        world.pass(5).await;
        world.create(PODS, pod("a", json!({}))).await;
        world.create(PODS, pod("b", json!({}))).await;
        assert!(!world.post(PODS, pod("c", json!({}))).await, "the quota is used up");
        world.pass(5).await;
        let all = used(&world, "team").await;
        assert_eq!((&all["pods"], &all["requests.cpu"]), (&json!("2"), &json!("1")));
        world.delete(&format!("{PODS}/a"), "Background").await;
        world.pass(5).await;
        let all = used(&world, "team").await;
        assert_eq!((&all["pods"], &all["requests.cpu"]), (&json!("1"), &json!("500m")));
        assert!(world.post(PODS, pod("c", json!({}))).await, "there is room again");
    })
    .unwrap();
}

#[test]
fn a_pod_that_should_be_gone_is_given_back() {
    simulate(async || {
        let world = Simulation::start(62, 0).await;
        world.create("/api/v1/nodes", json!({"metadata": {"name": "off"}})).await;
        world.create(QUOTAS, json!({"metadata": {"name": "team"}, "spec": {"hard": {"pods": "1"}}})).await;
        world.pass(5).await;
        let stuck = json!({"nodeName": "off", "terminationGracePeriodSeconds": 30});
        world.create(PODS, pod("stuck", stuck)).await;
        world.pass(5).await;
        world.delete(&format!("{PODS}/stuck"), "Background").await;
        world.pass(50).await;
        assert_eq!(used(&world, "team").await["pods"], "1");
        world.pass(15).await;
        assert_eq!(used(&world, "team").await["pods"], "0");
        assert_eq!(world.items(PODS).await.len(), 1);
    })
    .unwrap();
}

#[test]
fn a_recount_sees_the_scopes_that_admission_saw() {
    simulate(async || {
        let world = Simulation::start(63, 0).await;
        let crossing = json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "namespaces": ["other"], "labelSelector": {}}]}}});
        let quota = json!({"metadata": {"name": "far"}, "spec": {"hard": {"pods": "2"},
            "scopes": ["CrossNamespacePodAffinity"]}});
        world.create(QUOTAS, quota).await;
        world.pass(5).await;
        world.create(PODS, pod("crossing", crossing)).await;
        world.create(PODS, pod("home", json!({}))).await;
        assert_eq!(used(&world, "far").await["pods"], "1");
        // Long enough for a recount.
        world.pass(600).await;
        assert_eq!(used(&world, "far").await["pods"], "1");
    })
    .unwrap();
}
