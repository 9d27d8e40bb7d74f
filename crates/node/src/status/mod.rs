//! A pod's status as a kubelet reports it, from its spec and what the runtime has.
//!
//! Pure: the same pod, sandbox and time give the same status. A condition keeps the time of its last transition, so
//! that a status without news equals the one that is stored. Source: kubelet's `generateAPIPodStatus`.

mod conditions;
mod container;
mod patch;
pub(crate) mod resize;
#[cfg(test)]
mod tests;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub(crate) use container::pull_error;
pub use patch::patch;
pub use resize::Pending;

use crate::behavior::choice::Part;
use crate::pressure;
use crate::runtime::{Cause, Phase, Plan, Sandbox};

/// What stands in a pod's status of a deadline that is past.
pub(crate) const DEADLINE: &str = "Pod was active on the node longer than the specified deadline";

/// What a status is made of besides the pod.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The node's address.
    pub host: &'a str,
    /// Resources that were asked for and can't be given now.
    pub pending: Option<&'a Pending>,
    /// The present.
    pub now: Timestamp,
}

/// The status to report.
pub fn status(plan: &Plan<'_>, sandbox: &Sandbox, facts: &Facts<'_>) -> PodStatus {
    let pod = plan.pod();
    let old = pod.status.clone().unwrap_or_default();
    let made = sandbox.made.is_some();
    let report = |parts: &[Part]| -> Vec<ContainerStatus> {
        let of_part = plan.containers.iter().enumerate().filter(|(_, p)| parts.contains(&p.part));
        of_part.map(|(i, p)| container::status(plan, p, i, sandbox)).collect()
    };
    let main = report(&[Part::Main]);
    let init = report(&[Part::Init, Part::Sidecar]);
    let ephemeral = report(&[Part::Ephemeral]);
    let phase = phase(plan, sandbox, &main, &init);
    let conditions = conditions::conditions(pod, sandbox, facts, phase, &main, &init);
    let (reason, message) = end(sandbox).unzip();
    let address = if pod.spec.as_ref().and_then(|s| s.host_network) == Some(true) {
        facts.host.to_owned()
    } else {
        sandbox.address.to_string()
    };
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions),
        reason: reason.map(str::to_owned),
        message: message.map(str::to_owned),
        host_ip: Some(facts.host.to_owned()),
        host_ips: Some(vec![HostIP { ip: facts.host.to_owned() }]),
        pod_ip: made.then(|| address.clone()),
        pod_ips: made.then(|| vec![PodIP { ip: address }]),
        start_time: old.start_time.clone().or_else(|| Some(whole(sandbox.created))),
        container_statuses: Some(main),
        init_container_statuses: (!init.is_empty()).then_some(init),
        ephemeral_container_statuses: (!ephemeral.is_empty()).then_some(ephemeral),
        observed_generation: pod.metadata.generation,
        ..old
    }
}

/// Why its kubelet ended a pod that is over now: reason and message.
fn end(sandbox: &Sandbox) -> Option<(&'static str, &str)> {
    match sandbox.teardown.filter(|_| sandbox.is_stopped())?.cause {
        Cause::Deadline => Some(("DeadlineExceeded", DEADLINE)),
        Cause::Evicted => Some((pressure::REASON, sandbox.eviction.as_deref().unwrap_or_default())),
        Cause::Deleted | Cause::Finished | Cause::InitFailed => None,
    }
}

/// The status of a pod that the node did not take.
pub fn rejected(pod: &Pod, reason: &str, message: &str, facts: &Facts<'_>) -> PodStatus {
    let old = pod.status.clone().unwrap_or_default();
    PodStatus {
        phase: Some("Failed".to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(format!("Pod was rejected: {message}")),
        start_time: old.start_time.clone().or_else(|| Some(whole(facts.now))),
        observed_generation: pod.metadata.generation,
        ..old
    }
}

/// Whether nothing else is new in a status than that the pod's sandbox is ready and has an address.
pub fn only_sandbox(pod: &Pod, new: &PodStatus) -> bool {
    let Some(old) = &pod.status else { return false };
    let mut rest = new.clone();
    rest.pod_ip.clone_from(&old.pod_ip);
    rest.pod_ips.clone_from(&old.pod_ips);
    let is_sandbox = |c: &&PodCondition| c.type_ == conditions::SANDBOX;
    let had = old.conditions.iter().flatten().find(is_sandbox);
    let has = rest.conditions.iter_mut().flatten().find(|c| is_sandbox(&&**c));
    if let (Some(had), Some(has)) = (had, has) {
        has.clone_from(had);
    }
    rest == *old
}

/// Source: kubelet's `getPhase`. A final phase is not told before the last container has ended.
fn phase(
    plan: &Plan<'_>,
    sandbox: &Sandbox,
    main: &[ContainerStatus],
    init: &[ContainerStatus],
) -> &'static str {
    let code = |c: &ContainerStatus| c.state.as_ref()?.terminated.as_ref().map(|t| t.exit_code);
    if sandbox.is_stopped() {
        let failed = end(sandbox).is_some() || init_failed(plan, sandbox);
        return match main.iter().all(|c| code(c) == Some(0)) && !failed {
            true => "Succeeded",
            false => "Failed",
        };
    }
    let never_ran = |c: &ContainerStatus| {
        c.state.as_ref().is_some_and(|s| s.waiting.is_some())
            && c.last_state.as_ref().is_none_or(|s| s.terminated.is_none())
    };
    let pending_init = !init.is_empty() && !sandbox.is_initialized(plan) && main.iter().all(never_ran);
    if pending_init || main.iter().any(never_ran) { "Pending" } else { "Running" }
}

fn init_failed(plan: &Plan<'_>, sandbox: &Sandbox) -> bool {
    let of_init = plan.of(Part::Init).filter_map(|i| sandbox.containers.get(i));
    of_init.into_iter().any(|r| r.phase == Phase::Exited && !r.succeeded())
}

/// `metav1.Time` has whole seconds.
pub(crate) fn whole(t: Timestamp) -> Time {
    Time(Timestamp::from_second(t.as_second()).unwrap_or(t))
}
