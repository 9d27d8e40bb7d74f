//! The loop around the framework: takes pending pods one at a time, and binds each or says why it can't.
//!
//! Between a binding and its echo in the cache the pod counts as assumed to be on its node, so that two pods never get
//! the same room. Everything else is read anew for each pod.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use homeostat_sdk::{Change, Context, Event, Key, Next, Operator, Result, Settings, View, Watches};
use k8s_openapi::api::core::v1::{Binding, Node, ObjectReference, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Status};
use kube::api::Patch;
use serde_json::json;

use crate::framework::{Framework, Unschedulable};
use crate::plugins::default_profile;
use crate::snapshot::{Snapshot, controller, is_over};

/// Pods that name no scheduler are ours, and those that name this.
const NAME: &str = "default-scheduler";
/// A pod that fits nowhere is tried again after this long even if nothing has changed (the reference's
/// `podMaxInUnschedulablePodsDuration`).
const AGAIN: Duration = Duration::from_secs(300);

/// The scheduler.
pub(crate) struct Scheduler {
    framework: Framework,
    assumed: Mutex<BTreeMap<Key, Assumed>>,
}

struct Assumed {
    uid: String,
    node: String,
    controller: Option<String>,
    spec: PodSpec,
}

impl Scheduler {
    pub(crate) fn new() -> Self {
        Self { framework: default_profile(), assumed: Mutex::default() }
    }

    /// Nodes and pods as they are and as they soon will be; forgets what the cache has caught up with.
    fn snapshot(&self, cx: &Context<Self>) -> Snapshot {
        let nodes = cx.cache::<Node, _>().list();
        let pods = cx.resources().list();
        let mut snapshot = Snapshot::new(nodes.iter().map(|n| &**n), pods.iter().map(|p| &**p));
        let mut assumed = self.assumed.lock().unwrap_or_else(PoisonError::into_inner);
        assumed.retain(|key, a| {
            let pod = cx.resources().get(key);
            pod.is_some_and(|p| p.metadata.uid.as_deref() == Some(&*a.uid) && node_of(&p).is_none())
        });
        for a in assumed.values() {
            snapshot.assume(&a.spec, a.controller.as_deref(), &a.node);
        }
        snapshot
    }

    fn assume(&self, key: &Key, pod: &Pod, node: &str) {
        let assumed = Assumed {
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            node: node.to_owned(),
            controller: controller(pod).map(str::to_owned),
            spec: pod.spec.clone().unwrap_or_default(),
        };
        self.assumed.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), assumed);
    }

    fn forget(&self, key: &Key) {
        self.assumed.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn is_assumed(&self, key: &Key, pod: &Pod) -> bool {
        let assumed = self.assumed.lock().unwrap_or_else(PoisonError::into_inner);
        assumed.get(key).is_some_and(|a| pod.metadata.uid.as_deref() == Some(&*a.uid))
    }
}

/// The node that a pod is bound to.
fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|n| !n.is_empty())
}

/// Whether a pod waits for this scheduler.
fn is_pending(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let ours = matches!(spec.scheduler_name.as_deref(), None | Some("" | NAME));
    let gated = spec.scheduling_gates.as_ref().is_some_and(|g| !g.is_empty());
    ours && !gated && node_of(pod).is_none() && pod.metadata.deletion_timestamp.is_none() && !is_over(pod)
}

fn pending(view: &View<Scheduler>) -> Vec<Key> {
    view.resources().list().iter().filter(|p| is_pending(p)).map(|p| Key::of(&**p)).collect()
}

impl Operator for Scheduler {
    type Resource = Pod;
    type Owns = ();
    type Reads = (Node,);

    fn name() -> &'static str {
        NAME
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        if !is_pending(pod) || self.is_assumed(cx.key(), pod) {
            return Ok(Next::done());
        }
        let snapshot = self.snapshot(cx);
        match self.framework.schedule(pod, &snapshot) {
            Ok(node) => {
                self.assume(cx.key(), pod, node);
                if let Err(e) = bind(pod, node, cx).await {
                    self.forget(cx.key());
                    // Bound or deleted by somebody else meanwhile: the cache will tell.
                    return if e.is_not_found() || e.is_conflict() { Ok(Next::done()) } else { Err(e) };
                }
                Ok(Next::done())
            }
            Err(why) => {
                explain(pod, &why, cx).await?;
                Ok(Next::after(AGAIN))
            }
        }
    }

    async fn absent(&self, key: &Key, _cx: &Context<Self>) -> Result<Next> {
        self.forget(key);
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // A node that may now take what it did not: not each of its heartbeats.
        watches.changes::<Node, _>(|change, view| if matters(change) { pending(view) } else { Vec::new() });
        // A pod that makes room.
        watches.changes::<Pod, _>(|change, view| {
            let holds = |p: &Pod| node_of(p).is_some() && !is_over(p);
            let (before, after) = (change.old.as_ref(), change.new.as_ref());
            let freed = before.is_some_and(|p| holds(p)) && !after.is_some_and(|p| holds(p));
            if freed { pending(view) } else { Vec::new() }
        });
    }

    fn settings(&self) -> Settings {
        // One at a time: each decision needs the one before it.
        Settings { concurrency: 1, ..Settings::default() }
    }
}

fn matters(change: &Change<Node>) -> bool {
    change.differs(|n| {
        let conditions = n.status.as_ref().and_then(|s| s.conditions.clone()).unwrap_or_default();
        let ready: Vec<(String, String)> = conditions.into_iter().map(|c| (c.type_, c.status)).collect();
        let allocatable = n.status.as_ref().and_then(|s| s.allocatable.clone());
        (n.spec.clone(), n.metadata.labels.clone(), allocatable, ready)
    })
}

async fn bind(pod: &Pod, node: &str, cx: &Context<Scheduler>) -> Result<()> {
    let binding = Binding {
        metadata: ObjectMeta {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let _: Status = cx.writer().create_subresource::<Pod, _, _>(cx.key(), "binding", &binding).await?;
    let note = format!("Successfully assigned {} to {node}", cx.key());
    cx.event(Event::normal("Scheduled", note).action("Binding")).await;
    Ok(())
}

/// Says in the pod's condition, and in an event, why it has no node.
async fn explain(pod: &Pod, why: &Unschedulable, cx: &Context<Scheduler>) -> Result<()> {
    let text = why.to_string();
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let told = conditions.iter().find(|c| c.type_ == "PodScheduled");
    if told.is_some_and(|c| c.status == "False" && c.message.as_deref() == Some(&text)) {
        return Ok(());
    }
    // The transition is the first time; later words about it are not.
    let since = told.filter(|c| c.status == "False").and_then(|c| c.last_transition_time.clone());
    let since = json!(since).as_str().map_or_else(|| cx.clock().now_seconds(), str::to_owned);
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text,
        "lastProbeTime": null, "lastTransitionTime": since});
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    cx.writer().patch_status::<Pod, _>(cx.key(), &patch).await?;
    cx.event(Event::warning("FailedScheduling", text).action("Scheduling")).await;
    Ok(())
}
