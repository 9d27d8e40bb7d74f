//! Runs the pods that are bound to the fleet's machines, as their kubelets would.
//!
//! What a container runtime would know (sandboxes) is in memory; all else is read from the API each time. A pod that
//! was running before this process began is started anew and counts a restart.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::mpsc;
use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Event, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use kube::api::{DeleteParams, Patch, Preconditions};

use crate::admission::{self, Refusal, host_ports};
use crate::behavior::annotations;
use crate::behavior::nodes::NodeState;
use crate::events::events;
use crate::fleet::Machine;
use crate::machines::{Holding, requests};
use crate::references::{self, Lacking};
use crate::resize;
use crate::runtime::{Advance, Plan, Sandbox, What, since};
use crate::status::{self, Facts};
use crate::world::{Inventory, Placed, Settled, World};

/// When a kubelet looks again at what it could not do.
const AGAIN: Duration = Duration::from_secs(10);

/// How often a kubelet lists what its runtime has (the reference's generic PLEG): that a sandbox is ready is told together
/// with what its containers do within that time.
const RELIST: Duration = Duration::from_secs(1);

/// The kubelets of a fleet, in one.
pub(crate) struct Kubelets {
    world: Arc<World>,
    /// Pods that come back for reasons outside the API.
    woken: Mutex<Option<mpsc::UnboundedReceiver<Key>>>,
}

/// What is to be told and done after the runtime has moved.
struct Step {
    status: PodStatus,
    next: Option<Timestamp>,
    events: Vec<Event>,
    stopped: bool,
    /// Its sandbox is new, and more is due before a kubelet would list it.
    unlisted: bool,
}

/// What a kubelet makes of a pod.
enum Outcome {
    /// It moved.
    Moved(Box<Step>),
    /// The machine doesn't take it.
    Rejected(Box<(PodStatus, Event)>),
    /// The machine has no address left.
    NoAddress,
}

impl Kubelets {
    pub(crate) fn new(world: Arc<World>, woken: mpsc::UnboundedReceiver<Key>) -> Self {
        Self { world, woken: Mutex::new(Some(woken)) }
    }

    /// The pod's node as its kubelet knows it: itself, where it is not registered.
    async fn node(&self, pod: &Pod, machine: Machine, cx: &Context<Self>) -> Result<Arc<Node>> {
        let key = Key::cluster(machine.name());
        let mut node = cx.cache::<Node, _>().get(&key);
        if node.as_ref().is_some_and(|n| admission::is_kept_away(pod, n)) {
            // Its labels may just have changed.
            node = cx.writer().get::<Node>(&key).await?.map(Arc::new);
        }
        Ok(node.unwrap_or_else(|| Arc::new(self.world.fleet.node(machine, cx.clock().now()))))
    }

    /// Moves the pod's sandbox to `now`.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a kubelet knows of a pod; all of it is looked at once"
    )]
    fn advance(
        &self,
        key: &Key,
        pod: &Pod,
        node: &Node,
        lacking: Lacking,
        machine: Machine,
        state: &NodeState,
        now: Timestamp,
    ) -> Outcome {
        let (generation, choice) = self.world.choice();
        let mut inventory = self.world.inventory();
        let plan = {
            let holding = inventory.machine(machine);
            Plan::new(pod, &choice, |image| holding.has_image(image)).lacking(lacking)
        };
        let host = machine.address().to_string();
        let mut facts = Facts { host: &host, pending: None, now };
        let known = inventory.pod(key).is_some_and(|p| p.is_of(pod, state));
        let mut told = Vec::new();
        if !known {
            inventory.remove(key);
            let allocatable = self.world.fleet.allocatable(state);
            let holding = inventory.machine(machine);
            if let Some(Refusal { reason, message }) =
                admission::refuse(pod, node, holding, &allocatable, state)
            {
                let status = status::rejected(pod, &reason, &message, &facts);
                let event = Event::warning(reason, message).action("Admitting").instance(machine.name());
                return Outcome::Rejected(Box::new((status, event)));
            }
            let Some(placed) = place(&mut inventory, pod, machine, generation, state.boots, now) else {
                return Outcome::NoAddress;
            };
            inventory.insert(key.clone(), placed);
            let invalid =
                |why| Event::warning("InvalidBehavior", why).action("Simulating").instance(machine.name());
            told.extend(annotations::problems(pod).into_iter().map(invalid));
        }
        let Some((placed, holding)) = inventory.both(key) else { return Outcome::NoAddress };
        placed.settled = None;
        if placed.generation != generation {
            placed.generation = generation;
            placed.sandbox.replan(&plan, now);
        }
        let (mut news, mut pending) = (Vec::new(), None);
        if pod.metadata.deletion_timestamp.is_some() {
            // What happened before the order to stop came.
            let Advance { news: before, .. } = run(&plan, placed, now);
            news.extend(before);
            let grace = pod.metadata.deletion_grace_period_seconds.and_then(|s| u64::try_from(s).ok());
            placed.sandbox.delete(&plan, now, grace.map_or(plan.grace, Duration::from_secs), &mut news);
        } else if placed.sandbox.teardown.is_none() && placed.sandbox.eviction.is_some() {
            let Advance { news: before, .. } = run(&plan, placed, now);
            news.extend(before);
            placed.sandbox.evict(&plan, now, &mut news);
        } else if placed.sandbox.teardown.is_none() {
            let allocatable = self.world.fleet.allocatable(state);
            pending = resize::resize(&plan, placed, holding, &allocatable, now, &mut news);
        }
        let Advance { mut next, news: after } = run(&plan, placed, now);
        news.extend(after);
        if pending.is_some() {
            let again = crate::runtime::after(now, AGAIN);
            next = Some(next.map_or(again, |n| n.min(again)));
        }
        for item in &news {
            told.extend(events(&plan, &placed.sandbox, item));
            if let (What::Pulled(_) | What::Present, Some(c)) =
                (&item.what, plan.containers.get(item.container))
            {
                let run = placed.sandbox.containers.get(item.container).map_or(0, |r| r.restarts);
                holding.add_image(c.image, plan.act(item.container, run).size);
            }
        }
        facts.pending = pending.as_ref();
        let status = status::status(&plan, &placed.sandbox, &facts);
        let stopped = placed.sandbox.is_stopped();
        let soon = |made| next.is_some_and(|next| since(next, made) < RELIST);
        let unlisted = placed.sandbox.made.is_some_and(soon);
        Outcome::Moved(Box::new(Step { status, next, events: told, stopped, unlisted }))
    }

    /// How far the pod was brought, where it is still as it was told then and nothing is due: most often it comes back
    /// because of what its kubelet itself has just told.
    fn settled(&self, key: &Key, pod: &Pod, state: &NodeState, now: Timestamp) -> Option<Settled> {
        let (generation, _) = self.world.choice();
        let mut inventory = self.world.inventory();
        let placed = inventory.pod(key)?;
        let same = placed.is_of(pod, state) && placed.generation == generation;
        let settled = placed.settled.clone().filter(|_| same)?;
        let as_told = pod.metadata.resource_version.as_deref() == Some(&*settled.version);
        (as_told && settled.next.is_none_or(|next| now < next)).then_some(settled)
    }

    /// Whether something of the pod is still to be started, for which it must be known what is there.
    fn starts(&self, key: &Key, pod: &Pod, state: &NodeState) -> bool {
        if pod.metadata.deletion_timestamp.is_some() {
            return false;
        }
        let mut inventory = self.world.inventory();
        let Some(placed) = inventory.pod(key).filter(|p| p.is_of(pod, state)) else { return true };
        let init = pod.spec.as_ref().and_then(|s| s.init_containers.as_ref()).map_or(0, Vec::len);
        !placed.sandbox.all_run(init)
    }

    fn forget(&self, key: &Key) {
        self.world.inventory().remove(key);
    }
}

/// When something happens next to a pod. What becomes of its machine concerns it too.
fn again(next: Option<Timestamp>, state: &NodeState, now: Timestamp) -> Next {
    let next = [next, state.until].into_iter().flatten().min();
    next.map_or(Next::done(), |next| Next::after(since(next, now)))
}

fn run(plan: &Plan<'_>, placed: &mut Placed, now: Timestamp) -> Advance {
    let pod = plan.pod();
    placed.sandbox.advance(plan, now, |i| {
        let name = plan.containers.get(i).map_or("", |c| c.name);
        (restarts(pod, name), resize::asked(pod, name))
    })
}

fn place(
    inventory: &mut Inventory,
    pod: &Pod,
    machine: Machine,
    generation: u64,
    boots: u64,
    now: Timestamp,
) -> Option<Placed> {
    let own_address = pod.spec.as_ref().and_then(|s| s.host_network) != Some(true);
    let holding: &mut Holding = inventory.machine(machine);
    let address = if own_address { holding.take_address(machine)? } else { machine.address() };
    Some(Placed {
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        machine,
        sandbox: Sandbox::new(now, address),
        own_address,
        requests: requests(pod),
        ports: host_ports(pod),
        generation,
        boots,
        pending: None,
        settled: None,
    })
}

/// Restarts that a container in a new sandbox begins with: one more than before if it had run.
fn restarts(pod: &Pod, name: &str) -> i32 {
    let Some(status) = &pod.status else { return 0 };
    let all = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let Some(container) = all.into_iter().find(|c| c.name == name) else { return 0 };
    let ran = container.container_id.is_some();
    container.restart_count.saturating_add(i32::from(ran))
}

/// Sends what has changed of a status. The pod's version, where it is then as it was looked at but for the status told.
async fn tell(pod: &Pod, new: &PodStatus, cx: &Context<Kubelets>) -> Result<Option<String>> {
    let Some(patch) = status::patch(pod, new)? else { return Ok(pod.metadata.resource_version.clone()) };
    let told: Pod = cx.writer().patch_status(cx.key(), &Patch::Strategic(patch)).await?;
    Ok(nothing_else(pod, &told, new).then_some(told.metadata.resource_version).flatten())
}

/// Whether nobody else has written what a kubelet looks at: a deletion, say, that the patch came after.
fn nothing_else(pod: &Pod, told: &Pod, status: &PodStatus) -> bool {
    let mut meta = told.metadata.clone();
    meta.resource_version.clone_from(&pod.metadata.resource_version);
    meta == pod.metadata && told.spec == pod.spec && told.status.as_ref() == Some(status)
}

impl Operator for Kubelets {
    type Resource = Pod;
    type Owns = ();
    type Reads = (Node,);

    fn name() -> &'static str {
        "kubelet"
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
        let Some(machine) = self.world.fleet.find(node) else { return Ok(Next::done()) };
        let now = cx.clock().now();
        let state = self.world.state(machine, now);
        if state.lost {
            self.world.inventory().wait(cx.key());
            return Ok(state.until.map_or(Next::done(), |until| Next::after(since(until, now))));
        }
        let over =
            matches!(pod.status.as_ref().and_then(|s| s.phase.as_deref()), Some("Succeeded" | "Failed"));
        if over {
            self.forget(cx.key());
            if pod.metadata.deletion_timestamp.is_some() {
                return remove(pod, cx).await;
            }
            return Ok(Next::done());
        }
        if let Some(Settled { next, .. }) = self.settled(cx.key(), pod, &state, now) {
            return Ok(again(next, &state, now));
        }
        let lacking = match self.starts(cx.key(), pod, &state) {
            true => references::look(pod, cx.writer()).await?,
            false => Lacking::default(),
        };
        let its_node = self.node(pod, machine, cx).await?;
        let step = match self.advance(cx.key(), pod, &its_node, lacking, machine, &state, now) {
            Outcome::Moved(step) => step,
            Outcome::Rejected(rejected) => {
                let (status, event) = *rejected;
                tell(pod, &status, cx).await?;
                cx.event(event).await;
                return Ok(Next::done());
            }
            Outcome::NoAddress => {
                let text = format!("{node} has no pod address left");
                let event = Event::warning("FailedCreatePodSandBox", text).action("CreatePodSandBox");
                cx.event(event.instance(node)).await;
                return Ok(Next::after(AGAIN));
            }
        };
        let told = match step.unlisted && status::only_sandbox(pod, &step.status) {
            true => Ok(pod.metadata.resource_version.clone()),
            false => tell(pod, &step.status, cx).await,
        };
        for event in step.events {
            cx.event(event).await;
        }
        let version = told?;
        if step.stopped && pod.metadata.deletion_timestamp.is_some() {
            return remove(pod, cx).await;
        }
        if let Some(placed) = self.world.inventory().pod(cx.key()) {
            placed.settled = version.map(|version| Settled { version, next: step.next });
        }
        Ok(again(step.next, &state, now))
    }

    /// A pod that is being deleted is stopped step by step, like it was started.
    async fn finalize(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(pod, cx).await
    }

    async fn absent(&self, key: &Key, _cx: &Context<Self>) -> Result<Next> {
        self.forget(key);
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        if let Some(woken) = self.woken.lock().unwrap_or_else(PoisonError::into_inner).take() {
            watches.source(woken);
        }
    }
}

/// The kubelet's last word about a pod: it is stopped, the object may go.
async fn remove(pod: &Pod, cx: &Context<Kubelets>) -> Result<Next> {
    let preconditions = Some(Preconditions { uid: pod.metadata.uid.clone(), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default() }.grace_period(0);
    cx.writer().delete::<Pod>(cx.key(), &params).await?;
    Ok(Next::done())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Whether a kubelet that looked at `{status: {phase: Pending}}` and told `Running` saw all of what came of it.
    #[track_caller]
    fn check(came: Value, want: bool) {
        let pod = |v: Value| -> Pod { serde_json::from_value(v).unwrap() };
        let seen = pod(json!({"metadata": {"name": "a", "resourceVersion": "5"}, "spec": {"containers": []},
            "status": {"phase": "Pending"}}));
        let status = PodStatus { phase: Some("Running".to_owned()), ..PodStatus::default() };
        let mut told = json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"containers": []},
            "status": {"phase": "Running"}});
        json_patch::merge(&mut told, &came);
        assert_eq!(nothing_else(&seen, &pod(told), &status), want, "{came}");
    }

    #[test]
    fn what_came_between_is_not_passed_over() {
        check(json!({}), true);
        check(json!({"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}), false);
        check(json!({"metadata": {"labels": {"a": "b"}}}), false);
        check(
            json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}),
            false,
        );
        check(json!({"status": {"conditions": [{"type": "example.com/gate", "status": "True"}]}}), false);
    }
}
