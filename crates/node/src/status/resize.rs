//! In-place resize: from new resources in the spec to resources in force.
//!
//! What fits is given, and in force a moment later; a container whose resizePolicy asks for it starts anew. What the
//! node could never give is Infeasible, what it can't give now Deferred. Source: kubelet's allocation manager.

use k8s_openapi::api::core::v1::{Container, Pod, ResourceRequirements};

use super::container::fingerprint;

/// Resources that can't be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// `Infeasible` or `Deferred`.
    pub reason: &'static str,
    /// Which, and why.
    pub message: String,
}

/// A fingerprint of what a container asks for.
pub(crate) fn asks(resources: Option<&ResourceRequirements>) -> u64 {
    let Some(r) = resources else { return 0 };
    let list = |l: &Option<
        std::collections::BTreeMap<_, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    >| {
        let items = l.iter().flatten().map(|(k, q): (&String, _)| (k.clone(), q.0.clone()));
        items.collect::<Vec<_>>()
    };
    match (list(&r.requests), list(&r.limits)) {
        (requests, limits) if requests.is_empty() && limits.is_empty() => 0,
        both => fingerprint(&both),
    }
}

/// The containers whose resources may change, with their numbers in the plan.
pub(crate) fn containers(pod: &Pod) -> impl Iterator<Item = (usize, &Container)> {
    pod.spec.iter().flat_map(|s| s.init_containers.iter().flatten().chain(&s.containers)).enumerate()
}

/// Whether a container starts anew for a change from `old`.
pub(crate) fn needs_restart(container: &Container, old: Option<&ResourceRequirements>) -> bool {
    let amount = |r: Option<&ResourceRequirements>, name: &str| {
        let of = |l: &Option<std::collections::BTreeMap<String, _>>| {
            let l: Option<&k8s_openapi::apimachinery::pkg::api::resource::Quantity> = l.as_ref()?.get(name);
            l.map(|q| q.0.clone())
        };
        r.map(|r| (of(&r.requests), of(&r.limits)))
    };
    container.resize_policy.iter().flatten().any(|policy| {
        let name = policy.resource_name.as_str();
        policy.restart_policy == "RestartContainer"
            && amount(container.resources.as_ref(), name) != amount(old, name)
    })
}

/// What the pod's status says that a container has.
pub(crate) fn in_force(pod: &Pod, name: &str) -> Option<ResourceRequirements> {
    let status = pod.status.as_ref()?;
    let all =
        status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten());
    all.into_iter().find(|c| c.name == name)?.resources.clone()
}
