//! A pod's status as a kubelet reports it, from its spec and what the runtime has.
//!
//! Pure: the same pod, sandbox and time give the same status. A condition keeps the time of its last transition, so
//! that a status without news equals the one that is stored. Source: kubelet's `generateAPIPodStatus`.

use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodStatus, Probe,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::runtime::{Delays, Plan, Role, Sandbox, State, after};

/// What the runtime shall run: init containers in order, then main containers.
pub fn plans(pod: &Pod) -> Vec<Plan> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let init = spec.init_containers.iter().flatten().map(|c| {
        let sidecar = c.restart_policy.as_deref() == Some("Always");
        (c, if sidecar { Role::Sidecar } else { Role::Init })
    });
    let main = spec.containers.iter().map(|c| (c, Role::Main));
    init.chain(main)
        .map(|(c, role)| Plan { name: c.name.clone(), role, ready_after: ready_after(c) })
        .collect()
}

fn ready_after(container: &Container) -> Duration {
    let delay = |probe: &Option<Probe>| {
        let seconds = probe.as_ref().and_then(|p| p.initial_delay_seconds).unwrap_or(0);
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    };
    delay(&container.startup_probe).max(delay(&container.readiness_probe))
}

/// The status to report.
pub fn status(pod: &Pod, sandbox: &Sandbox, host: &str, delays: &Delays, now: Timestamp) -> PodStatus {
    let old = pod.status.clone().unwrap_or_default();
    let plans = plans(pod);
    let made = sandbox.is_made(delays, now);
    let report = |role: fn(Role) -> bool, containers: &[Container]| -> Vec<ContainerStatus> {
        plans
            .iter()
            .filter(|p| role(p.role))
            .zip(containers)
            .map(|(plan, c)| container_status(plan, c, sandbox, now))
            .collect()
    };
    let spec = pod.spec.clone().unwrap_or_default();
    let main = report(|r| r == Role::Main, &spec.containers);
    let init = report(|r| r != Role::Main, spec.init_containers.as_deref().unwrap_or_default());
    let initialized =
        plans.iter().filter(|p| p.role != Role::Main).all(|p| match (p.role, sandbox.state(&p.name)) {
            (Role::Sidecar, State::Running { .. }) => true,
            (_, State::Exited { code, .. }) => code == 0,
            _ => false,
        });
    let unready: Vec<&str> = main.iter().filter(|c| !c.ready).map(|c| c.name.as_str()).collect();
    let mut conditions =
        Conditions { old: old.conditions.clone().unwrap_or_default(), pod, now, new: Vec::new() };
    conditions.set("PodReadyToStartContainers", made && !sandbox.is_stopped(), None);
    let incomplete =
        (!initialized).then(|| ("ContainersNotInitialized", "containers with incomplete status".to_owned()));
    conditions.set("Initialized", initialized, incomplete);
    let not_ready = (!unready.is_empty())
        .then(|| ("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" "))));
    let gates = unmet_gates(pod);
    let ready = not_ready.clone().or_else(|| {
        gates.map(|g| {
            (
                "ReadinessGatesNotReady",
                format!(
                    "corresponding condition of pod readiness gate \"{g}\" does not exist or is not True."
                ),
            )
        })
    });
    conditions.set("Ready", ready.is_none(), ready);
    conditions.set("ContainersReady", not_ready.is_none(), not_ready);
    conditions.set("PodScheduled", true, None);
    let conditions = conditions.finish();

    let ended: Option<Vec<i32>> = main
        .iter()
        .map(|c| c.state.as_ref().and_then(|s| s.terminated.as_ref()).map(|t| t.exit_code))
        .collect();
    let began = main.iter().all(|c| c.state.as_ref().is_some_and(|s| s.waiting.is_none()));
    let phase = match ended {
        Some(codes) if !codes.is_empty() && codes.iter().all(|c| *c == 0) => "Succeeded",
        Some(codes) if !codes.is_empty() => "Failed",
        _ if began => "Running",
        _ => "Pending",
    };
    PodStatus {
        phase: Some(phase.to_owned()),
        conditions: Some(conditions),
        host_ip: Some(host.to_owned()),
        host_ips: Some(vec![HostIP { ip: host.to_owned() }]),
        pod_ip: made.then(|| sandbox.address.clone()),
        pod_ips: made.then(|| vec![PodIP { ip: sandbox.address.clone() }]),
        start_time: old.start_time.clone().or_else(|| Some(whole(sandbox.created))),
        container_statuses: Some(main),
        init_container_statuses: (!init.is_empty()).then_some(init),
        observed_generation: pod.metadata.generation,
        ..old
    }
}

fn unmet_gates(pod: &Pod) -> Option<&str> {
    let have = pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let met = |kind: &str| have.iter().any(|c| c.type_ == kind && c.status == "True");
    pod.spec.as_ref()?.readiness_gates.iter().flatten().map(|g| g.condition_type.as_str()).find(|g| !met(g))
}

fn container_status(
    plan: &Plan,
    container: &Container,
    sandbox: &Sandbox,
    now: Timestamp,
) -> ContainerStatus {
    let image = container.image.clone().unwrap_or_default();
    let id = format!("simulated://{}", container_id(&sandbox.address, &plan.name, sandbox.restarts));
    let state = sandbox.state(&plan.name);
    let waiting = || {
        let reason = if plan.role == Role::Main && sandbox.containers.is_empty() && sandbox.stopping.is_none()
        {
            "ContainerCreating"
        } else {
            "PodInitializing"
        };
        ContainerState {
            waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message: None }),
            ..ContainerState::default()
        }
    };
    let (state, ready, started) = match state {
        State::Waiting => (waiting(), false, false),
        State::Running { since } => {
            let running = Some(ContainerStateRunning { started_at: Some(whole(since)) });
            let ready = plan.role != Role::Init
                && sandbox.stopping.is_none()
                && now >= after(since, plan.ready_after);
            (ContainerState { running, ..ContainerState::default() }, ready, true)
        }
        State::Exited { since, at, code } => {
            let terminated = ContainerStateTerminated {
                container_id: Some(id.clone()),
                exit_code: code,
                reason: Some(if code == 0 { "Completed" } else { "Error" }.to_owned()),
                started_at: Some(whole(since)),
                finished_at: Some(whole(at)),
                ..ContainerStateTerminated::default()
            };
            let state = ContainerState { terminated: Some(terminated), ..ContainerState::default() };
            (state, plan.role == Role::Init && code == 0, false)
        }
    };
    let exists = state.waiting.is_none();
    ContainerStatus {
        name: plan.name.clone(),
        image_id: if exists { image.clone() } else { String::new() },
        image,
        container_id: exists.then_some(id),
        ready,
        started: Some(started),
        restart_count: sandbox.restarts,
        state: Some(state),
        ..ContainerStatus::default()
    }
}

/// A container's id: stable, and another one after a restart.
fn container_id(address: &str, name: &str, restarts: i32) -> String {
    format!("{}-{name}-{restarts}", address.replace(['.', ':'], "-"))
}

/// `metav1.Time` has whole seconds.
pub(crate) fn whole(t: Timestamp) -> Time {
    Time(Timestamp::from_second(t.as_second()).unwrap_or(t))
}

struct Conditions<'a> {
    old: Vec<PodCondition>,
    pod: &'a Pod,
    now: Timestamp,
    new: Vec<PodCondition>,
}

impl Conditions<'_> {
    fn set(&mut self, kind: &str, holds: bool, why: Option<(&str, String)>) {
        let status = if holds { "True" } else { "False" };
        let old = self.old.iter().find(|c| c.type_ == kind);
        let since = old.filter(|c| c.status == status).and_then(|c| c.last_transition_time.clone());
        let (reason, message) = why.map_or((None, None), |(r, m)| (Some(r.to_owned()), Some(m)));
        self.new.push(PodCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason,
            message,
            last_transition_time: since.or_else(|| Some(whole(self.now))),
            last_probe_time: None,
            observed_generation: self.pod.metadata.generation,
        });
    }

    /// Ours, and behind them what others have put there (readiness gates).
    fn finish(self) -> Vec<PodCondition> {
        let mut all = self.new;
        let others: Vec<PodCondition> =
            self.old.into_iter().filter(|c| !all.iter().any(|n| n.type_ == c.type_)).collect();
        all.extend(others);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(spec: serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "generation": 1}, "spec": spec})).unwrap()
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap()
    }

    /// `phase ready/Ready-condition first-container-state` at a moment of a pod's life.
    #[track_caller]
    fn check(pod: &Pod, ms: i64, stop: Option<i64>, want: &str) {
        let delays = Delays::default();
        let mut sandbox = Sandbox::new(at(0), "10.244.0.2".into(), 0);
        if let Some(stop) = stop {
            sandbox.advance(&plans(pod), &delays, at(stop));
            sandbox.stopping = Some(at(stop));
        }
        sandbox.advance(&plans(pod), &delays, at(ms));
        let s = status(pod, &sandbox, "10.0.0.1", &delays, at(ms));
        let ready = s.conditions.iter().flatten().find(|c| c.type_ == "Ready").unwrap();
        let first = s.container_statuses.as_ref().unwrap()[0].state.clone().unwrap();
        let state = match (first.waiting, first.running, first.terminated) {
            (Some(w), _, _) => w.reason.unwrap(),
            (_, Some(_), _) => "running".to_owned(),
            (_, _, Some(t)) => t.reason.unwrap(),
            _ => "nothing".to_owned(),
        };
        let ip = if s.pod_ip.is_some() { "ip" } else { "no ip" };
        assert_eq!(format!("{} {} {state} {ip}", s.phase.unwrap(), ready.status), want, "at {ms} ms");
    }

    #[test]
    fn a_plain_pod_passes_through_the_real_phases() {
        let p = pod(json!({"containers": [{"name": "c", "image": "redis:7"}]}));
        check(&p, 0, None, "Pending False ContainerCreating no ip");
        check(&p, 40, None, "Pending False ContainerCreating ip");
        check(&p, 90, None, "Running True running ip");
        check(&p, 210, Some(200), "Running False running ip");
        check(&p, 240, Some(200), "Succeeded False Completed ip");
    }

    #[test]
    fn a_probe_delays_readiness_not_the_phase() {
        let probe = json!({"initialDelaySeconds": 5, "tcpSocket": {"port": 6379}});
        let p = pod(json!({"containers": [{"name": "c", "readinessProbe": probe}]}));
        check(&p, 100, None, "Running False running ip");
        check(&p, 5_090, None, "Running True running ip");
    }

    #[test]
    fn readiness_gates_hold_a_pod_back() {
        let p = pod(json!({"containers": [{"name": "c"}], "readinessGates": [{"conditionType": "lb"}]}));
        check(&p, 100, None, "Running False running ip");
        let mut open = p.clone();
        open.status =
            serde_json::from_value(json!({"conditions": [{"type": "lb", "status": "True"}]})).unwrap();
        check(&open, 100, None, "Running True running ip");
    }

    #[test]
    fn init_containers_come_first() {
        let p = pod(json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}));
        check(&p, 100, None, "Pending False PodInitializing ip");
        check(&p, 190, None, "Running True running ip");
    }

    #[test]
    fn no_news_gives_the_stored_status() {
        let mut p = pod(json!({"containers": [{"name": "c"}]}));
        let delays = Delays::default();
        let mut sandbox = Sandbox::new(at(0), "10.244.0.2".into(), 0);
        sandbox.advance(&plans(&p), &delays, at(100));
        let first = status(&p, &sandbox, "10.0.0.1", &delays, at(100));
        p.status = Some(first.clone());
        assert_eq!(status(&p, &sandbox, "10.0.0.1", &delays, at(50_000)), first);
    }
}
