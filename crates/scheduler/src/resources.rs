//! Amounts of resources: what pods ask for and what nodes have.
//!
//! CPU counts in thousandths, everything else in whole units (bytes, devices), as in the reference scheduler. A
//! quantity that does not parse counts as nothing: the API server has refused it already.

use std::collections::BTreeMap;

use homeostat_model::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

/// CPU that a container without a request is scored with, in thousandths.
const DEFAULT_CPU: i64 = 100;
/// Memory that a container without a request is scored with, in bytes.
const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts by resource name; absent is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, i64>);

impl Amounts {
    /// From the API's form.
    pub fn of(quantities: Option<&BTreeMap<String, Text>>) -> Self {
        Self(quantities.into_iter().flatten().map(|(name, q)| (name.clone(), amount(name, &q.0))).collect())
    }

    /// The amount of one resource.
    pub fn get(&self, name: &str) -> i64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Names and amounts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.0.iter().map(|(k, v)| (k.as_str(), *v))
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: &Self) {
        for (name, n) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*n);
        }
    }

    /// Takes away all of `other`.
    pub fn sub(&mut self, other: &Self) {
        for (name, n) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_sub(*n);
        }
    }

    fn max(&mut self, other: &Self) {
        for (name, n) in &other.0 {
            let most = self.0.entry(name.clone()).or_default();
            *most = (*most).max(*n);
        }
    }

    fn at_least(&mut self, name: &str, default: i64) {
        self.0.entry(name.to_owned()).or_insert(default);
    }
}

fn amount(name: &str, text: &str) -> i64 {
    let Ok(quantity) = Quantity::parse(text) else { return 0 };
    let n = if name == "cpu" { quantity.milli() } else { quantity.value() };
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// What a pod needs from a node: the larger of what its containers need together and what an init container needs
/// beside the sidecars before it, with the pod's overhead (KEP-753).
pub fn requests(spec: &PodSpec) -> Amounts {
    needs(spec, |c| Amounts::of(c.resources.as_ref().and_then(|r| r.requests.as_ref())))
}

/// The same for scoring, where a container without requests counts as a small one, so that pods spread.
pub fn requests_for_score(spec: &PodSpec) -> Amounts {
    needs(spec, |c| {
        let mut own = Amounts::of(c.resources.as_ref().and_then(|r| r.requests.as_ref()));
        own.at_least("cpu", DEFAULT_CPU);
        own.at_least("memory", DEFAULT_MEMORY);
        own
    })
}

fn needs(spec: &PodSpec, of: impl Fn(&Container) -> Amounts) -> Amounts {
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
    total.add(&Amounts::of(spec.overhead.as_ref()));
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(spec: Value, cpu: i64, memory: i64) {
        let needs = requests(&serde_json::from_value(spec).unwrap());
        assert_eq!((needs.get("cpu"), needs.get("memory")), (cpu, memory));
    }

    fn container(cpu: &str, memory: &str) -> Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}})
    }

    #[test]
    fn requests_add_up_and_init_containers_overlap() {
        check(json!({"containers": [container("250m", "1Ki"), container("1", "1k")]}), 1250, 2024);
        let init = json!([container("2", "1")]);
        check(json!({"containers": [container("1", "5")], "initContainers": init}), 2000, 5);
        let mut sidecar = container("1", "1");
        sidecar["restartPolicy"] = "Always".into();
        let init = json!([sidecar, container("3", "1")]);
        check(json!({"containers": [container("1", "5")], "initContainers": init}), 4000, 6);
        check(json!({"containers": [container("1", "0")], "overhead": {"cpu": "50m"}}), 1050, 0);
    }
}
