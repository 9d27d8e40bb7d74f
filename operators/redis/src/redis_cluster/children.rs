//! What a `RedisCluster` stands for: a headless Service and a StatefulSet. Pure functions of the `RedisCluster`.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, ExecAction, PodSpec, PodTemplateSpec, Probe, Service, ServicePort, ServiceSpec,
    TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;

use super::v1::RedisCluster;

/// Redis' own port.
const PORT: i32 = 6379;
const PORT_NAME: &str = "redis";
/// Where the `RedisCluster` names no version.
const DEFAULT_VERSION: &str = "7.2";

/// The labels that select a cluster's pods. A StatefulSet's selector can't change, so they never do.
fn selector(redis: &RedisCluster) -> BTreeMap<String, String> {
    let instance = redis.metadata.name.clone().unwrap_or_default();
    BTreeMap::from([
        ("app.kubernetes.io/name".into(), "redis".into()),
        ("app.kubernetes.io/instance".into(), instance),
    ])
}

fn labels(redis: &RedisCluster) -> BTreeMap<String, String> {
    let mut labels = selector(redis);
    labels.insert("app.kubernetes.io/managed-by".into(), crate::NAME.into());
    labels
}

fn metadata(redis: &RedisCluster) -> ObjectMeta {
    ObjectMeta {
        name: redis.metadata.name.clone(),
        namespace: redis.metadata.namespace.clone(),
        labels: Some(labels(redis)),
        ..ObjectMeta::default()
    }
}

/// The headless Service that gives each replica a name: `<cluster>-0.<cluster>.<namespace>.svc`.
pub(crate) fn service(redis: &RedisCluster) -> Service {
    Service {
        metadata: metadata(redis),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".into()),
            selector: Some(selector(redis)),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.into()),
                port: PORT,
                target_port: Some(IntOrString::String(PORT_NAME.into())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

/// The StatefulSet that runs the servers.
pub(crate) fn stateful_set(redis: &RedisCluster) -> StatefulSet {
    StatefulSet {
        metadata: metadata(redis),
        spec: Some(StatefulSetSpec {
            replicas: Some(redis.spec.replicas),
            service_name: redis.metadata.name.clone(),
            selector: LabelSelector { match_labels: Some(selector(redis)), ..LabelSelector::default() },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels(redis)), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![server(redis)], ..PodSpec::default() }),
            },
            ..StatefulSetSpec::default()
        }),
        ..StatefulSet::default()
    }
}

fn server(redis: &RedisCluster) -> Container {
    let version = redis.spec.version.as_deref().unwrap_or(DEFAULT_VERSION);
    let answers = vec!["redis-cli".into(), "ping".into()];
    Container {
        name: "redis".into(),
        image: Some(format!("redis:{version}")),
        ports: Some(vec![ContainerPort {
            name: Some(PORT_NAME.into()),
            container_port: PORT,
            ..ContainerPort::default()
        }]),
        readiness_probe: Some(Probe {
            exec: Some(ExecAction { command: Some(answers) }),
            period_seconds: Some(5),
            timeout_seconds: Some(2),
            ..Probe::default()
        }),
        // Only whether the port is open: a server that loads its data answers nothing, and must not be restarted.
        liveness_probe: Some(Probe {
            tcp_socket: Some(TCPSocketAction {
                port: IntOrString::String(PORT_NAME.into()),
                ..TCPSocketAction::default()
            }),
            initial_delay_seconds: Some(10),
            period_seconds: Some(10),
            ..Probe::default()
        }),
        ..Container::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::v1::RedisClusterSpec;
    use super::*;

    fn cluster(replicas: i32, version: Option<&str>) -> RedisCluster {
        let mut redis =
            RedisCluster::new("sessions", RedisClusterSpec { replicas, version: version.map(Into::into) });
        redis.metadata.namespace = Some("shop".into());
        redis
    }

    #[test]
    fn a_statefulset_runs_the_replicas_of_the_version() {
        for (replicas, version, image) in [(3, Some("7.0"), "redis:7.0"), (1, None, "redis:7.2")] {
            let set = homeostat::sparse(&stateful_set(&cluster(replicas, version))).unwrap();
            assert_eq!(set["metadata"]["name"], "sessions");
            assert_eq!(set["metadata"]["namespace"], "shop");
            assert_eq!(set["spec"]["replicas"], replicas);
            assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["image"], image);
        }
    }

    #[test]
    fn the_selector_is_part_of_the_pods_labels() {
        let set = homeostat::sparse(&stateful_set(&cluster(1, None))).unwrap();
        let labels = set["spec"]["template"]["metadata"]["labels"].as_object().unwrap();
        for (key, value) in set["spec"]["selector"]["matchLabels"].as_object().unwrap() {
            assert_eq!(labels.get(key), Some(value));
        }
    }

    #[test]
    fn the_service_is_headless() {
        let service = homeostat::sparse(&service(&cluster(1, None))).unwrap();
        assert_eq!(service["spec"]["clusterIP"], "None");
        assert_eq!(service["spec"]["ports"], json!([{"name": "redis", "port": 6379, "targetPort": "redis"}]),);
        assert_eq!(service.get("status"), None::<&Value>);
    }
}
