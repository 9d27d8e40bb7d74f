//! What an object uses, by the names that quotas have for it.
//!
//! Source: kube-controller-manager's and kube-apiserver's evaluators (`pkg/quota/v1/evaluator/core`) and `PodRequests` and
//! `PodLimits` (`k8s.io/component-helpers/resource`). Whether a pod that ought to be gone still counts is the caller's to
//! know: that takes a clock.

use std::collections::BTreeMap;

use serde_json::Value;

use super::items;
use crate::GroupResource;
use crate::quantity::Quantity;

/// Amounts by resource.
pub type Amounts = BTreeMap<String, Quantity>;

fn one() -> Quantity {
    Quantity::integer(1, Default::default())
}

/// The quantities of a JSON object; what can't be read is left out.
pub fn amounts(of: &Value) -> Amounts {
    let read = |(k, v): (&String, &Value)| Some((k.clone(), Quantity::from_value(v).ok()?));
    of.as_object().into_iter().flatten().filter_map(read).collect()
}

/// What an object of a resource uses. A core resource that quotas know no more of than its number has that number twice:
/// as `count/secrets` and as `secrets`.
pub fn usage(id: &GroupResource, object: &Value) -> Amounts {
    let mut used = Amounts::from([(format!("count/{id}"), one())]);
    match (&*id.group, &*id.resource) {
        ("", "pods") => pod(&mut used, object),
        ("", "services") => service(&mut used, object),
        ("", "persistentvolumeclaims") => claim(&mut used, object),
        ("", kind @ ("configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas")) => {
            used.insert(kind.to_owned(), one());
        }
        _ => {}
    }
    used
}

fn pod(used: &mut Amounts, pod: &Value) {
    // One that has ended uses nothing but its place among the objects.
    if matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        return;
    }
    used.insert("pods".into(), one());
    let common = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage");
    for (name, q) in requests(pod) {
        let extended = name.contains('/') && !name.contains("kubernetes.io/");
        if common(&name) || name.starts_with("hugepages-") {
            used.insert(format!("requests.{name}"), q.clone());
            used.insert(name, q);
        } else if extended {
            used.insert(format!("requests.{name}"), q);
        }
    }
    used.extend(limits(pod).into_iter().filter(|(n, _)| common(n)).map(|(n, q)| (format!("limits.{n}"), q)));
}

/// What a pod asks for: its own requests (KEP-2837) over those of its containers, and its overhead.
pub fn requests(pod: &Value) -> Amounts {
    let mut sum = containers(&pod["spec"], |c| of_container(pod, c, "requests"));
    sum.extend(of_pod(pod, "requests"));
    add(&mut sum, amounts(&pod["spec"]["overhead"]));
    sum
}

/// What a pod is limited to. Overhead counts only where there is a limit.
pub fn limits(pod: &Value) -> Amounts {
    let mut sum = containers(&pod["spec"], |c| of_container(pod, c, "limits"));
    sum.extend(of_pod(pod, "limits"));
    for (name, q) in amounts(&pod["spec"]["overhead"]) {
        if let Some(limit) = sum.get_mut(&name) {
            *limit += &q;
        }
    }
    sum
}

/// What containers take together at their peak: all that stay, or an init container beside the sidecars that were there
/// before it (KEP-753).
pub fn containers(spec: &Value, of: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut running = Amounts::new();
    for container in items(&spec["containers"]) {
        add(&mut running, of(container));
    }
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in items(&spec["initContainers"]) {
        let own = of(container);
        let mut now = sidecars.clone();
        add(&mut now, own.clone());
        if container["restartPolicy"] == "Always" {
            add(&mut running, own);
            sidecars = now.clone();
        }
        raise(&mut peak, now);
    }
    raise(&mut running, peak);
    running
}

/// A container that is being resized takes the larger of what it has and what it wants (KEP-1287), or what it has where
/// it can't get more.
fn of_container(pod: &Value, container: &Value, list: &str) -> Amounts {
    let status = &pod["status"];
    let all = ["containerStatuses", "initContainerStatuses"].map(|of| items(&status[of]));
    let status = all.into_iter().flatten().find(|s| s["name"] == container["name"]);
    resized(pod, amounts(&container["resources"][list]), status.unwrap_or(&Value::Null), list, &Value::Null)
}

/// What the pod says of itself, in the same way. Its status speaks of the whole pod, with the overhead.
fn of_pod(pod: &Value, list: &str) -> Amounts {
    let mut asks = amounts(&pod["spec"]["resources"][list]);
    asks.retain(|n, _| matches!(n.as_str(), "cpu" | "memory") || n.starts_with("hugepages-"));
    resized(pod, asks, &pod["status"], list, &pod["spec"]["overhead"])
}

fn resized(pod: &Value, asks: Amounts, status: &Value, list: &str, overhead: &Value) -> Amounts {
    let mut has = amounts(&status["resources"][list]);
    if asks.is_empty() || has.is_empty() {
        return asks;
    }
    if list == "requests" {
        raise(&mut has, amounts(&status["allocatedResources"]));
    }
    has.retain(|name, _| asks.contains_key(name));
    for (name, more) in amounts(overhead) {
        if let Some(q) = has.get_mut(&name) {
            *q -= &more;
        }
    }
    if !is_infeasible(pod) {
        raise(&mut has, asks);
    }
    has
}

fn is_infeasible(pod: &Value) -> bool {
    let pending = |c: &&Value| c["type"] == "PodResizePending";
    items(&pod["status"]["conditions"]).iter().find(pending).is_some_and(|c| c["reason"] == "Infeasible")
}

fn service(used: &mut Amounts, service: &Value) {
    used.insert("services".into(), one());
    let spec = &service["spec"];
    let ports = items(&spec["ports"]);
    // They are counted before they are allotted, so what is meant counts, not what is there.
    let all = match spec["type"].as_str() {
        Some("NodePort") => ports.len(),
        Some("LoadBalancer") => {
            used.insert("services.loadbalancers".into(), one());
            if spec["allocateLoadBalancerNodePorts"] == false {
                ports.iter().filter(|p| p["nodePort"].as_i64().is_some_and(|n| n != 0)).count()
            } else {
                ports.len()
            }
        }
        _ => return,
    };
    let all = i128::try_from(all).unwrap_or(i128::MAX);
    used.insert("services.nodeports".into(), Quantity::integer(all, Default::default()));
}

fn claim(used: &mut Amounts, claim: &Value) {
    let spec = &claim["spec"];
    let annotation = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    let class = annotation.or(spec["storageClassName"].as_str()).unwrap_or_default();
    let mut names = vec![String::new()];
    if !class.is_empty() {
        names.push(format!("{class}.storageclass.storage.k8s.io/"));
    }
    let storage = amounts(&spec["resources"]["requests"]).remove("storage").map(|asked| {
        // While it grows it has what it has been given already, should it want less again.
        let given = amounts(&claim["status"]["allocatedResources"]).remove("storage").unwrap_or_default();
        let q = asked.max(given);
        if q.is_integer() { q } else { Quantity::integer(q.value(), q.format()) }
    });
    for name in names {
        used.insert(format!("{name}persistentvolumeclaims"), one());
        if let Some(storage) = &storage {
            used.insert(format!("{name}requests.storage"), storage.clone());
        }
    }
}

fn add(sum: &mut Amounts, more: Amounts) {
    for (name, q) in more {
        match sum.get_mut(&name) {
            Some(have) => *have += &q,
            None => drop(sum.insert(name, q)),
        }
    }
}

fn raise(sum: &mut Amounts, to: Amounts) {
    for (name, q) in to {
        match sum.get_mut(&name) {
            Some(have) if *have >= q => {}
            _ => drop(sum.insert(name, q)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What of a resource's object is counted, without the number of objects.
    #[track_caller]
    fn check(resource: &str, object: &Value, want: Value) {
        let mut used = usage(&GroupResource::new("", resource), object);
        used.retain(|name, _| !name.starts_with("count/"));
        let used: BTreeMap<_, _> = used.into_iter().map(|(k, q)| (k, q.to_string())).collect();
        assert_eq!(json!(used), want, "{object}");
    }

    fn container(name: &str, cpu: &str) -> Value {
        json!({"name": name, "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}})
    }

    fn pod(spec: Value, status: Value) -> Value {
        json!({"spec": spec, "status": status})
    }

    fn cpu(requests: &str, limits: &str) -> Value {
        json!({"pods": "1", "cpu": requests, "requests.cpu": requests, "limits.cpu": limits})
    }

    #[test]
    fn init_containers_take_turns_beside_sidecars() {
        let mut sidecar = container("s", "100m");
        sidecar["restartPolicy"] = "Always".into();
        let spec = |init: Value| json!({"initContainers": init, "containers": [container("c", "1")]});
        let check = |init: Value, want: &str| check("pods", &pod(spec(init), json!({})), cpu(want, want));
        check(json!([]), "1");
        check(json!([container("i", "3")]), "3");
        check(json!([sidecar, container("i", "3")]), "3100m");
        check(json!([container("i", "3"), sidecar]), "3");
        check(json!([container("i", "500m"), sidecar]), "1100m");
    }

    #[test]
    fn overhead_and_the_pods_own_resources_count() {
        let mut spec =
            json!({"containers": [container("c", "1")], "overhead": {"cpu": "10m", "memory": "1Mi"}});
        let mut want = cpu("1010m", "1010m");
        // A limit that isn't there isn't made by overhead.
        (want["memory"], want["requests.memory"]) = ("1Mi".into(), "1Mi".into());
        check("pods", &pod(spec.clone(), json!({})), want);
        spec["resources"] = json!({"requests": {"cpu": "2", "example.com/x": "1"}, "limits": {"cpu": "3"}});
        let mut want = cpu("2010m", "3010m");
        (want["memory"], want["requests.memory"]) = ("1Mi".into(), "1Mi".into());
        check("pods", &pod(spec, json!({})), want);
    }

    #[test]
    fn a_resize_counts_with_the_larger() {
        let spec = || json!({"containers": [container("c", "1")]});
        let status = |has: &str, reason: &str| {
            let list = json!({"cpu": has});
            json!({"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}], "containerStatuses":
                [{"name": "c", "resources": {"requests": list, "limits": list}, "allocatedResources": list}]})
        };
        check("pods", &pod(spec(), status("2", "Deferred")), cpu("2", "2"));
        check("pods", &pod(spec(), status("500m", "Deferred")), cpu("1", "1"));
        check("pods", &pod(spec(), status("500m", "Infeasible")), cpu("500m", "500m"));
        let whole =
            json!({"containers": [], "overhead": {"cpu": "1"}, "resources": {"requests": {"cpu": "2"}}});
        let has = |n: &str| json!({"resources": {"requests": {"cpu": n}}});
        for (n, want) in [("3", "3"), ("5", "5")] {
            let want = json!({"pods": "1", "cpu": want, "requests.cpu": want});
            check("pods", &pod(whole.clone(), has(n)), want);
        }
    }

    #[test]
    fn what_a_pod_takes_by_kind_of_resource() {
        let requests = json!({"hugepages-2Mi": "4Mi", "example.com/gpu": "1", "kubernetes.io/x": "1",
            "ephemeral-storage": "1Gi"});
        let spec =
            json!({"containers": [{"name": "c", "resources": {"requests": requests, "limits": requests}}]});
        let want = json!({"pods": "1", "hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi",
            "requests.example.com/gpu": "1", "ephemeral-storage": "1Gi", "requests.ephemeral-storage": "1Gi",
            "limits.ephemeral-storage": "1Gi"});
        check("pods", &pod(spec.clone(), json!({})), want);
        check("pods", &pod(spec, json!({"phase": "Failed"})), json!({}));
    }

    #[test]
    fn node_ports_are_counted_as_they_are_meant() {
        let service = |kind: &str, allocate: Value| {
            json!({"spec": {"type": kind, "allocateLoadBalancerNodePorts": allocate,
                "ports": [{"port": 1, "nodePort": 30000}, {"port": 2}]}})
        };
        let check =
            |kind: &str, allocate: Value, want: Value| check("services", &service(kind, allocate), want);
        check("ClusterIP", json!(null), json!({"services": "1"}));
        check("NodePort", json!(null), json!({"services": "1", "services.nodeports": "2"}));
        let balancer = |ports: &str| json!({"services": "1", "services.loadbalancers": "1", "services.nodeports": ports});
        check("LoadBalancer", json!(null), balancer("2"));
        check("LoadBalancer", json!(true), balancer("2"));
        check("LoadBalancer", json!(false), balancer("1"));
    }

    #[test]
    fn claims_take_whole_bytes_of_their_class() {
        let claim = |size: &str, given: &str, class: Value| {
            json!({"spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}},
                "status": {"allocatedResources": {"storage": given}}})
        };
        let check = |c: Value, want: Value| check("persistentvolumeclaims", &c, want);
        check(
            claim("1Gi", "0", json!(null)),
            json!({"persistentvolumeclaims": "1", "requests.storage": "1Gi"}),
        );
        check(
            claim("1Gi", "2Gi", json!(null)),
            json!({"persistentvolumeclaims": "1", "requests.storage": "2Gi"}),
        );
        check(
            claim("1500m", "0", json!("fast")),
            json!({"persistentvolumeclaims": "1", "requests.storage": "2",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "fast.storageclass.storage.k8s.io/requests.storage": "2"}),
        );
    }
}
