//! Registers the machines as Nodes and keeps them alive: a Lease renewed with every heartbeat, a status now and then and
//! whenever it changes, as kubelets do.
//!
//! With every heartbeat, too, a machine that is short of something evicts one pod.
//!
//! A Node that somebody deletes stays deleted, as with a kubelet that is not restarted; a machine that reboots
//! registers again. Of a machine that is lost nothing is heard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Event, Key, Result, TaskContext};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::Resource;
use kube::api::Patch;
use serde_json::{Value, json};
use tracing::debug;

use crate::behavior::nodes::NodeState;
use crate::fleet::Machine;
use crate::pressure;
use crate::runtime::since;
use crate::world::World;

/// Where kubelets keep their leases.
const NAMESPACE: &str = "kube-node-lease";
/// A lease holds for as many heartbeats (kubelet's `nodeLeaseDurationSeconds` is 40 s).
const LEASE_BEATS: u32 = 4;
/// The status is told after as many (kubelet's `nodeStatusReportFrequency` is 5 min).
const REPORT_BEATS: u32 = 30;

/// What was told of a machine that has a behavior.
struct Told {
    uid: String,
    /// Without the moment of its next change.
    state: NodeState,
    reported: Timestamp,
}

/// Runs until the manager stops.
pub(crate) async fn keep(world: Arc<World>, cx: TaskContext) -> Result<()> {
    let mut told: BTreeMap<Machine, Told> = BTreeMap::new();
    for machine in world.fleet.machines() {
        let now = cx.clock().now();
        let uid = register(&world, machine, now, &cx).await?;
        told.insert(machine, Told { uid, state: NodeState::default(), reported: now });
    }
    let mut beat = cx.clock().now();
    let pods = cx.cache::<Pod>();
    loop {
        let now = cx.clock().now();
        let beats = now >= beat;
        let mut next = if beats { add(now, world.heartbeat) } else { beat };
        for (machine, told) in &mut told {
            let state = world.state(*machine, now);
            next = state.until.map_or(next, |until| next.min(until));
            if state.lost {
                continue;
            }
            if beats && let Some(resource) = pressure::relieve(&world, &pods, *machine, &state, now) {
                tell_shortage(*machine, resource, &cx).await;
            }
            if let Err(error) = tend(&world, *machine, told, state, beats, now, &cx).await {
                debug!(node = machine.name(), %error, "heartbeat failed");
            }
        }
        if beats {
            beat = add(now, world.heartbeat);
        }
        let now = cx.clock().now();
        tokio::select! {
            biased;
            () = cx.shutdown().cancelled() => return Ok(()),
            () = world.changed.notified() => {}
            () = tokio::time::sleep(since(next, now)) => {}
        }
    }
}

fn add(t: Timestamp, d: Duration) -> Timestamp {
    crate::runtime::after(t, d)
}

/// What one machine has to tell now.
async fn tend(
    world: &World,
    machine: Machine,
    told: &mut Told,
    state: NodeState,
    beats: bool,
    now: Timestamp,
    cx: &TaskContext,
) -> Result<()> {
    let state = NodeState { until: None, ..state };
    let rebooted = state.boots != told.state.boots;
    if rebooted {
        told.uid = register(world, machine, now, cx).await?;
    }
    if beats {
        renew(world, machine, &told.uid, now, cx).await?;
    }
    let new_images = beats && std::mem::take(&mut world.inventory().machine(machine).new_images);
    if state != told.state || new_images || since(now, told.reported) >= world.heartbeat * REPORT_BEATS {
        report(world, machine, &state, &told.state, now, cx).await?;
        if rebooted {
            tell_reboot(machine, cx).await;
        }
        (told.state, told.reported) = (state, now);
    }
    Ok(())
}

async fn register(world: &World, machine: Machine, now: Timestamp, cx: &TaskContext) -> Result<String> {
    let key = Key::cluster(machine.name());
    let node = match cx.writer().get::<Node>(&key).await? {
        Some(node) => node,
        None => cx.writer().create(&world.fleet.node(machine, now)).await?,
    };
    let born = node.metadata.creation_timestamp.as_ref().map_or(now, |t| t.0);
    world.born(machine, born);
    Ok(node.metadata.uid.unwrap_or_default())
}

async fn renew(world: &World, machine: Machine, uid: &str, now: Timestamp, cx: &TaskContext) -> Result<()> {
    let name = machine.name();
    let key = Key::namespaced(NAMESPACE, name.as_str());
    let renewed = json!({"spec": {"renewTime": MicroTime(now)}});
    match cx.writer().patch::<Lease, _>(&key, &Patch::Merge(renewed)).await {
        Ok(_) => return Ok(()),
        Err(e) if e.is_not_found() => {}
        Err(e) => return Err(e),
    }
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.clone(),
        uid: uid.to_owned(),
        ..OwnerReference::default()
    };
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(NAMESPACE.to_owned()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(name),
            lease_duration_seconds: i32::try_from((world.heartbeat * LEASE_BEATS).as_secs()).ok(),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    };
    cx.writer().create(&lease).await?;
    Ok(())
}

/// The machine's status as it is now; a Node that is gone is not made again.
async fn report(
    world: &World,
    machine: Machine,
    state: &NodeState,
    before: &NodeState,
    now: Timestamp,
    cx: &TaskContext,
) -> Result<()> {
    let key = Key::cluster(machine.name());
    let Some(node) = cx.writer().get::<Node>(&key).await? else { return Ok(()) };
    let stored = node.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let status = world.fleet.status(machine, state, stored, now);
    let mut conditions: Vec<Value> = Vec::new();
    for condition in status.conditions.iter().flatten() {
        conditions.push(serde_json::to_value(condition)?);
    }
    // What a behavior said before and no longer does.
    let told = |kind: &str| status.conditions.iter().flatten().any(|c| c.type_ == kind);
    for gone in before.conditions.iter().filter(|c| !told(&c.kind)) {
        conditions.push(json!({"type": gone.kind, "$patch": "delete"}));
    }
    let images = world.inventory().machine(machine).images();
    let mut patch = json!({"status": {
        "conditions": conditions,
        "capacity": status.capacity,
        "allocatable": status.allocatable,
        "nodeInfo": status.node_info,
        "images": images,
    }});
    // In one write with the number of devices, as kubelets too send annotations with the status.
    if let Some(annotations) = world.fleet.annotations(state) {
        patch["metadata"] = json!({"annotations": annotations});
    }
    let patch = Patch::Strategic(patch);
    match cx.writer().patch_status::<Node, _>(&key, &patch).await {
        Err(e) if !e.is_not_found() => return Err(e),
        _ => {}
    }
    let ready = |all: &[NodeCondition]| all.iter().find(|c| c.type_ == "Ready").map(|c| c.status.clone());
    let (was, is) = (ready(stored), ready(status.conditions.as_deref().unwrap_or_default()));
    if was != is {
        let what = if is.as_deref() == Some("True") { "NodeReady" } else { "NodeNotReady" };
        let text = format!("Node {} status is now: {what}", machine.name());
        let event = Event::normal(what, text).action("Reporting").instance(machine.name());
        cx.recorder().record(node.object_ref(&()), event).await;
    }
    Ok(())
}

async fn tell_shortage(machine: Machine, resource: &str, cx: &TaskContext) {
    if let Ok(Some(node)) = cx.writer().get::<Node>(&Key::cluster(machine.name())).await {
        let text = format!("Attempting to reclaim {resource}");
        let event =
            Event::warning("EvictionThresholdMet", text).action("Reclaiming").instance(machine.name());
        cx.recorder().record(node.object_ref(&()), event).await;
    }
}

async fn tell_reboot(machine: Machine, cx: &TaskContext) {
    if let Ok(Some(node)) = cx.writer().get::<Node>(&Key::cluster(machine.name())).await {
        let info = node.status.as_ref().and_then(|s| s.node_info.as_ref());
        let boot = info.map(|i| i.boot_id.clone()).unwrap_or_default();
        let text = format!("Node {} has been rebooted, boot id: {boot}", machine.name());
        let event = Event::warning("Rebooted", text).action("Reporting").instance(machine.name());
        cx.recorder().record(node.object_ref(&()), event).await;
    }
}
