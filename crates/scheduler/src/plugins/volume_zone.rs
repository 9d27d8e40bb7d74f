//! VolumeZone: a pod goes to the zone that its volumes are in, as their labels say.

use super::volumes::{self, Claims};
use crate::framework::{Cycle, CycleState, Event, Filter, Plugin, PreFilter, PreFiltered, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// Labels that place a volume, the older ones too.
const LABELS: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// The plugin.
#[derive(Debug)]
pub struct VolumeZone;

/// Labels that a node must have, with the values that do.
#[derive(Clone, Debug)]
struct Zones(Vec<(&'static str, Vec<String>)>);

impl Plugin for VolumeZone {
    fn name(&self) -> &'static str {
        "VolumeZone"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::Claim(c) => c.metadata.namespace.as_deref() == Some(pod.namespace()),
            Event::Volume | Event::StorageClass => true,
            _ => event.node(|c| c.labels).is_some(),
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }
}

impl PreFilter for VolumeZone {
    fn pre_filter(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        if pod.claims.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        let Claims { bound, .. } = volumes::claims(cx.snapshot, pod).map_err(Status::unresolvable)?;
        let mut zones = Vec::new();
        for volume in bound.iter().filter_map(|(_, v)| v.as_ref()) {
            for label in LABELS {
                if let Some(value) = volume.metadata.labels.as_ref().and_then(|l| l.get(label)) {
                    // A volume in several zones: `a__b`.
                    zones.push((label, value.split("__").map(str::to_owned).collect()));
                }
            }
        }
        if zones.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        state.write(Zones(zones));
        Ok(PreFiltered::Any)
    }
}

impl Filter for VolumeZone {
    fn filter(&self, _: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        let Some(Zones(zones)) = state.read::<Zones>() else { return Ok(()) };
        // A node without any of the labels is in a cluster that doesn't use them.
        if LABELS.iter().all(|l| node.label(l).is_none()) {
            return Ok(());
        }
        let there = zones.iter().all(|(label, does)| {
            let other = match *label {
                "failure-domain.beta.kubernetes.io/zone" => "topology.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/region" => "topology.kubernetes.io/region",
                l => l,
            };
            node.label(label).or_else(|| node.label(other)).is_some_and(|v| does.iter().any(|d| d == v))
        });
        if there { Ok(()) } else { Err(Status::unresolvable("node(s) had no available volume zone")) }
    }
}
