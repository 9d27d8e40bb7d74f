//! Where a Service's traffic goes: EndpointSlices, and the older Endpoints, from the pods that its selector matches.
//!
//! [`backend`] says what a pod contributes, [`slices`] and [`subsets`] arrange it in the two forms. The Endpoints of
//! Services without a selector are their users' business; [`mirror`] makes slices of them. [`plan`] carries out what both
//! want of slices, [`trigger`] finds the time of the change that is told with them.

mod backend;
pub(crate) mod mirror;
mod plan;
pub(crate) mod slices;
pub(crate) mod subsets;
mod trigger;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_sdk::{Cache, Change, Key};
use k8s_openapi::api::core::v1::{Pod, Service, ServiceSpec};

/// Annotations, labels and names of the two forms.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The selector of a Service whose endpoints follow from pods.
fn selector(service: &Service) -> Option<&BTreeMap<String, String>> {
    let spec = service.spec.as_ref()?;
    if spec.type_.as_deref() == Some("ExternalName") {
        return None;
    }
    spec.selector.as_ref().filter(|s| !s.is_empty())
}

fn is_headless(spec: &ServiceSpec) -> bool {
    spec.cluster_ip.as_deref() == Some("None")
}

/// The Service's own labels, and that it is headless where it is.
fn labels(service: &Service) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if service.spec.as_ref().is_some_and(is_headless) {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels
}

fn selects(selector: &BTreeMap<String, String>, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    selector.iter().all(|(k, v)| labels.and_then(|l| l.get(k)) == Some(v))
}

/// The pods that a selector matches, in the order of their names.
fn pods_of(cache: &Cache<Pod>, namespace: &str, selector: &BTreeMap<String, String>) -> Vec<Arc<Pod>> {
    let mut pods = cache.in_namespace(namespace);
    pods.retain(|p| selects(selector, p));
    pods
}

/// The Services that a change of a pod concerns: those that selected it or do now, where it changed in what matters.
fn concerned(change: &Change<Pod>, services: &Cache<Service>) -> Vec<Key> {
    let Some(pod) = change.object() else { return Vec::new() };
    if !change.differs(backend::matter) {
        return Vec::new();
    }
    let all = services.in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
    let hit = |s: &&Arc<Service>| selector(s).is_some_and(|l| change.each().any(|p| selects(l, p)));
    all.iter().filter(hit).map(|s| Key::of(&**s)).collect()
}

/// The Services that select a pod.
fn selecting(pod: &Pod, services: &Cache<Service>) -> Vec<Key> {
    let all = services.in_namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
    let hit = |s: &&Arc<Service>| selector(s).is_some_and(|l| selects(l, pod));
    all.iter().filter(hit).map(|s| Key::of(&**s)).collect()
}
