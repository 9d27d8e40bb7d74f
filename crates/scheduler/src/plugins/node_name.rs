//! NodeName: a pod that names its node goes there or nowhere.

use crate::framework::{Cycle, CycleState, Event, Filter, Plugin, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct NodeName;

impl Plugin for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        event.node(|_| false).is_some_and(|n| n.metadata.name.as_deref() == pod.node())
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }
}

impl Filter for NodeName {
    fn filter(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        match pod.node() {
            Some(name) if name != &*node.name => {
                Err(Status::unresolvable("node(s) didn't match the requested node name"))
            }
            _ => Ok(()),
        }
    }
}
