//! NodeVolumeLimits: a node takes no more volumes of a storage driver than its CSINode says it can.

use std::collections::{BTreeMap, BTreeSet};

use super::volumes::class_of;
use crate::framework::{Cycle, CycleState, Event, Filter, Plugin, PreFilter, PreFiltered, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct NodeVolumeLimits;

type ByDriver = BTreeMap<String, BTreeSet<String>>;

/// The volumes of a pod, by driver. A claim without a volume counts as a volume of its own.
fn volumes(snapshot: &Snapshot, pod: &PodInfo, into: &mut ByDriver) {
    for name in &pod.claims {
        let Some(claim) = snapshot.objects.claim(pod.namespace(), name) else { continue };
        let volume = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref()).unwrap_or_default();
        match snapshot.objects.volumes.get(volume).and_then(|v| v.spec.as_ref()?.csi.as_ref()) {
            Some(csi) => drop(into.entry(csi.driver.clone()).or_default().insert(csi.volume_handle.clone())),
            None if volume.is_empty() => {
                if let Some(class) = snapshot.objects.classes.get(class_of(claim)) {
                    let own = format!("{}/{name}", pod.namespace());
                    into.entry(class.provisioner.clone()).or_default().insert(own);
                }
            }
            None => {}
        }
    }
}

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> &'static str {
        "NodeVolumeLimits"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::AssignedPodDeleted(gone) => !gone.claims.is_empty(),
            Event::StorageNode | Event::Volume => true,
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

impl PreFilter for NodeVolumeLimits {
    fn pre_filter(&self, _: &Cycle<'_>, _: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        Ok(if pod.claims.is_empty() { PreFiltered::Skip } else { PreFiltered::Any })
    }
}

impl Filter for NodeVolumeLimits {
    fn filter(&self, cx: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        let Some(storage) = cx.snapshot.objects.storage_nodes.get(&*node.name) else { return Ok(()) };
        let limits: Vec<(&str, i32)> = storage
            .spec
            .drivers
            .iter()
            .filter_map(|d| Some((d.name.as_str(), d.allocatable.as_ref()?.count?)))
            .collect();
        if limits.is_empty() {
            return Ok(());
        }
        let (mut new, mut all) = (ByDriver::new(), ByDriver::new());
        volumes(cx.snapshot, pod, &mut new);
        node.pods.iter().for_each(|p| volumes(cx.snapshot, p, &mut all));
        for (driver, limit) in limits {
            let Some(new) = new.get(driver) else { continue };
            let there = all.get(driver);
            let more = new.iter().filter(|v| there.is_none_or(|t| !t.contains(*v))).count();
            let total = more + there.map_or(0, BTreeSet::len);
            if more > 0 && i64::try_from(total).unwrap_or(i64::MAX) > i64::from(limit) {
                return Err(Status::unschedulable("node(s) exceed max volume count"));
            }
        }
        Ok(())
    }
}
