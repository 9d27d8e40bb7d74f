//! The conditions that a kubelet keeps on a pod.
//!
//! Those of others (readiness gates, disruptions) stay as they are. Source: kubelet's `status/generate.go`.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};

use super::{Facts, whole};
use crate::runtime::{Cause, Sandbox};

/// Whether the pod's sandbox is up.
pub(super) const SANDBOX: &str = "PodReadyToStartContainers";

/// Whether the pod is ended for reasons of its surroundings: others say so too.
const DISRUPTION: &str = "DisruptionTarget";
const BY_KUBELET: &str = "TerminationByKubelet";

/// Whether a condition is this kubelet's word, not taken over from what is stored.
pub(super) fn is_own(condition: &PodCondition) -> bool {
    OWN.contains(&condition.type_.as_str())
        || (condition.type_ == DISRUPTION && condition.reason.as_deref() == Some(BY_KUBELET))
}

/// The conditions that are a kubelet's to write.
pub(super) const OWN: [&str; 7] = [
    SANDBOX,
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
    "PodResizePending",
    "PodResizeInProgress",
];

struct Conditions<'a> {
    old: &'a [PodCondition],
    pod: &'a Pod,
    facts: &'a Facts<'a>,
    new: Vec<PodCondition>,
}

type Why = Option<(&'static str, String)>;

pub(super) fn conditions(
    pod: &Pod,
    sandbox: &Sandbox,
    facts: &Facts<'_>,
    phase: &str,
    main: &[ContainerStatus],
    init: &[ContainerStatus],
) -> Vec<PodCondition> {
    let old = pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let mut all = Conditions { old, pod, facts, new: Vec::new() };
    all.resize(sandbox);
    all.set(SANDBOX, sandbox.made.is_some() && !sandbox.is_stopped(), None);
    let initialized = initialized(pod, phase, main, init);
    all.set("Initialized", initialized.0, initialized.1);
    let containers = containers_ready(pod, phase, main, init);
    let ready = if containers.0 { gates(pod, old) } else { containers.clone() };
    all.set("Ready", ready.0, ready.1);
    all.set("ContainersReady", containers.0, containers.1);
    all.set("PodScheduled", true, None);
    let evicted = phase == "Failed" && sandbox.teardown.is_some_and(|t| t.cause == Cause::Evicted);
    if let Some(why) = sandbox.eviction.as_deref().filter(|_| evicted) {
        all.set(DISRUPTION, true, Some((BY_KUBELET, why.to_owned())));
    }
    all.finish()
}

fn restartable<'a>(
    pod: &'a Pod,
    init: &'a [ContainerStatus],
) -> impl Iterator<Item = (bool, &'a ContainerStatus)> {
    let specs = pod.spec.iter().flat_map(|s| s.init_containers.iter().flatten());
    specs.map(|c| c.restart_policy.as_deref() == Some("Always")).zip(init)
}

fn listed(names: &[&str]) -> String {
    format!("[{}]", names.join(" "))
}

fn initialized(pod: &Pod, phase: &str, main: &[ContainerStatus], init: &[ContainerStatus]) -> (bool, Why) {
    if phase == "Succeeded" {
        return (true, Some(("PodCompleted", String::new())));
    }
    let began = |c: &ContainerStatus| {
        c.started == Some(true)
            || c.last_state.as_ref().is_some_and(|s| s.terminated.is_some())
            || c.state.as_ref().is_some_and(|s| s.terminated.is_some() || s.running.is_some())
    };
    if main.iter().any(began) {
        return (true, None);
    }
    let done = |(restartable, c): &(bool, &ContainerStatus)| match restartable {
        true => c.started == Some(true),
        false => c.ready,
    };
    let incomplete: Vec<&str> =
        restartable(pod, init).filter(|c| !done(c)).map(|(_, c)| c.name.as_str()).collect();
    if incomplete.is_empty() {
        return (true, None);
    }
    let text = format!("containers with incomplete status: {}", listed(&incomplete));
    (false, Some(("ContainersNotInitialized", text)))
}

fn containers_ready(
    pod: &Pod,
    phase: &str,
    main: &[ContainerStatus],
    init: &[ContainerStatus],
) -> (bool, Why) {
    match phase {
        "Succeeded" => return (false, Some(("PodCompleted", String::new()))),
        "Failed" => return (false, Some(("PodFailed", String::new()))),
        _ => {}
    }
    let sidecars = restartable(pod, init).filter(|(restartable, _)| *restartable).map(|(_, c)| c);
    let unready: Vec<&str> = sidecars.chain(main).filter(|c| !c.ready).map(|c| c.name.as_str()).collect();
    if unready.is_empty() {
        return (true, None);
    }
    let text = format!("containers with unready status: {}", listed(&unready));
    (false, Some(("ContainersNotReady", text)))
}

fn gates(pod: &Pod, have: &[PodCondition]) -> (bool, Why) {
    let gates = pod.spec.iter().flat_map(|s| s.readiness_gates.iter().flatten());
    let unmet = gates.filter_map(|gate| {
        let kind = &gate.condition_type;
        match have.iter().find(|c| c.type_ == *kind) {
            None => Some(format!("corresponding condition of pod readiness gate \"{kind}\" does not exist.")),
            Some(c) if c.status == "True" => None,
            Some(c) => {
                let status = &c.status;
                Some(format!("the status of pod readiness gate \"{kind}\" is not \"True\", but {status}"))
            }
        }
    });
    let unmet: Vec<String> = unmet.collect();
    if unmet.is_empty() { (true, None) } else { (false, Some(("ReadinessGatesNotReady", unmet.join(", ")))) }
}

impl Conditions<'_> {
    fn set(&mut self, kind: &str, holds: bool, why: Why) {
        let status = if holds { "True" } else { "False" };
        let old = self.old.iter().find(|c| c.type_ == kind);
        let since = old.filter(|c| c.status == status).and_then(|c| c.last_transition_time.clone());
        let (reason, message) = why.map_or((None, None), |(r, m)| (Some(r.to_owned()), Some(m)));
        self.new.push(PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason,
            message: message.filter(|m| !m.is_empty()),
            last_transition_time: since.or_else(|| Some(whole(self.facts.now))),
            last_probe_time: None,
            observed_generation: self.pod.metadata.generation,
        });
    }

    fn resize(&mut self, sandbox: &Sandbox) {
        if let Some(pending) = self.facts.pending {
            self.set("PodResizePending", true, Some((pending.reason, pending.message.clone())));
        }
        if sandbox.resizing.is_some() {
            self.set("PodResizeInProgress", true, None);
        }
    }

    /// Ours, and behind them what others have put there.
    fn finish(self) -> Vec<PodCondition> {
        let mut all = self.new;
        let said = |kind: &str| all.iter().any(|c| c.type_ == kind);
        let others = self.old.iter().filter(|c| !OWN.contains(&c.type_.as_str()) && !said(&c.type_));
        let others: Vec<PodCondition> = others.cloned().collect();
        all.extend(others);
        all
    }
}
