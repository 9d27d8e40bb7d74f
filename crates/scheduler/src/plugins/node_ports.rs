//! NodePorts: two pods can't have one port of a host.

use crate::framework::{Cycle, CycleState, Event, Filter, Plugin, PreFilter, PreFiltered, Status};
use crate::snapshot::{HostPort, NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct NodePorts;

fn clash(a: &HostPort, b: &HostPort) -> bool {
    let any = |address: &str| address == "0.0.0.0";
    a.1 == b.1 && a.2 == b.2 && (a.0 == b.0 || any(&a.0) || any(&b.0))
}

impl Plugin for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::AssignedPodDeleted(gone) => {
                gone.ports.iter().any(|g| pod.ports.iter().any(|p| clash(p, g)))
            }
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

impl PreFilter for NodePorts {
    fn pre_filter(&self, _: &Cycle<'_>, _: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        Ok(if pod.ports.is_empty() { PreFiltered::Skip } else { PreFiltered::Any })
    }
}

impl Filter for NodePorts {
    fn filter(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        if pod.ports.iter().any(|w| node.ports.keys().any(|t| clash(w, t))) {
            return Err(Status::unschedulable("node(s) didn't have free ports for the requested pod ports"));
        }
        Ok(())
    }
}
