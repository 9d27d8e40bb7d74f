//! Amounts of resources: what pods ask for and what nodes have.
//!
//! CPU counts in thousandths, everything else in whole units (bytes, devices), as in the reference scheduler. A
//! quantity that does not parse counts as nothing: the API server has refused it already. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_model::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

/// CPU that a container without a request is scored with, in thousandths.
const DEFAULT_CPU: i64 = 100;
/// Memory that a container without a request is scored with, in bytes.
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

type Quantities = BTreeMap<String, Text>;

/// Amounts by resource. Absent is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// CPU, in thousandths.
    pub cpu: i64,
    /// Memory, in bytes.
    pub memory: i64,
    /// Ephemeral storage, in bytes.
    pub ephemeral: i64,
    /// Pods.
    pub pods: i64,
    /// Extended resources, huge pages, attachable volumes; sorted by name.
    scalars: Vec<(Arc<str>, i64)>,
}

/// Whether the scheduler counts this resource among the scalar ones.
fn is_scalar(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// Whether a resource is offered by devices: it has a domain, and not Kubernetes' own.
pub fn is_extended(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, _)| {
        domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io") && domain != "requests"
    })
}

impl Amounts {
    /// From the API's form.
    pub fn of(quantities: Option<&Quantities>) -> Self {
        let mut amounts = Self::default();
        for (name, q) in quantities.into_iter().flatten() {
            amounts.set(name, amount(name, &q.0));
        }
        amounts
    }

    /// The amount of one resource.
    pub fn get(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral,
            "pods" => self.pods,
            _ => self.scalar(name),
        }
    }

    fn scalar(&self, name: &str) -> i64 {
        self.scalars
            .binary_search_by(|(n, _)| (**n).cmp(name))
            .ok()
            .and_then(|i| self.scalars.get(i))
            .map_or(0, |s| s.1)
    }

    /// Sets one amount. Resources that scheduling doesn't count are left out.
    pub fn set(&mut self, name: &str, to: i64) {
        match name {
            "cpu" => self.cpu = to,
            "memory" => self.memory = to,
            "ephemeral-storage" => self.ephemeral = to,
            "pods" => self.pods = to,
            _ if is_scalar(name) => *self.scalar_mut(&name.into()) = to,
            _ => {}
        }
    }

    fn scalar_mut(&mut self, name: &Arc<str>) -> &mut i64 {
        let at = match self.scalars.binary_search_by(|(n, _)| n.cmp(name)) {
            Ok(at) => at,
            Err(at) => {
                self.scalars.insert(at, (name.clone(), 0));
                at
            }
        };
        &mut self.scalars[at].1
    }

    /// Extended and other scalar resources, by name.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, i64)> {
        self.scalars.iter().map(|(n, a)| (&**n, *a))
    }

    /// All that is not zero, CPU and memory first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        [("cpu", self.cpu), ("memory", self.memory), ("ephemeral-storage", self.ephemeral)]
            .into_iter()
            .chain(self.scalars())
            .filter(|(_, n)| *n != 0)
    }

    fn each(&mut self, other: &Self, f: impl Fn(i64, i64) -> i64) {
        self.cpu = f(self.cpu, other.cpu);
        self.memory = f(self.memory, other.memory);
        self.ephemeral = f(self.ephemeral, other.ephemeral);
        self.pods = f(self.pods, other.pods);
        for (name, n) in &other.scalars {
            let own = self.scalar_mut(name);
            *own = f(*own, *n);
        }
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        self.each(other, i64::saturating_add);
    }

    /// Takes away all of `other`.
    pub fn sub(&mut self, other: &Self) {
        self.each(other, i64::saturating_sub);
    }

    fn max(&mut self, other: &Self) {
        self.each(other, i64::max);
    }
}

fn amount(name: &str, text: &str) -> i64 {
    let Ok(quantity) = Quantity::parse(text) else { return 0 };
    let n = if name == "cpu" { quantity.milli() } else { quantity.value() };
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A quantity in whole units, such as a volume's size.
pub(crate) fn units(quantities: Option<&Quantities>, name: &str) -> i64 {
    quantities.and_then(|q| q.get(name)).map_or(0, |q| amount(name, &q.0))
}

/// What a pod needs from a node: the larger of what its containers need together and what an init container needs
/// beside the sidecars before it (KEP-753), or what the pod itself asks for (KEP-2837), with its overhead.
///
/// A container that is being resized counts with the larger of what it has and what it wants (KEP-1287).
pub fn requests(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::default() };
    total(spec, |c| container(pod, c))
}

/// CPU and memory that a pod is scored with: a container without requests counts as a small one, so that pods spread.
pub fn non_zero(pod: &Pod) -> (i64, i64) {
    let Some(spec) = &pod.spec else { return (0, 0) };
    let whole = pod_level(spec);
    // With requests of the pod itself only what nobody says anything about is made up.
    let real = whole.is_some().then(|| requests(pod));
    let missing = |name: &str| match &real {
        Some(real) => real.get(name) == 0,
        None => true,
    };
    let (no_cpu, no_memory) = (missing("cpu"), missing("memory"));
    let all = total(spec, |c| {
        let mut own = container(pod, c);
        let has = |name: &str| c.resources.as_ref().and_then(|r| r.requests.as_ref()?.get(name)).is_some();
        if no_cpu && !has("cpu") {
            own.cpu = DEFAULT_CPU;
        }
        if no_memory && !has("memory") {
            own.memory = DEFAULT_MEMORY;
        }
        own
    });
    (all.cpu, all.memory)
}

fn pod_level(spec: &PodSpec) -> Option<&Quantities> {
    let requests = spec.resources.as_ref()?.requests.as_ref()?;
    let counts = |n: &String| matches!(n.as_str(), "cpu" | "memory") || n.starts_with("hugepages-");
    requests.keys().any(counts).then_some(requests)
}

fn container(pod: &Pod, container: &Container) -> Amounts {
    let mut own = Amounts::of(container.resources.as_ref().and_then(|r| r.requests.as_ref()));
    let status = pod.status.as_ref();
    let main = status.and_then(|s| s.container_statuses.as_deref()).unwrap_or_default();
    let init = status.and_then(|s| s.init_container_statuses.as_deref()).unwrap_or_default();
    let Some(is) = main.iter().chain(init).find(|s| s.name == container.name) else { return own };
    let Some(actual) = is.resources.as_ref().and_then(|r| r.requests.as_ref()) else { return own };
    let mut has = Amounts::of(Some(actual));
    has.max(&Amounts::of(allocated(is)));
    // What can't be is no demand.
    if is_infeasible(pod) {
        return has;
    }
    own.max(&has);
    own
}

fn allocated(status: &ContainerStatus) -> Option<&Quantities> {
    status.allocated_resources.as_ref()
}

fn is_infeasible(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|c| {
        c.type_ == "PodResizePending" && c.status == "True" && c.reason.as_deref() == Some("Infeasible")
    })
}

fn total(spec: &PodSpec, of: impl Fn(&Container) -> Amounts) -> Amounts {
    let mut total = Amounts::default();
    for container in &spec.containers {
        total.add(&of(container));
    }
    let (mut sidecars, mut init) = (Amounts::default(), Amounts::default());
    for container in spec.init_containers.iter().flatten() {
        let own = of(container);
        let mut beside = sidecars.clone();
        beside.add(&own);
        init.max(&beside);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&own);
        }
    }
    total.add(&sidecars);
    total.max(&init);
    for (name, q) in pod_level(spec).into_iter().flatten() {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            total.set(name, amount(name, &q.0));
        }
    }
    total.add(&Amounts::of(spec.overhead.as_ref()));
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(pod: Value, cpu: i64, memory: i64, scored: (i64, i64)) {
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let needs = requests(&pod);
        assert_eq!((needs.get("cpu"), needs.get("memory")), (cpu, memory));
        assert_eq!(non_zero(&pod), scored);
    }

    fn container(cpu: &str, memory: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}})
    }

    #[test]
    fn requests_add_up_and_init_containers_overlap() {
        let spec = |s: Value| json!({"spec": s});
        check(
            spec(json!({"containers": [container("250m", "1Ki"), container("1", "1k")]})),
            1250,
            2024,
            (1250, 2024),
        );
        let init = json!([container("2", "1")]);
        check(spec(json!({"containers": [container("1", "5")], "initContainers": init})), 2000, 5, (2000, 5));
        let mut sidecar = container("1", "1");
        sidecar["restartPolicy"] = "Always".into();
        let init = json!([sidecar, container("3", "1")]);
        check(spec(json!({"containers": [container("1", "5")], "initContainers": init})), 4000, 6, (4000, 6));
        let overhead = json!({"containers": [container("1", "0")], "overhead": {"cpu": "50m"}});
        check(spec(overhead), 1050, 0, (1050, 0));
        check(spec(json!({"containers": [{"name": "a"}, {"name": "b"}]})), 0, 0, (200, 2 * DEFAULT_MEMORY));
    }

    #[test]
    fn requests_of_the_pod_itself_stand_over_its_containers() {
        let pod = json!({"spec": {"containers": [container("1", "5")],
            "resources": {"requests": {"cpu": "3"}}, "overhead": {"cpu": "1"}}});
        check(pod, 4000, 5, (4000, 5));
        let pod = json!({"spec": {"containers": [{"name": "c"}], "resources": {"requests": {"cpu": "3"}}}});
        check(pod, 3000, 0, (3000, DEFAULT_MEMORY));
    }

    #[test]
    fn a_resize_counts_with_the_larger_amount() {
        let resizing = |reason: &str| {
            json!({"spec": {"containers": [container("1", "5")]}, "status": {
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
                "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                    "allocatedResources": {"cpu": "500m", "memory": "9"},
                    "resources": {"requests": {"cpu": "500m", "memory": "7"}}}]}})
        };
        check(resizing("Deferred"), 1000, 9, (1000, 9));
        check(resizing("Infeasible"), 500, 9, (500, 9));
    }

    #[test]
    fn scalars_are_what_has_a_domain() {
        let q = |v: &str| Text(v.to_owned());
        let all: Quantities = [("a.b/gpu", "2"), ("hugepages-2Mi", "4Mi"), ("storage", "5"), ("pods", "7")]
            .into_iter()
            .map(|(k, v)| (k.to_owned(), q(v)))
            .collect();
        let amounts = Amounts::of(Some(&all));
        let scalars: Vec<_> = amounts.scalars().collect();
        assert_eq!(scalars, [("a.b/gpu", 2), ("hugepages-2Mi", 4 << 20)]);
        assert_eq!((amounts.pods, is_extended("a.b/gpu"), is_extended("hugepages-2Mi")), (7, true, false));
    }
}
