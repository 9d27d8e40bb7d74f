//! Services, daemons and budgets over pods that run; and that all of them come to rest.

use std::time::Duration;

use homeostat_cluster::simulate;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::support::{World, holds};
use crate::virtual_time::Simulation;

fn workload(kind: &str, name: &str, extra: Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": name}}, "template": {
        "metadata": {"labels": {"app": name}}, "spec": {"terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "ports": [{"name": "http", "containerPort": 8080}]}]}}});
    for (k, v) in extra.as_object().unwrap() {
        spec[k] = v.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// Ready addresses in all slices of the Service, and their ports.
async fn slices(world: &World) -> (usize, Vec<i32>) {
    let slices = world.list::<EndpointSlice>().await;
    let ours = || slices.iter().filter(|s| s.metadata.generate_name.as_deref() == Some("web-"));
    let ready = ours().flat_map(|s| s.endpoints.iter().flatten());
    let ready = ready.filter(|e| e.conditions.as_ref().and_then(|c| c.ready) == Some(true)).count();
    (ready, ours().flat_map(|s| s.ports.iter().flatten()).filter_map(|p| p.port).collect())
}

#[tokio::test]
async fn a_service_leads_to_ready_pods() {
    let world = World::start().await;
    world
        .create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}}))
        .await;
    world.until("an empty slice", || async { holds(!world.list::<EndpointSlice>().await.is_empty()) }).await;
    world.create(workload("Deployment", "web", json!({"replicas": 2}))).await;
    world.until("two addresses", || async { holds(slices(&world).await == (2, vec![8080])) }).await;
    world
        .until("two addresses in the older form", || async {
            let endpoints = world.api::<Endpoints>().get_opt("web").await.unwrap()?;
            let subsets = endpoints.subsets?;
            holds(subsets.iter().flat_map(|s| s.addresses.iter().flatten()).count() == 2)
        })
        .await;
    world.merge::<Deployment>("web", json!({"spec": {"replicas": 1}})).await;
    world.until("one address", || async { holds(slices(&world).await.0 == 1) }).await;
    world.api::<Service>().delete("web", &DeleteParams::default()).await.unwrap();
    world
        .until("both forms are gone", || async {
            let none = world.api::<Endpoints>().get_opt("web").await.unwrap().is_none();
            holds(none && slices(&world).await.1.is_empty())
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_daemon_runs_on_every_node_and_a_budget_counts_it() {
    let world = World::with_nodes(3).await;
    world
        .create(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    world.create(workload("DaemonSet", "web", json!({}))).await;
    world
        .until("one on each node", || async {
            let status = world.api::<DaemonSet>().get("web").await.unwrap().status?;
            holds(status.desired_number_scheduled == 3 && status.number_available == Some(3))
        })
        .await;
    world
        .until("the budget knows", || async {
            let status = world.api::<PodDisruptionBudget>().get("web").await.unwrap().status?;
            holds(status.disruptions_allowed == Some(2))
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn what_has_converged_rests() {
    let world = World::start().await;
    world.create(workload("Deployment", "a", json!({"replicas": 3}))).await;
    world.create(workload("StatefulSet", "b", json!({"replicas": 2, "serviceName": "b"}))).await;
    world.create(workload("DaemonSet", "c", json!({}))).await;
    world
        .create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
            "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}))
        .await;
    let revision = || async {
        let pods: Value = world.get("/api/v1/pods?limit=1").await?;
        pods["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok()
    };
    // Nodes write their leases meanwhile; a loop would write hundreds of times.
    world
        .until("no more than heartbeats are written", || async {
            let before = revision().await?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            holds(revision().await? <= before + 3)
        })
        .await;
    let a = world.api::<Deployment>().get("a").await.unwrap();
    assert_eq!(a.status.unwrap().available_replicas, Some(3));
    world.stop().await;
}

#[test]
fn endpoints_that_people_write_are_mirrored() {
    simulate(async || {
        let world = Simulation::start(121, 0).await;
        let (services, endpoints) =
            ("/api/v1/namespaces/default/services", "/api/v1/namespaces/default/endpoints");
        let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        let subsets = |ips: &[&str]| {
            let addresses: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip})).collect();
            json!([{"addresses": addresses, "ports": [{"port": 5432}]}])
        };
        world
            .create(services, json!({"metadata": {"name": "db"}, "spec": {"ports": [{"port": 5432}]}}))
            .await;
        world
            .create(endpoints, json!({"metadata": {"name": "db"}, "subsets": subsets(&["192.0.2.1"])}))
            .await;
        world.pass(5).await;
        let mirrored = async || {
            let all = world.items(slices).await;
            let ours = all.into_iter().filter(|s| {
                let labels = &s["metadata"]["labels"];
                labels["endpointslice.kubernetes.io/managed-by"] == "endpointslicemirroring-controller.k8s.io"
                    && labels["kubernetes.io/service-name"] == "db"
            });
            let addresses = ours.flat_map(|s| s["endpoints"].as_array().cloned().unwrap_or_default());
            addresses.map(|e| e["addresses"][0].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(mirrored().await, ["192.0.2.1"]);
        world
            .merge(&format!("{endpoints}/db"), json!({"subsets": subsets(&["192.0.2.1", "192.0.2.2"])}))
            .await;
        world.pass(5).await;
        assert_eq!(mirrored().await, ["192.0.2.1", "192.0.2.2"]);
        let skip = json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}});
        world.merge(&format!("{endpoints}/db"), skip).await;
        world.pass(5).await;
        assert!(mirrored().await.is_empty());
        let again = json!({"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": null}}});
        world.merge(&format!("{endpoints}/db"), again).await;
        world.pass(5).await;
        assert_eq!(mirrored().await.len(), 2);
        world.delete(&format!("{endpoints}/db"), "Background").await;
        world.pass(5).await;
        assert!(mirrored().await.is_empty());
    })
    .unwrap();
}

#[test]
fn a_pod_is_served_when_its_node_is_there() {
    simulate(async || {
        let world = Simulation::start(122, 0).await;
        let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}],
            "trafficDistribution": "PreferSameZone"}});
        world.create("/api/v1/namespaces/default/services", service).await;
        let pods = "/api/v1/namespaces/default/pods";
        let pod = json!({"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"nodeName": "late",
            "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]}});
        world.create(pods, pod).await;
        let status = json!({"status": {"phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}]}});
        world.merge(&format!("{pods}/p/status"), status).await;
        let endpoints = async || {
            let slices = world.items("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices").await;
            let ours = slices.into_iter().filter(|s| s["metadata"]["labels"]["kubernetes.io/service-name"] == "web");
            ours.flat_map(|s| s["endpoints"].as_array().cloned().unwrap_or_default()).collect::<Vec<_>>()
        };
        world.pass(10).await;
        assert!(endpoints().await.is_empty());
        let labels = json!({"topology.kubernetes.io/zone": "a"});
        world.create("/api/v1/nodes", json!({"metadata": {"name": "late", "labels": labels}})).await;
        world.pass(5).await;
        let all = endpoints().await;
        assert_eq!(all.len(), 1);
        assert_eq!(all[0]["hints"]["forZones"], json!([{"name": "a"}]));
        world.delete("/api/v1/nodes/late", "Background").await;
        world.pass(5).await;
        assert!(endpoints().await.is_empty());
    })
    .unwrap();
}

/// A policy that refuses all writes of some resources.
async fn refuse(world: &Simulation, group: &str, resource: &str) {
    let policies = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
        "resources": [resource]});
    let policy = json!({"metadata": {"name": resource}, "spec": {"matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "not now"}]}});
    world.create(&format!("{policies}/validatingadmissionpolicies"), policy).await;
    let binding = json!({"metadata": {"name": resource},
        "spec": {"policyName": resource, "validationActions": ["Deny"]}});
    world.create(&format!("{policies}/validatingadmissionpolicybindings"), binding).await;
    world.pass(5).await;
}

const CORE: &str = "/api/v1/namespaces/default";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
}

#[test]
fn endpoints_tell_the_time_of_the_change_behind_them() {
    simulate(async || {
        let world = Simulation::start(41, 1).await;
        world.create(&format!("{CORE}/services"), service("web")).await;
        world.pass(5).await;
        let told = async || {
            let slices = world.items(SLICES).await;
            let ours = slices.iter().find(|s| s["metadata"]["generateName"] == "web-").unwrap();
            let older = world.get(&format!("{CORE}/endpoints/web")).await;
            [ours, &older].map(|o| o["metadata"]["annotations"][TRIGGER].clone())
        };
        let created =
            world.get(&format!("{CORE}/services/web")).await["metadata"]["creationTimestamp"].clone();
        assert_eq!(told().await, [created.clone(), created]);
        // Times are whole seconds: what changes twice in one tells nothing the second time.
        let slow = json!({"apiVersion": "simulation.homeostat.dev/v1alpha1", "kind": "Behavior",
            "metadata": {"name": "slow"}, "spec": {"container": {"start": {"delay": "5s"}}}});
        world.create("/apis/simulation.homeostat.dev/v1alpha1/behaviors", slow).await;
        let pod = json!({"metadata": {"name": "a", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        world.create(&format!("{CORE}/pods"), pod).await;
        world.pass(30).await;
        let pod = world.get(&format!("{CORE}/pods/a")).await;
        let mut conditions = pod["status"]["conditions"].as_array().unwrap().iter();
        let ready = conditions.find(|c| c["type"] == "Ready").unwrap()["lastTransitionTime"].clone();
        assert_eq!(told().await, [ready.clone(), ready]);
    })
    .unwrap();
}

#[test]
fn endpoints_that_cannot_be_written_are_told() {
    simulate(async || {
        let world = Simulation::start(42, 1).await;
        let pod = |name: &str| {
            json!({"metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}})
        };
        world.create(&format!("{CORE}/services"), service("old")).await;
        world.create(&format!("{CORE}/pods"), pod("a")).await;
        world.pass(30).await;
        refuse(&world, "", "endpoints").await;
        refuse(&world, "discovery.k8s.io", "endpointslices").await;
        world.create(&format!("{CORE}/services"), service("new")).await;
        world.create(&format!("{CORE}/pods"), pod("b")).await;
        world.pass(60).await;
        let events = world.items(&format!("{CORE}/events")).await;
        let told = |reason: &str, about: (&str, &str), text: &str| {
            let mut ours = events.iter().filter(|e| {
                (&e["involvedObject"]["kind"], &e["involvedObject"]["name"]) == (&json!(about.0), &json!(about.1))
            });
            let hit = ours.any(|e| e["reason"] == reason && e["message"].as_str().unwrap().starts_with(text));
            assert!(hit, "{reason} {about:?}: {events:#?}");
        };
        told(
            "FailedToUpdateEndpointSlices",
            ("Service", "new"),
            "Error updating Endpoint Slices for Service default/new: failed to create EndpointSlice for Service \
             default/new: ",
        );
        told(
            "FailedToUpdateEndpointSlices",
            ("Service", "old"),
            "Error updating Endpoint Slices for Service default/old: failed to update old-",
        );
        told(
            "FailedToCreateEndpoint",
            ("Endpoints", "new"),
            "Failed to create endpoint for service default/new: ",
        );
        told("FailedToUpdateEndpoint", ("Endpoints", "old"), "Failed to update endpoint default/old: ");
    })
    .unwrap();
}
