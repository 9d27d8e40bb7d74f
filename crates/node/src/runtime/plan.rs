//! What shall run: a pod's spec and its behavior, reduced to what the runtime needs.
//!
//! A plan borrows from both and is made anew whenever it is needed; it holds no state but a memory of what it was asked
//! already.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, Lifecycle, Pod, Probe};

use crate::behavior::choice::{Act, Choice, Delays, Part, Subject};
use crate::references::Lacking;

/// A pod's plan.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Init containers in order, main containers, ephemeral containers.
    pub containers: Vec<ContainerPlan<'a>>,
    /// From the signal to the end, at most.
    pub grace: Duration,
    /// From the pod's start to its end, at most.
    pub deadline: Option<Duration>,
    /// The default delays.
    pub delays: Delays,
    /// ConfigMaps and Secrets that it names and that aren't there.
    pub lacking: Lacking,
    pod: &'a Pod,
    choice: &'a Choice,
    /// By container: what was asked for last, and after how many restarts.
    acts: RefCell<Vec<Option<Known>>>,
}

/// Restarts, and what a container does in the run after them.
type Known = (i32, Rc<Act>);

/// When a container that ended comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Always.
    Always,
    /// When it failed.
    OnFailure,
    /// Never.
    Never,
}

/// A container's plan.
#[derive(Debug)]
pub struct ContainerPlan<'a> {
    /// Name.
    pub name: &'a str,
    /// Image.
    pub image: &'a str,
    /// Its part in the pod's life.
    pub part: Part,
    /// When it comes again.
    pub restart: RestartPolicy,
    /// Whether each start asks for the image anew.
    pub always_pull: bool,
    /// Whether the image must not be pulled.
    pub never_pull: bool,
    /// Whether the image is on the node.
    pub present: bool,
    /// Its startup, readiness and liveness probes.
    pub startup: Option<ProbePlan>,
    /// See `startup`.
    pub readiness: Option<ProbePlan>,
    /// See `startup`.
    pub liveness: Option<ProbePlan>,
    /// From the order to stop to the signal: a preStop hook that sleeps.
    pub pre_stop: Duration,
    rules: &'a [ContainerRestartRule],
}

/// A probe's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePlan {
    /// From the start to the first asking.
    pub initial_delay: Duration,
    /// From one asking to the next.
    pub period: Duration,
    /// Successes in a row that make a success.
    pub success: u32,
    /// Failures in a row that make a failure.
    pub failure: u32,
    /// From the signal to the end where the probe kills, at most.
    pub grace: Option<Duration>,
    /// What a failure says.
    pub failed: &'static str,
}

fn seconds(s: i64) -> Duration {
    Duration::from_secs(u64::try_from(s).unwrap_or(0))
}

impl ProbePlan {
    fn of(probe: &Probe) -> Self {
        let count = |n: Option<i32>, default: u32| {
            n.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0).unwrap_or(default)
        };
        let failed = if probe.http_get.is_some() {
            "HTTP probe failed with statuscode: 503"
        } else if probe.grpc.is_some() {
            "service unhealthy (responded with \"NOT_SERVING\")"
        } else if probe.tcp_socket.is_some() {
            "dial tcp: connect: connection refused"
        } else {
            "command exited with code 1"
        };
        Self {
            initial_delay: seconds(probe.initial_delay_seconds.unwrap_or(0).into()),
            period: Duration::from_secs(count(probe.period_seconds, 10).into()),
            success: count(probe.success_threshold, 1),
            failure: count(probe.failure_threshold, 3),
            grace: probe.termination_grace_period_seconds.map(seconds),
            failed,
        }
    }
}

impl<'a> Plan<'a> {
    /// The plan of a pod; `present` says whether an image is on its node.
    pub fn new(pod: &'a Pod, choice: &'a Choice, present: impl Fn(&str) -> bool) -> Self {
        let spec = pod.spec.as_ref();
        let of_pod = match spec.and_then(|s| s.restart_policy.as_deref()) {
            Some("Never") => RestartPolicy::Never,
            Some("OnFailure") => RestartPolicy::OnFailure,
            _ => RestartPolicy::Always,
        };
        let mut containers = Vec::new();
        for c in spec.iter().flat_map(|s| s.init_containers.iter().flatten()) {
            containers.push(container(c, true, of_pod, &present));
        }
        for c in spec.iter().flat_map(|s| &s.containers) {
            containers.push(container(c, false, of_pod, &present));
        }
        for c in spec.iter().flat_map(|s| s.ephemeral_containers.iter().flatten()) {
            let image = c.image.as_deref().unwrap_or_default();
            containers.push(ContainerPlan {
                name: &c.name,
                image,
                part: Part::Ephemeral,
                restart: RestartPolicy::Never,
                always_pull: c.image_pull_policy.as_deref() == Some("Always"),
                never_pull: c.image_pull_policy.as_deref() == Some("Never"),
                present: present(image),
                startup: None,
                readiness: None,
                liveness: None,
                pre_stop: Duration::ZERO,
                rules: &[],
            });
        }
        let acts = RefCell::new(vec![None; containers.len()]);
        Self {
            containers,
            grace: seconds(spec.and_then(|s| s.termination_grace_period_seconds).unwrap_or(30)),
            deadline: spec.and_then(|s| s.active_deadline_seconds).map(seconds),
            delays: *choice.delays(),
            lacking: Lacking::default(),
            pod,
            choice,
            acts,
        }
    }

    /// The same, without these.
    #[must_use]
    pub fn lacking(mut self, lacking: Lacking) -> Self {
        self.lacking = lacking;
        self
    }

    /// Why a container can't be made.
    pub fn misconfigured(&self, container: usize) -> Option<&str> {
        let name = self.containers.get(container)?.name;
        self.lacking.containers.get(name).map(String::as_str)
    }

    /// The pod.
    pub fn pod(&self) -> &'a Pod {
        self.pod
    }

    /// What the container of this number does in the run after `restarts` restarts.
    pub fn act(&self, container: usize, restarts: i32) -> Rc<Act> {
        let known = self.acts.borrow().get(container).cloned().flatten();
        if let Some((_, act)) = known.filter(|(run, _)| *run == restarts) {
            return act;
        }
        let act = Rc::new(match self.subject(container) {
            Some(subject) => self.choice.act(&subject, restarts),
            None => {
                self.choice.act(&Subject { pod: self.pod, name: "", image: "", part: Part::Main }, restarts)
            }
        });
        if let Some(place) = self.acts.borrow_mut().get_mut(container) {
            *place = Some((restarts, act.clone()));
        }
        act
    }

    /// The container of this number, as behaviors see it.
    pub fn subject(&self, container: usize) -> Option<Subject<'a>> {
        let c = self.containers.get(container)?;
        Some(Subject { pod: self.pod, name: c.name, image: c.image, part: c.part })
    }

    /// Numbers of the containers with this part.
    pub fn of(&self, part: Part) -> impl Iterator<Item = usize> {
        self.containers.iter().enumerate().filter(move |(_, c)| c.part == part).map(|(i, _)| i)
    }

    /// Whether there are init containers, sidecars among them.
    pub fn has_init(&self) -> bool {
        self.containers.first().is_some_and(|c| matches!(c.part, Part::Init | Part::Sidecar))
    }
}

impl ContainerPlan<'_> {
    /// Whether it comes again after it ended with `code`. Rules come first; source: kubelet's
    /// `ShouldContainerBeRestarted`.
    pub fn restarts_after(&self, code: i32) -> bool {
        if self.part == Part::Init && code == 0 {
            return false;
        }
        for rule in self.rules {
            let Some(codes) = &rule.exit_codes else { continue };
            let listed = codes.values.iter().flatten().any(|v| *v == code);
            if rule.action == "Restart" && listed == (codes.operator == "In") {
                return true;
            }
        }
        match self.restart {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => code != 0,
            RestartPolicy::Never => false,
        }
    }
}

fn container<'a>(
    c: &'a Container,
    init: bool,
    of_pod: RestartPolicy,
    present: impl Fn(&str) -> bool,
) -> ContainerPlan<'a> {
    let image = c.image.as_deref().unwrap_or_default();
    let own = match c.restart_policy.as_deref() {
        Some("Always") => Some(RestartPolicy::Always),
        Some("OnFailure") => Some(RestartPolicy::OnFailure),
        Some("Never") => Some(RestartPolicy::Never),
        _ => None,
    };
    let part = match (init, own) {
        (false, _) => Part::Main,
        (true, Some(RestartPolicy::Always)) => Part::Sidecar,
        (true, _) => Part::Init,
    };
    let restart = own.unwrap_or(of_pod);
    let sleeps = |l: &Lifecycle| l.pre_stop.as_ref()?.sleep.as_ref().map(|s| seconds(s.seconds));
    ContainerPlan {
        name: &c.name,
        image,
        part,
        restart,
        always_pull: c.image_pull_policy.as_deref() == Some("Always"),
        never_pull: c.image_pull_policy.as_deref() == Some("Never"),
        present: present(image),
        startup: c.startup_probe.as_ref().map(ProbePlan::of),
        readiness: c.readiness_probe.as_ref().map(ProbePlan::of),
        liveness: c.liveness_probe.as_ref().map(ProbePlan::of),
        pre_stop: c.lifecycle.as_ref().and_then(sleeps).unwrap_or_default(),
        rules: c.restart_policy_rules.as_deref().unwrap_or_default(),
    }
}
