//! Registers the machines as Nodes and keeps them alive: a Lease renewed every ten seconds, a status every five
//! minutes, as kubelets do.
//!
//! A Node that somebody deletes stays deleted, as with a kubelet that is not restarted.

use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Key, Result, TaskContext};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference};
use kube::api::Patch;
use serde_json::json;

use crate::fleet::{Fleet, Machine};

/// Where kubelets keep their leases.
const NAMESPACE: &str = "kube-node-lease";
/// Kubelet's default `nodeLeaseDurationSeconds`.
const LEASE_SECONDS: i32 = 40;
/// A quarter of the lease, as kubelets renew it.
const RENEW: Duration = Duration::from_secs(10);
/// Kubelet's default `nodeStatusReportFrequency`, in renewals.
const STATUS_EVERY: u64 = 30;

/// Runs until the manager stops.
pub(crate) async fn keep(fleet: Fleet, cx: TaskContext) -> Result<()> {
    let since = cx.clock().now();
    let mut machines: Vec<(Machine, Node)> = Vec::new();
    for machine in fleet.machines() {
        machines.push((machine, register(machine, since, &cx).await?));
    }
    let mut beat: u64 = 0;
    loop {
        let now = cx.clock().now();
        for (machine, node) in &machines {
            renew(node, now, &cx).await?;
            if beat > 0 && beat.is_multiple_of(STATUS_EVERY) {
                report(*machine, since, now, &cx).await?;
            }
        }
        tokio::select! {
            biased;
            () = cx.shutdown().cancelled() => return Ok(()),
            () = tokio::time::sleep(RENEW) => beat += 1,
        }
    }
}

async fn register(machine: Machine, now: Timestamp, cx: &TaskContext) -> Result<Node> {
    let key = Key::cluster(machine.name());
    match cx.writer().get::<Node>(&key).await? {
        Some(node) => Ok(node),
        None => cx.writer().create(&machine.node(now)).await,
    }
}

async fn renew(node: &Node, now: Timestamp, cx: &TaskContext) -> Result<()> {
    let name = node.metadata.name.clone().unwrap_or_default();
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
        uid: node.metadata.uid.clone().unwrap_or_default(),
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
            lease_duration_seconds: Some(LEASE_SECONDS),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    };
    cx.writer().create(&lease).await?;
    Ok(())
}

/// The heartbeat in the Node's status; a Node that is gone is not made again.
async fn report(machine: Machine, since: Timestamp, now: Timestamp, cx: &TaskContext) -> Result<()> {
    let conditions = machine.status(since, now).conditions;
    let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
    match cx.writer().patch_status::<Node, _>(&Key::cluster(machine.name()), &patch).await {
        Err(e) if !e.is_not_found() => Err(e),
        _ => Ok(()),
    }
}
