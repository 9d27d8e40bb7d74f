//! Runs the pods that are bound to the fleet's machines, as their kubelets would.
//!
//! What a container runtime would know (sandboxes) is in memory; all else is read from the API each time. A pod that
//! was running before this process began is started anew and counts a restart.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Event, Key, Next, Operator, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};

use crate::fleet::{Fleet, Machine};
use crate::lifecycle::{plans, status};
use crate::runtime::{Delays, Sandbox, State};

/// The kubelets of a fleet, in one.
pub(crate) struct Kubelets {
    fleet: Fleet,
    delays: Delays,
    sandboxes: Mutex<BTreeMap<Key, Placed>>,
}

struct Placed {
    uid: String,
    machine: Machine,
    sandbox: Sandbox,
}

/// What is to be told and done after the runtime has moved.
struct Step {
    sandbox: Sandbox,
    next: Option<Timestamp>,
    started: Vec<String>,
    signalled: bool,
}

impl Kubelets {
    pub(crate) fn new(fleet: Fleet, delays: Delays) -> Self {
        Self { fleet, delays, sandboxes: Mutex::default() }
    }

    /// Moves the pod's sandbox to `now`; `None` where the machine has no address left for it.
    fn advance(&self, key: &Key, pod: &Pod, machine: Machine, now: Timestamp) -> Option<Step> {
        let mut all = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if all.get(key).is_none_or(|p| p.uid != uid) {
            let address = if pod.spec.as_ref().and_then(|s| s.host_network) == Some(true) {
                machine.address().to_string()
            } else {
                machine
                    .free_address(|a| all.values().any(|p| p.machine == machine && p.sandbox.address == a))?
            };
            let sandbox = Sandbox::new(now, address, restarts(pod));
            all.insert(key.clone(), Placed { uid, machine, sandbox });
        }
        let sandbox = &mut all.get_mut(key)?.sandbox;
        let plans = plans(pod);
        let running = |s: &Sandbox, name: &str| matches!(s.state(name), State::Running { .. });
        let before: Vec<bool> = plans.iter().map(|p| running(sandbox, &p.name)).collect();
        let signalled = pod.metadata.deletion_timestamp.is_some() && sandbox.stopping.is_none();
        if signalled {
            sandbox.stopping = Some(now);
        }
        let next = sandbox.advance(&plans, &self.delays, now);
        let started = plans
            .iter()
            .zip(before)
            .filter(|(p, before)| !before && running(sandbox, &p.name))
            .map(|(p, _)| p.name.clone())
            .collect();
        Some(Step { sandbox: sandbox.clone(), next, started, signalled })
    }

    fn forget(&self, key: &Key) {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Restarts that a new sandbox of this pod begins with: one more than before if it had run.
fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_deref()).unwrap_or_default();
    let ran = statuses.iter().any(|c| c.state.as_ref().is_some_and(|s| s.waiting.is_none()));
    let most = statuses.iter().map(|c| c.restart_count).max().unwrap_or(0);
    if ran { most + 1 } else { most }
}

impl Operator for Kubelets {
    type Resource = Pod;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "kubelet"
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
        let Some(machine) = self.fleet.find(node) else { return Ok(Next::done()) };
        let over =
            matches!(pod.status.as_ref().and_then(|s| s.phase.as_deref()), Some("Succeeded" | "Failed"));
        if over {
            if pod.metadata.deletion_timestamp.is_some() {
                return remove(pod, cx).await;
            }
            self.forget(cx.key());
            return Ok(Next::done());
        }
        let now = cx.clock().now();
        let Some(step) = self.advance(cx.key(), pod, machine, now) else {
            let text = format!("{node} has no pod address left");
            cx.event(Event::warning("FailedCreatePodSandBox", text).action("CreatePodSandBox")).await;
            return Ok(Next::after(Duration::from_secs(10)));
        };
        cx.status(status(pod, &step.sandbox, &machine.address().to_string(), &self.delays, now)).await?;
        for event in news(pod, &step) {
            cx.event(event).await;
        }
        if step.sandbox.is_stopped() {
            return remove(pod, cx).await;
        }
        Ok(match step.next {
            Some(next) => Next::after(Duration::try_from(next.duration_since(now)).unwrap_or_default()),
            None => Next::done(),
        })
    }

    /// A pod that is being deleted is stopped step by step, like it was started.
    async fn finalize(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(pod, cx).await
    }

    async fn absent(&self, key: &Key, _cx: &Context<Self>) -> Result<Next> {
        self.forget(key);
        Ok(Next::done())
    }
}

/// The kubelet's last word about a pod: it is stopped, the object may go.
async fn remove(pod: &Pod, cx: &Context<Kubelets>) -> Result<Next> {
    let preconditions = Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default() }.grace_period(0);
    cx.writer().delete::<Pod>(cx.key(), &params).await?;
    Ok(Next::done())
}

/// What a kubelet tells about the step.
fn news(pod: &Pod, step: &Step) -> Vec<Event> {
    let mut news = Vec::new();
    let containers = pod.spec.iter().flat_map(|s| s.init_containers.iter().flatten().chain(&s.containers));
    for container in containers {
        let name = &container.name;
        if step.started.contains(name) {
            let image = container.image.as_deref().unwrap_or_default();
            let pulled = format!(
                "Container image \"{image}\" already present on machine and can be accessed by the pod"
            );
            news.push(Event::normal("Pulled", pulled).action("Pulling"));
            news.push(Event::normal("Created", format!("Container created: {name}")).action("Starting"));
            news.push(Event::normal("Started", format!("Container started: {name}")).action("Starting"));
        } else if step.signalled && matches!(step.sandbox.state(name), State::Running { .. }) {
            news.push(Event::normal("Killing", format!("Stopping container {name}")).action("Killing"));
        }
    }
    news
}
