//! What is used of the resources that a quota names. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::quantity::{Format, Quantity};
use homeostat_model::quota::usage::usage;
use homeostat_model::{GroupResource, Timestamp};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{
    Container, ContainerStatus, PersistentVolumeClaim, Pod, ResourceQuotaSpec, Service,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use serde_json::{Value, json};

use crate::common::pods;

/// The resource and group of objects that are counted as such, on the server. Of the rest, objects that are in caches say
/// what they use.
pub(super) fn counted(name: &str) -> Option<(&str, &str)> {
    match name {
        "configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas" => Some((name, "")),
        _ => {
            let name = name.strip_prefix("count/")?;
            Some(name.split_once('.').unwrap_or((name, "")))
        }
    }
}

/// What is used of each resource that the quota names. `counts` has the numbers of what is [`counted`].
pub(super) fn used(
    spec: &ResourceQuotaSpec,
    pods: &[Arc<Pod>],
    services: &[Arc<Service>],
    claims: &[Arc<PersistentVolumeClaim>],
    counts: &BTreeMap<String, usize>,
    now: Timestamp,
) -> BTreeMap<String, Text> {
    let Some(hard) = &spec.hard else { return BTreeMap::new() };
    let mut sum: BTreeMap<&String, Quantity> = hard.keys().map(|n| (n, Quantity::default())).collect();
    let mut add = |resource: &str, object: &Value| {
        let used = usage(&GroupResource::new("", resource), object);
        for (name, q) in sum.iter_mut().filter(|(n, _)| counted(n).is_none()) {
            used.get(*name).into_iter().for_each(|more| *q += more);
        }
    };
    // Everything else is about services and claims, or counted.
    let of_pods = |h: &String| {
        let of_others = ["services", "requests.storage", "persistentvolumeclaims"];
        counted(h).is_none() && !of_others.iter().any(|n| h.contains(n))
    };
    for pod in pods.iter().filter(|_| hard.keys().any(of_pods)) {
        if !pods::is_over(pod) && charged_for(pod, now) != Some(Duration::ZERO) && in_scope(spec, pod) {
            add("pods", &measured(pod));
        }
    }
    let named = |names: &[&str]| hard.keys().any(|h| names.iter().any(|n| h.contains(n)));
    if named(&["services"]) {
        services.iter().for_each(|s| add("services", &json!({"spec": s.spec})));
    }
    if named(&["storage", "persistentvolumeclaims"]) {
        let part = |c: &PersistentVolumeClaim| json!({"metadata": {"annotations": c.metadata.annotations}, "spec": c.spec, "status": c.status});
        claims.iter().for_each(|c| add("persistentvolumeclaims", &part(c)));
    }
    for (name, n) in counts {
        if let Some(q) = sum.get_mut(name) {
            *q = Quantity::integer(i128::try_from(*n).unwrap_or(i128::MAX), Format::DecimalSi);
        }
    }
    sum.into_iter().map(|(name, q)| (name.clone(), Text(q.to_string()))).collect()
}

/// What of a pod says how much it takes; the rest of it is large. [`used`] reads it, and a change of it is a reason to
/// count anew.
pub(super) fn measured(pod: &Pod) -> Value {
    let containers = |all: &[Container]| -> Vec<Value> {
        let part = |c: &Container| json!({"name": c.name, "resources": c.resources, "restartPolicy": c.restart_policy});
        all.iter().map(part).collect()
    };
    let statuses = |all: &Option<Vec<ContainerStatus>>| -> Vec<Value> {
        let part = |s: &ContainerStatus| json!({"name": s.name, "resources": s.resources, "allocatedResources": s.allocated_resources});
        all.iter().flatten().map(part).collect()
    };
    let spec = pod.spec.as_ref().map(|s| {
        json!({"containers": containers(&s.containers), "overhead": s.overhead, "resources": s.resources,
            "initContainers": containers(s.init_containers.as_deref().unwrap_or_default())})
    });
    let status = pod.status.as_ref().map(|s| {
        let pending = s.conditions.iter().flatten().filter(|c| c.type_ == "PodResizePending");
        json!({"resources": s.resources, "allocatedResources": s.allocated_resources,
            "conditions": pending.map(|c| json!({"type": c.type_, "reason": c.reason})).collect::<Vec<_>>(),
            "containerStatuses": statuses(&s.container_statuses),
            "initContainerStatuses": statuses(&s.init_container_statuses)})
    });
    json!({"spec": spec, "status": status})
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

    /// Admission measures whole objects, the recount what is left of them here: it must not be less.
    #[test]
    fn a_recount_gives_what_admission_has_charged() {
        let check = |resource: &str, object: Value| {
            let want = usage(&GroupResource::new("", resource), &object);
            let want: BTreeMap<_, _> = want
                .into_iter()
                .filter(|(n, _)| counted(n).is_none())
                .map(|(n, q)| (n, Text(q.to_string())))
                .collect();
            assert!(!want.is_empty());
            let spec = ResourceQuotaSpec { hard: Some(want.clone()), ..ResourceQuotaSpec::default() };
            fn some<T: serde::de::DeserializeOwned>(is: bool, object: &Value) -> Vec<Arc<T>> {
                is.then(|| Arc::new(serde_json::from_value(object.clone()).unwrap())).into_iter().collect()
            }
            let pods = some(resource == "pods", &object);
            let services = some(resource == "services", &object);
            let claims = some(resource == "persistentvolumeclaims", &object);
            assert_eq!(used(&spec, &pods, &services, &claims, &BTreeMap::new(), at(0)), want, "{object}");
        };
        let container = |name: &str, cpu: &str| {
            json!({"name": name, "resources": {"requests": {"cpu": cpu, "example.com/gpu": "1"}, "limits": {"cpu": cpu,
                "memory": "1Gi", "example.com/gpu": "1"}}})
        };
        let mut sidecar = container("s", "100m");
        sidecar["restartPolicy"] = "Always".into();
        let has = json!({"requests": {"cpu": "4"}, "limits": {"cpu": "5"}});
        let specs = [
            json!({"containers": [container("c", "1"), {"name": "d"}]}),
            json!({"containers": [container("c", "1")], "initContainers": [sidecar, container("i", "3")]}),
            json!({"containers": [container("c", "1")], "overhead": {"cpu": "10m", "memory": "1Mi"},
                "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4", "memory": "2Gi"}}}),
        ];
        let statuses = [
            json!({}),
            json!({"containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                "resources": has, "allocatedResources": {"cpu": "3"}}]}),
            json!({"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
                "resources": has, "allocatedResources": {"cpu": "3"}}),
        ];
        for spec in &specs {
            for status in &statuses {
                check("pods", json!({"spec": spec, "status": status}));
            }
        }
        for kind in ["ClusterIP", "NodePort", "LoadBalancer"] {
            for allocate in [json!(null), json!(true), json!(false)] {
                let ports = json!([{"port": 80, "nodePort": 30000}, {"port": 81}]);
                check(
                    "services",
                    json!({"spec": {"type": kind, "allocateLoadBalancerNodePorts": allocate, "ports": ports}}),
                );
            }
        }
        check(
            "persistentvolumeclaims",
            json!({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}}, "spec":
                {"resources": {"requests": {"storage": "1Gi"}}}, "status": {"allocatedResources": {"storage": "2Gi"}}}),
        );
    }
}
