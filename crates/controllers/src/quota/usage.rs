//! What is used of the resources that a quota names. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_model::quantity::{Format, Quantity};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{
    Container, PersistentVolumeClaim, Pod, PodSpec, ResourceQuotaSpec, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use serde_json::json;

use crate::common::pods;

/// What a name in `spec.hard` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted<'a> {
    /// Pods that aren't over.
    Pods,
    /// A resource that their containers request, or are limited to.
    Requests(&'a str),
    Limits(&'a str),
    Services,
    LoadBalancers,
    NodePorts,
    Claims,
    /// Storage that claims request.
    Storage,
    /// The same of one class: the class, and whether storage or claims are counted.
    OfClass(&'a str, bool),
    /// Objects of a resource and group.
    Objects(&'a str, &'a str),
}

pub(super) fn wanted(name: &str) -> Wanted<'_> {
    if let Some(counted) = name.strip_prefix("count/") {
        let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
        return Wanted::Objects(plural, group);
    }
    if let Some((class, what)) = name.split_once(".storageclass.storage.k8s.io/") {
        return Wanted::OfClass(class, what == "requests.storage");
    }
    match name {
        "pods" => Wanted::Pods,
        "services" => Wanted::Services,
        "services.loadbalancers" => Wanted::LoadBalancers,
        "services.nodeports" => Wanted::NodePorts,
        "persistentvolumeclaims" => Wanted::Claims,
        "requests.storage" => Wanted::Storage,
        "configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas" => Wanted::Objects(name, ""),
        _ => match name.split_once('.') {
            Some(("requests", resource)) => Wanted::Requests(resource),
            Some(("limits", resource)) => Wanted::Limits(resource),
            _ => Wanted::Requests(name),
        },
    }
}

/// What is used of each resource that the quota names. `counted` has the numbers of [`Wanted::Objects`].
pub(super) fn used(
    spec: &ResourceQuotaSpec,
    all_pods: &[Arc<Pod>],
    services: &[Arc<Service>],
    claims: &[Arc<PersistentVolumeClaim>],
    counted: &BTreeMap<String, usize>,
    now: Timestamp,
) -> BTreeMap<String, Text> {
    let pods: Vec<&PodSpec> = all_pods
        .iter()
        .filter(|p| !pods::is_over(p) && charged_for(p, now) != Some(Duration::ZERO) && in_scope(spec, p))
        .filter_map(|p| p.spec.as_ref())
        .collect();
    let number = |n: usize| Quantity::integer(i128::try_from(n).unwrap_or(i128::MAX), Format::DecimalSi);
    let of_type = |kind: &str| {
        services.iter().filter(|s| s.spec.as_ref().and_then(|s| s.type_.as_deref()) == Some(kind)).count()
    };
    let of_class = |class: &str| {
        let is = |c: &&Arc<PersistentVolumeClaim>| {
            c.spec.as_ref().and_then(|s| s.storage_class_name.as_deref()) == Some(class)
        };
        claims.iter().filter(is).cloned().collect::<Vec<_>>()
    };
    let one = |name: &String| match wanted(name) {
        Wanted::Pods => number(pods.len()),
        Wanted::Requests(resource) => pods.iter().map(|p| of_pod(p, resource, requests)).sum(),
        Wanted::Limits(resource) => pods.iter().map(|p| of_pod(p, resource, limits)).sum(),
        Wanted::Services => number(services.len()),
        Wanted::LoadBalancers => number(of_type("LoadBalancer")),
        Wanted::NodePorts => {
            let ports =
                services.iter().filter_map(|s| s.spec.as_ref()).flat_map(|s| s.ports.iter().flatten());
            number(ports.filter(|p| p.node_port.is_some_and(|n| n > 0)).count())
        }
        Wanted::Claims => number(claims.len()),
        Wanted::Storage => storage(claims),
        Wanted::OfClass(class, true) => storage(&of_class(class)),
        Wanted::OfClass(class, false) => number(of_class(class).len()),
        Wanted::Objects(..) => number(counted.get(name).copied().unwrap_or(0)),
    };
    spec.hard.iter().flat_map(|h| h.keys()).map(|name| (name.clone(), Text(one(name).to_string()))).collect()
}

fn parse(quantity: Option<&Text>) -> Quantity {
    quantity.and_then(|q| Quantity::parse(&q.0).ok()).unwrap_or_default()
}

fn requests(container: &Container, resource: &str) -> Quantity {
    parse(container.resources.as_ref().and_then(|r| r.requests.as_ref()?.get(resource)))
}

fn limits(container: &Container, resource: &str) -> Quantity {
    parse(container.resources.as_ref().and_then(|r| r.limits.as_ref()?.get(resource)))
}

/// What a pod takes: its containers and sidecars together, or its largest init container with the sidecars before it.
fn of_pod(spec: &PodSpec, resource: &str, of: fn(&Container, &str) -> Quantity) -> Quantity {
    let mut sidecars = Quantity::default();
    let mut most = Quantity::default();
    for container in spec.init_containers.iter().flatten() {
        let takes = of(container, resource);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars += &takes;
            most = most.max(sidecars.clone());
        } else {
            most = most.max(&sidecars + &takes);
        }
    }
    let containers: Quantity = spec.containers.iter().map(|c| of(c, resource)).sum();
    let overhead = parse(spec.overhead.as_ref().and_then(|o| o.get(resource)));
    &most.max(&containers + &sidecars) + &overhead
}

fn storage(claims: &[Arc<PersistentVolumeClaim>]) -> Quantity {
    let request = |c: &Arc<PersistentVolumeClaim>| {
        parse(c.spec.as_ref().and_then(|s| s.resources.as_ref()?.requests.as_ref()?.get("storage")))
    };
    claims.iter().map(request).sum()
}

/// Whether all scopes of a quota hold for a pod.
fn in_scope(spec: &ResourceQuotaSpec, pod: &Pod) -> bool {
    if spec.scopes.is_none() && spec.scope_selector.is_none() {
        return true;
    }
    let best_effort = pod.status.as_ref().and_then(|s| s.qos_class.as_deref()) == Some("BestEffort");
    homeostat_model::quota::selects_pod(&json!(spec), &json!(pod), best_effort)
}

/// How long until a pod that is on its way out no longer counts, though it is still there: its time to end and its
/// grace period once more. Zero where it doesn't; a pod that is stuck (its node is lost) must not keep its user from
/// making another.
pub(super) fn charged_for(pod: &Pod, now: Timestamp) -> Option<Duration> {
    let until = pod.metadata.deletion_timestamp.as_ref()?.0;
    let grace = pod.metadata.deletion_grace_period_seconds?;
    let left = until.duration_since(now).saturating_add(SignedDuration::from_secs(grace));
    Some(Duration::try_from(left).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn pod(requests: Value) -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(
                json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests,
                "limits": {"cpu": "2"}}}]}, "status": {"phase": "Running", "qosClass": "Burstable"}}),
            )
            .unwrap(),
        )
    }

    #[track_caller]
    fn check(spec: Value, pods: &[Arc<Pod>], want: Value) {
        let spec: ResourceQuotaSpec = serde_json::from_value(spec).unwrap();
        let counted = [("count/leases.coordination.k8s.io".to_owned(), 2)].into();
        assert_eq!(json!(used(&spec, pods, &[], &[], &counted, at(0))), want);
    }

    #[test]
    fn what_pods_take_is_summed() {
        let pods = [pod(json!({"cpu": "1"})), pod(json!({"cpu": "500m", "memory": "64Mi"}))];
        let hard = json!({"pods": "9", "requests.cpu": "9", "cpu": "9", "limits.cpu": "9", "memory": "1Gi",
            "count/leases.coordination.k8s.io": "1", "services": "1"});
        check(
            json!({"hard": hard}),
            &pods,
            json!({"pods": "2", "requests.cpu": "1500m", "cpu": "1500m", "limits.cpu": "4", "memory": "64Mi",
                "count/leases.coordination.k8s.io": "2", "services": "0"}),
        );
    }

    #[test]
    fn what_is_over_or_out_of_scope_takes_nothing() {
        let mut over = pod(json!({"cpu": "1"}));
        Arc::make_mut(&mut over).status.as_mut().unwrap().phase = Some("Succeeded".into());
        check(json!({"hard": {"pods": "9"}}), &[over, pod(json!({}))], json!({"pods": "1"}));
        check(
            json!({"hard": {"pods": "9"}, "scopes": ["BestEffort"]}),
            &[pod(json!({}))],
            json!({"pods": "0"}),
        );
        check(
            json!({"hard": {"pods": "9"}, "scopes": ["NotBestEffort"]}),
            &[pod(json!({}))],
            json!({"pods": "1"}),
        );
    }

    #[test]
    fn a_pod_that_should_be_gone_takes_nothing() {
        let leaving = |until: i64| {
            let mut pod = pod(json!({"cpu": "1"}));
            let meta = &mut Arc::make_mut(&mut pod).metadata;
            meta.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(until)));
            meta.deletion_grace_period_seconds = Some(30);
            pod
        };
        let left = |until: i64| charged_for(&leaving(until), at(0)).unwrap().as_secs();
        assert_eq!([left(10), left(-20), left(-30), left(-90)], [40, 10, 0, 0]);
        assert_eq!(charged_for(&pod(json!({})), at(0)), None);
        let pods = [leaving(10), leaving(-20), leaving(-30)];
        check(json!({"hard": {"pods": "9", "cpu": "9"}}), &pods, json!({"pods": "2", "cpu": "2"}));
    }

    #[test]
    fn pods_that_look_into_other_namespaces_are_counted() {
        let mut crossing = pod(json!({}));
        Arc::make_mut(&mut crossing).spec.as_mut().unwrap().affinity =
            serde_json::from_value(json!({"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z", "namespaces": ["b"]}]}}))
            .unwrap();
        let scope = json!({"hard": {"pods": "9"}, "scopes": ["CrossNamespacePodAffinity"]});
        check(scope, &[crossing, pod(json!({}))], json!({"pods": "1"}));
    }

    #[test]
    fn init_containers_take_turns() {
        let spec: PodSpec = serde_json::from_value(json!({
            "initContainers": [
                {"name": "a", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"name": "b", "resources": {"requests": {"cpu": "3"}}}],
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "overhead": {"cpu": "10m"}}))
        .unwrap();
        assert_eq!(of_pod(&spec, "cpu", requests).to_string(), "3110m");
    }
}
