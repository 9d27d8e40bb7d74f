//! Claims and volumes, from the wish for one to what is left of it.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

fn claim(name: &str, extra: Value) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn a_claim_gets_a_volume_of_the_default_class() {
    simulate(async || {
        let world = Simulation::start(11, 0).await;
        world.create(CLAIMS, claim("data", json!({}))).await;
        world.pass(5).await;
        let got = world.get(&format!("{CLAIMS}/data")).await;
        assert_eq!(
            (&got["status"]["phase"], &got["spec"]["storageClassName"]),
            (&json!("Bound"), &json!("standard"))
        );
        assert_eq!(got["status"]["capacity"]["storage"], "1Gi");
        let name = format!("pvc-{}", got["metadata"]["uid"].as_str().unwrap());
        assert_eq!(got["spec"]["volumeName"], *name);
        let volume = world.get(&format!("{VOLUMES}/{name}")).await;
        assert_eq!(volume["status"]["phase"], "Bound");
        assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Delete");

        let more = json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}});
        world.merge(&format!("{CLAIMS}/data"), more).await;
        world.pass(5).await;
        let got = world.get(&format!("{CLAIMS}/data")).await;
        assert_eq!(got["status"]["capacity"]["storage"], "3Gi");
        let volume = world.get(&format!("{VOLUMES}/{name}")).await;
        assert_eq!(volume["spec"]["capacity"]["storage"], "3Gi");

        world.delete(&format!("{CLAIMS}/data"), "Background").await;
        world.pass(5).await;
        assert!(world.items(CLAIMS).await.is_empty());
        assert!(world.items(VOLUMES).await.is_empty());
    })
    .unwrap();
}

#[test]
fn volumes_by_hand_are_bound_and_kept() {
    simulate(async || {
        let world = Simulation::start(12, 0).await;
        for (name, size) in [("large", "5Gi"), ("small", "2Gi")] {
            world
                .create(
                    VOLUMES,
                    json!({"metadata": {"name": name}, "spec": {"capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}}),
                )
                .await;
        }
        world.pass(5).await;
        assert_eq!(world.get(&format!("{VOLUMES}/small")).await["status"]["phase"], "Available");
        world.create(CLAIMS, claim("data", json!({"storageClassName": ""}))).await;
        world.pass(5).await;
        assert_eq!(world.get(&format!("{CLAIMS}/data")).await["spec"]["volumeName"], "small");
        world.create(CLAIMS, claim("more", json!({"storageClassName": "", "volumeName": "small"}))).await;
        world.pass(5).await;
        assert_eq!(world.get(&format!("{CLAIMS}/more")).await["status"]["phase"], "Pending");
        // The volume keeps what it holds: it is for nobody else.
        world.delete(&format!("{CLAIMS}/data"), "Background").await;
        world.pass(5).await;
        assert_eq!(world.get(&format!("{VOLUMES}/small")).await["status"]["phase"], "Released");
        // A claim whose volume is taken away has lost it.
        world.create(CLAIMS, claim("last", json!({"storageClassName": ""}))).await;
        world.pass(5).await;
        world.merge(&format!("{VOLUMES}/large"), json!({"metadata": {"finalizers": null}})).await;
        world.delete(&format!("{VOLUMES}/large"), "Background").await;
        world.pass(5).await;
        assert_eq!(world.get(&format!("{CLAIMS}/last")).await["status"]["phase"], "Lost");
    })
    .unwrap();
}

#[test]
fn classes_that_come_late_and_classes_that_wait() {
    simulate(async || {
        let world = Simulation::start(13, 1).await;
        world.delete(&format!("{CLASSES}/standard"), "Background").await;
        world.create(CLAIMS, claim("early", json!({}))).await;
        world
            .create(
                CLASSES,
                json!({"metadata": {"name": "late"}, "provisioner": "homeostat.dev/simulated",
            "volumeBindingMode": "WaitForFirstConsumer"}),
            )
            .await;
        world.create(CLAIMS, claim("waits", json!({"storageClassName": "late"}))).await;
        world.pass(60).await;
        assert_eq!(world.get(&format!("{CLAIMS}/waits")).await["status"]["phase"], "Pending");
        let events = world.items("/api/v1/namespaces/default/events").await;
        assert!(events.iter().any(|e| e["reason"] == "WaitForFirstConsumer"), "{events:#?}");
        let default =
            json!({"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}});
        world.merge(&format!("{CLASSES}/late"), default).await;
        world.pass(5).await;
        assert_eq!(world.get(&format!("{CLAIMS}/early")).await["spec"]["storageClassName"], "late");
        // A generic ephemeral volume is a claim of the pod's own.
        let pod = |volume: Value| {
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}],
            "volumes": [volume]}})
        };
        world
            .create(
                "/api/v1/namespaces/default/pods",
                pod(json!({"name": "tmp", "ephemeral": {"volumeClaimTemplate":
            {"spec": claim("", json!({}))["spec"]}}})),
            )
            .await;
        world.pass(30).await;
        let got = world.get(&format!("{CLAIMS}/p-tmp")).await;
        assert_eq!(got["metadata"]["ownerReferences"][0]["name"], "p");
        assert_eq!(got["status"]["phase"], "Bound", "{got:#}");
        world.delete("/api/v1/namespaces/default/pods/p", "Background").await;
        world.pass(120).await;
        assert!(world.items(CLAIMS).await.iter().all(|c| c["metadata"]["name"] != "p-tmp"));
    })
    .unwrap();
}

#[test]
fn a_pod_whose_claim_belongs_to_another_is_told() {
    simulate(async || {
        let world = Simulation::start(15, 0).await;
        world.create(CLAIMS, claim("work-tmp", json!({}))).await;
        world.pass(5).await;
        let template = json!({"spec": claim("", json!({}))["spec"]});
        let pod = json!({"metadata": {"name": "work"}, "spec": {"containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}]}});
        world.create("/api/v1/namespaces/default/pods", pod).await;
        world.pass(5).await;
        let events = world.items("/api/v1/namespaces/default/events").await;
        let text = "ephemeral volume tmp: PVC default/work-tmp was not created for pod default/work (pod is not owner)";
        assert!(events.iter().any(|e| e["reason"] == "FailedBinding" && e["message"] == text), "{events:#?}");
    })
    .unwrap();
}

#[test]
fn a_class_of_attributes_stays_while_a_claim_names_it() {
    simulate(async || {
        let world = Simulation::start(16, 0).await;
        let classes = "/apis/storage.k8s.io/v1/volumeattributesclasses";
        let class =
            json!({"metadata": {"name": "gold"}, "driverName": "example.com", "parameters": {"iops": "9"}});
        world.create(classes, class).await;
        world.create(CLAIMS, claim("data", json!({"volumeAttributesClassName": "gold"}))).await;
        world.pass(5).await;
        let has = world.get(&format!("{classes}/gold")).await;
        assert_eq!(has["metadata"]["finalizers"], json!(["kubernetes.io/vac-protection"]));
        world.delete(&format!("{classes}/gold"), "Background").await;
        world.pass(60).await;
        assert_eq!(world.items(classes).await.len(), 1);
        world.delete(&format!("{CLAIMS}/data"), "Background").await;
        world.pass(60).await;
        assert!(world.items(classes).await.is_empty());
    })
    .unwrap();
}
