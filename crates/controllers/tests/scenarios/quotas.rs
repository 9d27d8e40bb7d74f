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

#[test]
fn a_resize_is_charged_and_given_back_at_once() {
    simulate(async || {
        let world = Simulation::start(64, 1).await;
        let hard = json!({"requests.cpu": "1", "limits.cpu": "2"});
        world.create(QUOTAS, json!({"metadata": {"name": "team"}, "spec": {"hard": hard}})).await;
        world.pass(5).await;
        let resources = |cpu: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
        let containers = |cpu: &str| json!([{"name": "c", "image": "i", "resources": resources(cpu)}]);
        world
            .create(PODS, json!({"metadata": {"name": "a"}, "spec": {"containers": containers("500m")}}))
            .await;
        world.pass(30).await;
        let resize = async |cpu: &str| {
            let body =
                json!({"spec": {"containers": [{"name": "c", "resources": resources(cpu)}]}}).to_string();
            let request = http::Request::patch(format!("{PODS}/a/resize"))
                .header("content-type", "application/strategic-merge-patch+json");
            world.client.request::<Value>(request.body(body.into_bytes()).unwrap()).await
        };
        resize("800m").await.unwrap();
        assert_eq!(used(&world, "team").await, json!({"requests.cpu": "800m", "limits.cpu": "800m"}));
        let refused = resize("2").await.unwrap_err().to_string();
        assert!(refused.contains("exceeded quota: team, requested: requests.cpu=1200m"), "{refused}");
        world.pass(60).await;
        resize("300m").await.unwrap();
        // As long as the pod has more, it is charged with more; then no longer, and without waiting for a recount.
        world.pass(20).await;
        assert_eq!(used(&world, "team").await, json!({"requests.cpu": "300m", "limits.cpu": "300m"}));
    })
    .unwrap();
}
