//! What is set is there, under the names that the API has, and nothing else is.

use homeostat_apply::apps::v1::{Deployment, DeploymentSpec, StatefulSet, StatefulSetSpec};
use homeostat_apply::batch::v1::{CronJob, CronJobSpec};
use homeostat_apply::core::v1::{
    ConfigMap, Container, ContainerPort, EnvVar, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodSpec,
    PodTemplateSpec, Probe, ResourceRequirements, Secret, Service, ServicePort, ServiceSpec, TCPSocketAction,
    VolumeResourceRequirements,
};
use homeostat_apply::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use homeostat_apply::networking::v1::{NetworkPolicy, NetworkPolicySpec};
use homeostat_apply::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use homeostat_apply::rbac::v1::{ClusterRoleBinding, RoleRef, Subject};
use homeostat_sdk::Applies;
use kube::Resource;
use serde::Serialize;
use serde_json::{Value, json};

/// The body is `expect`, and reads as the kind, with all of it.
#[track_caller]
fn check<A>(what: A, expect: Value)
where
    A: Applies + Clone + Serialize,
    A::Kind: Serialize,
{
    assert_eq!(serde_json::to_value(&what).unwrap(), expect);
    let body = what.into_body().unwrap();
    assert_eq!(body, expect);
    assert_eq!(body["apiVersion"], *A::Kind::api_version(&()));
    assert_eq!(body["kind"], *A::Kind::kind(&()));
    let read: A::Kind = serde_json::from_value(body.clone()).unwrap();
    covers(&serde_json::to_value(&read).unwrap(), &body);
}

#[track_caller]
fn covers(has: &Value, wants: &Value) {
    match (has, wants) {
        (Value::Object(has), Value::Object(wants)) => {
            for (key, wants) in wants {
                covers(has.get(key).unwrap_or_else(|| panic!("{key} is unknown to the kind")), wants);
            }
        }
        (Value::Array(has), Value::Array(wants)) => has.iter().zip(wants).for_each(|(h, w)| covers(h, w)),
        _ => assert_eq!(has, wants),
    }
}

fn meta(name: &str) -> Value {
    json!({"name": name})
}

#[test]
fn workloads() {
    let template = PodTemplateSpec::new().metadata(ObjectMeta::new().labels([("app", "redis")])).spec(
        PodSpec::new().containers([Container::new()
            .name("redis")
            .image("redis:7.2")
            .args(["--appendonly", "yes"])
            .env([EnvVar::new().name("A").value("b")])
            .ports([ContainerPort::new().name("redis").container_port(6379)])
            .liveness_probe(Probe::new().tcp_socket(TCPSocketAction::new().port("redis")).period_seconds(10))
            .resources(ResourceRequirements::new().limits([("memory", "64Mi")]))]),
    );
    let claim = PersistentVolumeClaim::new("data").spec(
        PersistentVolumeClaimSpec::new()
            .access_modes(["ReadWriteOnce"])
            .resources(VolumeResourceRequirements::new().requests([("storage", "1Gi")])),
    );
    let set = StatefulSet::new("redis").in_namespace("shop").label("a", "b").label("c", "d").spec(
        StatefulSetSpec::new()
            .replicas(0)
            .selector(LabelSelector::new().match_labels([("app", "redis")]))
            .template(template)
            .volume_claim_templates([claim]),
    );
    check(
        set,
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": "redis", "namespace": "shop", "labels": {"a": "b", "c": "d"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "redis"}},
            "template": {"metadata": {"labels": {"app": "redis"}}, "spec": {"containers": [{
                "name": "redis", "image": "redis:7.2", "args": ["--appendonly", "yes"],
                "env": [{"name": "A", "value": "b"}],
                "ports": [{"name": "redis", "containerPort": 6379}],
                "livenessProbe": {"tcpSocket": {"port": "redis"}, "periodSeconds": 10},
                "resources": {"limits": {"memory": "64Mi"}}}]}},
            "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}],
        }}),
    );
    check(
        Deployment::new("a").spec(DeploymentSpec::new().paused(false)),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("a"), "spec": {"paused": false}}),
    );
    check(
        CronJob::new("a").spec(CronJobSpec::new().schedule("* * * * *").suspend(true)),
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta("a"),
            "spec": {"schedule": "* * * * *", "suspend": true}}),
    );
}

#[test]
fn what_is_empty_can_be_said() {
    check(
        NetworkPolicy::new("closed").spec(
            NetworkPolicySpec::new().pod_selector(LabelSelector::new()).policy_types(["Ingress"]).ingress([]),
        ),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta("closed"),
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": []}}),
    );
}

#[test]
fn values_are_given_as_rust_has_them() {
    check(
        Secret::new("a").type_("Opaque").data([("key", [0u8, 255].as_slice())]).string_data([("text", "x")]),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta("a"), "type": "Opaque",
            "data": {"key": "AP8="}, "stringData": {"text": "x"}}),
    );
    check(
        Service::new("a").spec(ServiceSpec::new().cluster_ip("None").cluster_ips(["None"]).ports([
            ServicePort::new().name("web").port(80).target_port("http"),
            ServicePort::new().name("metrics").port(81).target_port(8081),
        ])),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("a"),
            "spec": {"clusterIP": "None", "clusterIPs": ["None"], "ports": [
                {"name": "web", "port": 80, "targetPort": "http"},
                {"name": "metrics", "port": 81, "targetPort": 8081}]}}),
    );
    check(
        PodDisruptionBudget::new("a").spec(PodDisruptionBudgetSpec::new().max_unavailable("50%")),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta("a"),
            "spec": {"maxUnavailable": "50%"}}),
    );
    let owner = OwnerReference::new().api_version("v1").kind("Pod").name("p").uid("1").controller(true);
    check(
        ConfigMap::new("a").annotation("x", "y").metadata(ObjectMeta::new().owner_references([owner])),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {"x": "y"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": true}]}}),
    );
    check(
        ClusterRoleBinding::new("a")
            .role_ref(RoleRef::new().api_group("rbac.authorization.k8s.io").kind("ClusterRole").name("r"))
            .subjects([Subject::new().kind("User").name("jane").api_group("rbac.authorization.k8s.io")]),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta("a"),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
            "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]}),
    );
}
