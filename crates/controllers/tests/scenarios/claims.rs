//! What becomes of a StatefulSet's claims when its pods go.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";

fn set(scaled: &str, deleted: &str) -> Value {
    json!({"metadata": {"name": "db"}, "spec": {"replicas": 3, "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": scaled, "whenDeleted": deleted},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "i"}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}]}})
}

async fn names(world: &Simulation, path: &str) -> Vec<String> {
    let items = world.items(path).await;
    items.iter().map(|i| i["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn claims_follow_the_retention_policy() {
    let all = ["data-db-0", "data-db-1", "data-db-2"];
    for (scaled, deleted, after_scaling, after_deletion) in [
        ("Delete", "Delete", &all[..1], &all[..0]),
        ("Delete", "Retain", &all[..1], &all[..1]),
        ("Retain", "Delete", &all[..], &all[..0]),
        ("Retain", "Retain", &all[..], &all[..]),
    ] {
        simulate(async || {
            let world = Simulation::start(71, 1).await;
            world.create(SETS, set(scaled, deleted)).await;
            world.pass(60).await;
            assert_eq!(names(&world, CLAIMS).await, all);
            world.merge(&format!("{SETS}/db"), json!({"spec": {"replicas": 1}})).await;
            world.pass(60).await;
            assert_eq!(names(&world, PODS).await, ["db-0"]);
            assert_eq!(names(&world, CLAIMS).await, after_scaling, "{scaled} {deleted}");
            world.delete(&format!("{SETS}/db"), "Background").await;
            world.pass(60).await;
            assert_eq!(names(&world, CLAIMS).await, after_deletion, "{scaled} {deleted}");
        })
        .unwrap();
    }
}

#[test]
fn a_pod_waits_until_its_claims_are_its_own() {
    simulate(async || {
        let world = Simulation::start(72, 1).await;
        world.create(SETS, set("Delete", "Retain")).await;
        world.pass(60).await;
        // For a while nobody can give claims to pods.
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
            "resources": ["persistentvolumeclaims"]}]);
        let policy = json!({"metadata": {"name": "no"}, "spec": {"matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "!has(object.metadata.ownerReferences)"}]}});
        world.create(&format!("{POLICIES}/validatingadmissionpolicies"), policy).await;
        let bindings = format!("{POLICIES}/validatingadmissionpolicybindings");
        let binding =
            json!({"metadata": {"name": "no"}, "spec": {"policyName": "no", "validationActions": ["Deny"]}});
        world.create(&bindings, binding).await;
        world.pass(5).await;
        world.merge(&format!("{SETS}/db"), json!({"spec": {"replicas": 2}})).await;
        world.pass(60).await;
        assert_eq!(names(&world, PODS).await.len(), 3);
        world.delete(&format!("{bindings}/no"), "Background").await;
        world.pass(300).await;
        assert_eq!(names(&world, PODS).await, ["db-0", "db-1"]);
        assert_eq!(names(&world, CLAIMS).await, ["data-db-0", "data-db-1"]);
    })
    .unwrap();
}
