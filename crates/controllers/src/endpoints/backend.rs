//! What one pod contributes to a Service: an address, whether it may be used, and the ports behind the Service's.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ContainerPort, ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::common::pods;

/// A port of a backend, in the order of the Service's ports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) port: i32,
    pub(super) protocol: String,
    pub(super) app_protocol: Option<String>,
}

/// One address behind a Service.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Backend {
    pub(super) ip: String,
    /// Traffic should go there.
    pub(super) ready: bool,
    /// It could take traffic, on its way out or not.
    pub(super) serving: bool,
    pub(super) terminating: bool,
    pub(super) hostname: Option<String>,
    pub(super) node: Option<String>,
    pub(super) pod: ObjectReference,
    pub(super) ports: Vec<Port>,
}

/// What of a pod endpoints depend on.
pub(super) fn matter(pod: &Pod) -> impl PartialEq + use<> {
    let status = pod.status.as_ref();
    (
        pod.metadata.labels.clone(),
        pods::is_over(pod),
        pods::is_ready(pod),
        pods::is_terminating(pod),
        status.and_then(|s| s.pod_ips.clone()),
        status.and_then(|s| s.pod_ip.clone()),
        pods::node(pod).map(str::to_owned),
        pod.metadata.uid.clone(),
    )
}

/// The pod's address of a family.
fn address(pod: &Pod, v6: bool) -> Option<String> {
    let status = pod.status.as_ref()?;
    let mut all = status.pod_ips.iter().flatten().map(|ip| &ip.ip).chain(&status.pod_ip);
    all.find(|ip| ip.parse::<IpAddr>().is_ok_and(|a| a.is_ipv6() == v6)).cloned()
}

/// What a pod contributes; `None` while it has no address of the family, and when it has ended.
pub(super) fn backend(service: &Service, pod: &Pod, v6: bool) -> Option<Backend> {
    if pods::is_over(pod) {
        return None;
    }
    let spec = service.spec.as_ref()?;
    let (serving, terminating) = (pods::is_ready(pod), pods::is_terminating(pod));
    let publish = spec.publish_not_ready_addresses == Some(true);
    let of_pod = pod.spec.as_ref();
    // A name within the Service's domain, which StatefulSets give their pods.
    let in_domain = of_pod.and_then(|s| s.subdomain.as_deref()) == service.metadata.name.as_deref();
    Some(Backend {
        ip: address(pod, v6)?,
        ready: publish || (serving && !terminating),
        serving,
        terminating,
        hostname: of_pod.and_then(|s| s.hostname.clone()).filter(|h| !h.is_empty() && in_domain),
        node: pods::node(pod).map(str::to_owned),
        pod: ObjectReference {
            kind: Some("Pod".into()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        },
        ports: spec.ports.iter().flatten().filter_map(|p| port(p, pod)).collect(),
    })
}

/// The pod's port behind a Service's port; `None` where the pod has no port of the wanted name.
fn port(wanted: &ServicePort, pod: &Pod) -> Option<Port> {
    let protocol = wanted.protocol.clone().unwrap_or_else(|| "TCP".into());
    let number = match &wanted.target_port {
        None => wanted.port,
        Some(IntOrString::Int(0)) => wanted.port,
        Some(IntOrString::Int(n)) => *n,
        Some(IntOrString::String(name)) => {
            let spec = pod.spec.as_ref()?;
            // Sidecars may serve too.
            let sidecars = spec
                .init_containers
                .iter()
                .flatten()
                .filter(|c| c.restart_policy.as_deref() == Some("Always"));
            let matches = |p: &&ContainerPort| {
                p.name.as_deref() == Some(name) && p.protocol.as_deref().unwrap_or("TCP") == protocol
            };
            let mut ports = spec.containers.iter().chain(sidecars).flat_map(|c| c.ports.iter().flatten());
            ports.find(matches)?.container_port
        }
    };
    Some(Port {
        name: wanted.name.clone().unwrap_or_default(),
        port: number,
        protocol,
        app_protocol: wanted.app_protocol.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(extra: Value) -> Service {
        let mut spec =
            json!({"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]});
        for (k, v) in extra.as_object().unwrap() {
            spec[k] = v.clone();
        }
        serde_json::from_value(json!({"metadata": {"name": "svc"}, "spec": spec})).unwrap()
    }

    fn pod(phase: &str, ready: bool) -> Pod {
        let ready = if ready { "True" } else { "False" };
        serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "d", "uid": "u"},
            "spec": {"nodeName": "n", "hostname": "p-0", "subdomain": "svc", "containers": [
                {"name": "c", "ports": [{"name": "web", "containerPort": 8080}]}]},
            "status": {"phase": phase, "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                "conditions": [{"type": "Ready", "status": ready}]}}))
        .unwrap()
    }

    #[test]
    fn a_pod_with_an_address_is_a_backend() {
        let b = backend(&service(json!({})), &pod("Running", true), false).unwrap();
        assert_eq!((b.ip.as_str(), b.ready, b.serving, b.terminating), ("10.0.0.1", true, true, false));
        assert_eq!((b.hostname.as_deref(), b.node.as_deref()), (Some("p-0"), Some("n")));
        assert_eq!(
            b.ports,
            [Port { name: "http".into(), port: 8080, protocol: "TCP".into(), app_protocol: None }]
        );
        assert_eq!(backend(&service(json!({})), &pod("Running", true), true).unwrap().ip, "fd00::1");
    }

    #[test]
    fn readiness_decides() {
        let b = backend(&service(json!({})), &pod("Running", false), false).unwrap();
        assert_eq!((b.ready, b.serving), (false, false));
        let b = backend(&service(json!({"publishNotReadyAddresses": true})), &pod("Running", false), false)
            .unwrap();
        assert_eq!((b.ready, b.serving), (true, false));
        let mut leaving = pod("Running", true);
        leaving.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(homeostat_sdk::Timestamp::UNIX_EPOCH));
        let b = backend(&service(json!({})), &leaving, false).unwrap();
        assert_eq!((b.ready, b.serving, b.terminating), (false, true, true));
        assert_eq!(backend(&service(json!({})), &pod("Failed", true), false), None);
        let mut pending = pod("Pending", false);
        pending.status.as_mut().unwrap().pod_ip = None;
        pending.status.as_mut().unwrap().pod_ips = None;
        assert_eq!(backend(&service(json!({})), &pending, false), None);
    }

    #[test]
    fn ports_are_found_by_number_or_name() {
        let numbers = |ports: Value| -> Vec<i32> {
            let b = backend(&service(json!({"ports": ports})), &pod("Running", true), false).unwrap();
            b.ports.iter().map(|p| p.port).collect()
        };
        assert_eq!(numbers(json!([{"port": 80}, {"port": 81, "targetPort": 9090}])), [80, 9090]);
        assert_eq!(
            numbers(json!([{"port": 80, "targetPort": "web"}, {"port": 81, "targetPort": "none"}])),
            [8080]
        );
        assert_eq!(numbers(json!([{"port": 80, "targetPort": "web", "protocol": "UDP"}])), [0i32; 0]);
    }
}
