//! The status of one container.
//!
//! Source: kubelet's `convertToAPIContainerStatuses`. Texts are the kubelet's.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use homeostat_model::duration::go;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, ContainerUser, LinuxContainerUser, Pod, ResourceRequirements, SecurityContext,
    VolumeMount, VolumeMountStatus,
};

use super::whole;
use crate::behavior::choice::Part;
use crate::runtime::{ContainerPlan, Phase, Plan, Record, Sandbox, Termination};

/// The pod as kubelet's texts name it.
fn full_name(pod: &Pod) -> String {
    let meta = &pod.metadata;
    let text = |t: &Option<String>| t.clone().unwrap_or_default();
    format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid))
}

/// What a failed pull says.
pub(crate) fn pull_error(plan: &Plan<'_>, i: usize, record: &Record) -> String {
    plan.act(i, record.run()).pull_error.as_ref().map(|(why, _)| why.clone()).unwrap_or_default()
}

pub(super) fn status(plan: &Plan<'_>, p: &ContainerPlan<'_>, i: usize, sandbox: &Sandbox) -> ContainerStatus {
    let pod = plan.pod();
    let Some(record) = sandbox.containers.get(i) else { return ContainerStatus::default() };
    let id = |run: i32| format!("simulated://{:016x}", fingerprint(&(&pod.metadata.uid, p.name, run)));
    let terminated = |t: &Termination| ContainerState {
        terminated: Some(ContainerStateTerminated {
            container_id: Some(id(t.run)),
            exit_code: t.code,
            reason: Some(t.reason.to_string()),
            message: t.message.as_deref().map(ToOwned::to_owned),
            started_at: Some(whole(t.started)),
            finished_at: Some(whole(t.finished)),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    };
    let (mut state, mut last) = (None, record.last.as_deref().map(terminated));
    if record.is_up() {
        let running = Some(ContainerStateRunning { started_at: Some(whole(record.started)) });
        state = Some(ContainerState { running, ..ContainerState::default() });
    } else if let Some((reason, message)) = waiting(plan, p, i, record).filter(|_| !sandbox.is_stopped()) {
        if let Some(end) = &record.end {
            last = Some(terminated(end));
        }
        state = Some(wait(reason, message));
    } else if let Some(end) = &record.end {
        state = Some(terminated(end));
    } else if sandbox.is_stopped() && sandbox.made.is_some() && sandbox.is_initialized(plan) {
        state = Some(ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code: 137,
                reason: Some("ContainerStatusUnknown".to_owned()),
                message: Some("The container could not be located when the pod was terminated".to_owned()),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        });
    }
    let initializing = plan.has_init() && p.part != Part::Ephemeral;
    let first = if initializing { "PodInitializing" } else { "ContainerCreating" };
    let state = state.unwrap_or_else(|| wait(first, None));
    let ready = match p.part {
        Part::Init => record.succeeded(),
        Part::Ephemeral => false,
        _ => record.is_up() && record.startup.result && record.readiness.result,
    };
    let existed = record.is_up() || record.end.is_some() || record.last.is_some();
    let run = record.end.as_ref().map_or(record.restarts, |e| e.run);
    let spec = spec_of(pod, p);
    ContainerStatus {
        name: p.name.to_owned(),
        image: p.image.to_owned(),
        image_id: if existed { p.image.to_owned() } else { String::new() },
        container_id: existed.then(|| id(run)),
        ready,
        started: Some(record.is_started()),
        restart_count: record.restarts,
        state: Some(state),
        last_state: last.or_else(|| Some(ContainerState::default())),
        allocated_resources: spec.resources(record).and_then(|r| r.requests.clone()),
        resources: (p.part != Part::Ephemeral).then(|| spec.in_force(record)),
        user: record.is_up().then(|| user(pod, spec.security())).flatten(),
        volume_mounts: spec.mounts(),
        ..ContainerStatus::default()
    }
}

fn wait(reason: &str, message: Option<String>) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message }),
        ..ContainerState::default()
    }
}

/// Why it waits; `None` where it doesn't, or only for its turn.
fn waiting(
    plan: &Plan<'_>,
    p: &ContainerPlan<'_>,
    i: usize,
    record: &Record,
) -> Option<(&'static str, Option<String>)> {
    let image = p.image;
    Some(match record.phase {
        Phase::PullFailed => ("ErrImagePull", Some(pull_error(plan, i, record))),
        Phase::PullBackOff => {
            let why = pull_error(plan, i, record);
            ("ImagePullBackOff", Some(format!("Back-off pulling image \"{image}\": ErrImagePull: {why}")))
        }
        Phase::NeverPull => {
            let text = format!("Container image \"{image}\" is not present with pull policy of Never");
            ("ErrImageNeverPull", Some(text))
        }
        Phase::Misconfigured => ("CreateContainerConfigError", plan.misconfigured(i).map(ToOwned::to_owned)),
        Phase::BackOff => {
            let (delay, name) = (go(record.backoff.delay()), p.name);
            let pod = full_name(plan.pod());
            let text = format!("back-off {delay} restarting failed container={name} pod={pod}");
            ("CrashLoopBackOff", Some(text))
        }
        _ => return None,
    })
}

/// A number that follows from `what`.
pub(crate) fn fingerprint(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// The container in the spec.
struct Spec<'a> {
    container: Option<&'a Container>,
    mounts: Option<&'a Vec<VolumeMount>>,
}

fn spec_of<'a>(pod: &'a Pod, p: &ContainerPlan<'_>) -> Spec<'a> {
    let Some(spec) = &pod.spec else { return Spec { container: None, mounts: None } };
    if p.part == Part::Ephemeral {
        let found = spec.ephemeral_containers.iter().flatten().find(|c| c.name == p.name);
        return Spec { container: None, mounts: found.and_then(|c| c.volume_mounts.as_ref()) };
    }
    let container = spec.init_containers.iter().flatten().chain(&spec.containers).find(|c| c.name == p.name);
    Spec { container, mounts: container.and_then(|c| c.volume_mounts.as_ref()) }
}

impl Spec<'_> {
    /// What it was given.
    fn resources<'r>(&'r self, record: &'r Record) -> Option<&'r ResourceRequirements> {
        let asked = || self.container.and_then(|c| c.resources.as_ref());
        let given =
            super::resize::asks(self.container.and_then(|c| c.resources.as_ref())) == record.allocated;
        if given { asked() } else { record.held.as_deref().or_else(asked) }
    }

    /// What is in force.
    fn in_force(&self, record: &Record) -> ResourceRequirements {
        let asked = self.container.and_then(|c| c.resources.as_ref());
        let resources = record.held.as_deref().or(asked).cloned().unwrap_or_default();
        ResourceRequirements { claims: None, ..resources }
    }

    fn security(&self) -> Option<&SecurityContext> {
        self.container.and_then(|c| c.security_context.as_ref())
    }

    fn mounts(&self) -> Option<Vec<VolumeMountStatus>> {
        let mounts = self.mounts.filter(|m| !m.is_empty())?;
        let status = |m: &VolumeMount| VolumeMountStatus {
            name: m.name.clone(),
            mount_path: m.mount_path.clone(),
            read_only: m.read_only.filter(|r| *r),
            recursive_read_only: m.read_only.filter(|r| *r).map(|_| {
                let enabled = matches!(m.recursive_read_only.as_deref(), Some("Enabled" | "IfPossible"));
                if enabled { "Enabled" } else { "Disabled" }.to_owned()
            }),
            ..VolumeMountStatus::default()
        };
        // The list is a map by mount path.
        let by_path: BTreeMap<&str, &VolumeMount> =
            mounts.iter().map(|m| (m.mount_path.as_str(), m)).collect();
        let ordered = mounts.iter().filter(|m| by_path.get(m.mount_path.as_str()).is_some_and(|b| *b == *m));
        Some(ordered.map(status).collect())
    }
}

/// The user that it runs as; root where nothing says otherwise.
fn user(pod: &Pod, security: Option<&SecurityContext>) -> Option<ContainerUser> {
    let of_pod = pod.spec.as_ref().and_then(|s| s.security_context.as_ref());
    let uid =
        security.and_then(|s| s.run_as_user).or_else(|| of_pod.and_then(|s| s.run_as_user)).unwrap_or(0);
    let gid =
        security.and_then(|s| s.run_as_group).or_else(|| of_pod.and_then(|s| s.run_as_group)).unwrap_or(0);
    let mut groups = vec![gid];
    groups.extend(of_pod.iter().filter_map(|s| s.fs_group));
    groups.extend(of_pod.iter().flat_map(|s| s.supplemental_groups.iter().flatten().copied()));
    groups.sort_unstable();
    groups.dedup();
    Some(ContainerUser { linux: Some(LinuxContainerUser { uid, gid, supplemental_groups: Some(groups) }) })
}
