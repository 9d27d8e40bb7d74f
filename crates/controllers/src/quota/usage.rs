//! What is used of the resources that a quota names. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_model::quantity::{Format, Quantity};
use k8s_openapi::api::core::v1::{
    Container, PersistentVolumeClaim, Pod, PodSpec, ResourceQuotaSpec, ScopedResourceSelectorRequirement,
    Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

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
) -> BTreeMap<String, Text> {
    let pods: Vec<&PodSpec> = all_pods
        .iter()
        .filter(|p| !pods::is_over(p) && in_scope(spec, p))
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
    let scopes = spec.scopes.iter().flatten().all(|s| is(s, pod));
    let mut selector = spec.scope_selector.iter().flat_map(|s| s.match_expressions.iter().flatten());
    scopes && selector.all(|r| selects(r, pod))
}

fn is(scope: &str, pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let terminating = spec.and_then(|s| s.active_deadline_seconds).is_some_and(|s| s >= 0);
    let best_effort = pod.status.as_ref().and_then(|s| s.qos_class.as_deref()) == Some("BestEffort");
    match scope {
        "Terminating" => terminating,
        "NotTerminating" => !terminating,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        "PriorityClass" => spec.and_then(|s| s.priority_class_name.as_ref()).is_some_and(|n| !n.is_empty()),
        _ => false,
    }
}

fn selects(requirement: &ScopedResourceSelectorRequirement, pod: &Pod) -> bool {
    if requirement.scope_name != "PriorityClass" {
        return is(&requirement.scope_name, pod);
    }
    let class = pod.spec.as_ref().and_then(|s| s.priority_class_name.as_deref()).filter(|n| !n.is_empty());
    let listed = class.is_some_and(|c| requirement.values.iter().flatten().any(|v| v == c));
    match requirement.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => class.is_some(),
        _ => class.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
        assert_eq!(json!(used(&spec, pods, &[], &[], &counted)), want);
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
