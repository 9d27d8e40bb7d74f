//! VolumeRestrictions: claims for one pod only, and disks that only one node can mount for writing.

use k8s_openapi::api::core::v1::Volume;

use crate::framework::{Cycle, CycleState, Event, Filter, Plugin, PreFilter, PreFiltered, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct VolumeRestrictions;

/// Whether another pod uses a claim that is for one pod only.
#[derive(Clone, Copy, Debug)]
struct InUse(i64);

fn volumes(pod: &PodInfo) -> &[Volume] {
    pod.spec().and_then(|s| s.volumes.as_deref()).unwrap_or_default()
}

/// Whether two volumes are the same disk, and one of them is written.
fn conflict(a: &Volume, b: &Volume) -> bool {
    if let (Some(a), Some(b)) = (&a.gce_persistent_disk, &b.gce_persistent_disk) {
        let reads = a.read_only == Some(true) && b.read_only == Some(true);
        return a.pd_name == b.pd_name && !reads;
    }
    if let (Some(a), Some(b)) = (&a.aws_elastic_block_store, &b.aws_elastic_block_store) {
        return a.volume_id == b.volume_id;
    }
    if let (Some(a), Some(b)) = (&a.iscsi, &b.iscsi) {
        let reads = a.read_only == Some(true) && b.read_only == Some(true);
        return a.iqn == b.iqn && !reads;
    }
    if let (Some(a), Some(b)) = (&a.rbd, &b.rbd) {
        let reads = a.read_only == Some(true) && b.read_only == Some(true);
        return a.monitors.iter().any(|m| b.monitors.contains(m))
            && a.pool == b.pool
            && a.image == b.image
            && !reads;
    }
    false
}

fn is_disk(v: &Volume) -> bool {
    v.gce_persistent_disk.is_some()
        || v.aws_elastic_block_store.is_some()
        || v.iscsi.is_some()
        || v.rbd.is_some()
}

/// The pod's claims that are for one pod only.
fn exclusive<'p>(snapshot: &Snapshot, pod: &'p PodInfo) -> Vec<&'p String> {
    let mode = |name: &&String| {
        let claim = snapshot.objects.claim(pod.namespace(), name);
        let modes = claim.and_then(|c| c.spec.as_ref()?.access_modes.as_ref());
        modes.is_some_and(|m| m.iter().any(|m| m == "ReadWriteOncePod"))
    };
    pod.claims.iter().filter(mode).collect()
}

/// Whether a pod uses one of these claims.
fn uses(pod: &PodInfo, other: &PodInfo, claims: &[&String]) -> bool {
    other.namespace() == pod.namespace() && other.claims.iter().any(|c| claims.contains(&c))
}

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &'static str {
        "VolumeRestrictions"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::AssignedPodDeleted(gone) => {
                let claim =
                    gone.namespace() == pod.namespace() && gone.claims.iter().any(|c| pod.claims.contains(c));
                claim || volumes(gone).iter().any(|g| volumes(pod).iter().any(|v| conflict(v, g)))
            }
            Event::Claim(c) => c.metadata.namespace.as_deref() == Some(pod.namespace()),
            _ => event.node(|_| false).is_some(),
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }
}

impl PreFilter for VolumeRestrictions {
    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        let disks = volumes(pod).iter().any(is_disk);
        let exclusive = exclusive(cx.snapshot, pod);
        if !disks && exclusive.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        let placed = |p: &&std::sync::Arc<PodInfo>| p.node().is_some() && p.uid != pod.uid;
        let n = cx.snapshot.pods().filter(placed).filter(|p| uses(pod, p, &exclusive)).count();
        state.write(InUse(i64::try_from(n).unwrap_or(i64::MAX)));
        Ok(PreFiltered::Any)
    }

    fn add_pod(&self, cx: &Cycle<'_>, state: &mut CycleState, pod: &PodInfo, added: &PodInfo, _: &NodeInfo) {
        let hit = uses(pod, added, &exclusive(cx.snapshot, pod));
        if let Some(InUse(n)) = state.change::<InUse>() {
            *n += i64::from(hit);
        }
    }

    fn remove_pod(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        removed: &PodInfo,
        _: &NodeInfo,
    ) {
        let hit = uses(pod, removed, &exclusive(cx.snapshot, pod));
        if let Some(InUse(n)) = state.change::<InUse>() {
            *n -= i64::from(hit);
        }
    }
}

impl Filter for VolumeRestrictions {
    fn filter(
        &self,
        _: &Cycle<'_>,
        state: &CycleState,
        pod: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), Status> {
        let disks: Vec<&Volume> = volumes(pod).iter().filter(|v| is_disk(v)).collect();
        let there = || node.pods.iter().flat_map(|p| volumes(p));
        if disks.iter().any(|d| there().any(|t| conflict(d, t))) {
            return Err(Status::unschedulable("node(s) had no available disk"));
        }
        if state.read::<InUse>().is_some_and(|n| n.0 > 0) {
            return Err(Status::unschedulable(
                "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            ));
        }
        Ok(())
    }
}
