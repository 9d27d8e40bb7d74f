//! What the controllers are granted beyond the reference's roles: no more than is missing there, and no more than they
//! use.
//!
//! That it is enough, every scenario shows: [`crate::virtual_time`] lets no request of theirs be refused for rights.

use std::collections::BTreeSet;

use homeostat_access::{Attributes, Policy, User, bootstrap};
use homeostat_cluster::simulate;
use homeostat_controllers::{CONTROLLERS, NAMESPACE, roles};
use serde_json::{Value, json};

use crate::virtual_time::{Simulation, Use};

#[test]
fn each_controller_is_granted_what_the_references_roles_lack_and_no_more() {
    let defaults = bootstrap::objects();
    let reference = Policy::from_objects(&defaults);
    let granted = roles();
    let whole = Policy::from_objects(defaults.iter().chain(&granted));
    for controller in CONTROLLERS {
        let Some(account) = controller.account else { continue };
        let user = User::service_account(NAMESPACE, account, "");
        for (group, resource, verbs) in controller.beyond {
            let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
            for verb in *verbs {
                let a = Attributes::resource(&user, verb, group, resource).subresource(sub).namespace("d");
                assert!(
                    !reference.allows(&a).allowed,
                    "{}: {verb} {resource}/{sub} is there",
                    controller.name
                );
                assert!(whole.allows(&a).allowed, "{}: {verb} {resource}/{sub} is missing", controller.name);
            }
        }
        let secrets = Attributes::resource(&user, "list", "", "secrets");
        let reads_all = ["generic-garbage-collector", "namespace-controller", "resourcequota-controller"];
        assert_eq!(whole.allows(&secrets).allowed, reads_all.contains(&account), "{controller:?}");
    }
}

/// Rights that are used though no audit can show it, each with why.
const UNSEEN: &[(&str, &str, &str, &str)] = &[
    // What is applied and not there yet is created: the server wants both rights, and tells of the patch alone.
    ("simulated-kubelet", "create", "apiextensions.k8s.io", "customresourcedefinitions"),
];

/// The rules of a role as single rights of an account.
fn rights(account: &str, role: &Value) -> BTreeSet<Use> {
    let list = |v: &Value| -> Vec<String> {
        v.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    };
    let mut all = BTreeSet::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        for group in list(&rule["apiGroups"]) {
            for resource in list(&rule["resources"]) {
                for verb in list(&rule["verbs"]) {
                    all.insert((account.to_owned(), verb, group.clone(), resource.clone()));
                }
            }
        }
    }
    all
}

/// A bit of everything that the controllers with rights of their own do, and nodes.
async fn live(world: &Simulation) {
    let core = "/api/v1/namespaces/default";
    let [apps, batch] = ["apps", "batch"].map(|g| format!("/apis/{g}/v1/namespaces/default"));
    let template = |app: &str, extra: Value| {
        let mut spec =
            json!({"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": "i"}]});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"metadata": {"labels": {"app": app}}, "spec": spec})
    };
    let workload = |name: &str, extra: Value| {
        let mut spec =
            json!({"selector": {"matchLabels": {"app": name}}, "template": template(name, json!({}))});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"metadata": {"name": name}, "spec": spec})
    };
    world
        .create(
            &format!("{core}/resourcequotas"),
            json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "50"}}}),
        )
        .await;
    world.create(&format!("{core}/configmaps"), json!({"metadata": {"name": "m"}, "data": {"k": "v"}})).await;
    world
        .create(&format!("{core}/secrets"), json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}}))
        .await;
    world.create(&format!("{apps}/deployments"), workload("web", json!({"replicas": 2}))).await;
    world.create(&format!("{apps}/replicasets"), workload("set", json!({"replicas": 1}))).await;
    world.create(&format!("{apps}/daemonsets"), workload("every", json!({}))).await;
    let mut controller = workload("old", json!({"replicas": 1}));
    controller["spec"]["selector"] = json!({"app": "old"});
    world.create(&format!("{core}/replicationcontrollers"), controller).await;
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claims = json!({"replicas": 2, "serviceName": "db",
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]});
    world.create(&format!("{apps}/statefulsets"), workload("db", claims)).await;
    let needs = json!({"restartPolicy": "Never", "volumes": [{"name": "m", "configMap": {"name": "m"}},
        {"name": "s", "secret": {"secretName": "s"}}]});
    let job = json!({"template": template("job", needs)});
    world.create(&format!("{batch}/jobs"), json!({"metadata": {"name": "once"}, "spec": job})).await;
    let every = json!({"schedule": "* * * * *", "jobTemplate": {"spec": job}});
    world.create(&format!("{batch}/cronjobs"), json!({"metadata": {"name": "tick"}, "spec": every})).await;
    let selector = json!({"matchLabels": {"app": "web"}});
    world
        .create(
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}),
        )
        .await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    world
        .create(
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": target}}),
        )
        .await;
    // A container that ends again and again: one event is told again.
    world
        .create(
            "/apis/simulation.homeostat.dev/v1alpha1/behaviors",
            json!({"apiVersion": "simulation.homeostat.dev/v1alpha1", "kind": "Behavior", "metadata": {"name": "fails"}, "spec": {"selector": {"labels": "app=set"},
                "container": {"run": {"stages": [{"for": "1s"}, {"exit": {"code": 1}}]}}}}),
        )
        .await;
    world.pass(130).await;
    // Whose claim is to go with its pod is given to the pod first.
    world.merge(&format!("{apps}/statefulsets/db"), json!({"spec": {"replicas": 1}})).await;
    world.pass(10).await;
    world.create("/api/v1/namespaces", json!({"metadata": {"name": "gone"}})).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/held"]}});
    world.create("/api/v1/namespaces/gone/configmaps", held).await;
    world.delete("/api/v1/namespaces/gone", "Background").await;
    world.delete(&format!("{apps}/statefulsets/db"), "Background").await;
    world.delete(&format!("{apps}/deployments/web"), "Background").await;
    world.pass(120).await;
}

#[test]
fn every_right_that_is_granted_is_used() {
    simulate(async || {
        let world = Simulation::start(91, 1).await;
        live(&world).await;
        let kubelet =
            world.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/homeostat:simulated-kubelet").await;
        let mut granted = rights("simulated-kubelet", &kubelet);
        for controller in CONTROLLERS {
            let Some(account) = controller.account else { continue };
            for (group, resource, verbs) in controller.beyond {
                let right =
                    |v: &&str| (account.to_owned(), v.to_string(), group.to_string(), resource.to_string());
                granted.extend(verbs.iter().map(right));
            }
        }
        let uses = world.count.uses();
        let unseen = |r: &Use| UNSEEN.contains(&(&*r.0, &*r.1, &*r.2, &*r.3));
        let idle: Vec<_> = granted.iter().filter(|r| !uses.contains(*r) && !unseen(r)).collect();
        assert!(idle.is_empty(), "granted and not used: {idle:#?}");
    })
    .unwrap();
}
