//! SchedulingGates: a pod with gates is not looked at before they are gone (KEP-3521).

use crate::framework::{Event, Plugin, PreEnqueue, Status};
use crate::snapshot::{PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct SchedulingGates;

fn gates(pod: &PodInfo) -> Vec<&str> {
    pod.spec()
        .and_then(|s| s.scheduling_gates.as_deref())
        .unwrap_or_default()
        .iter()
        .map(|g| &*g.name)
        .collect()
}

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn helps(&self, event: &Event, _: &PodInfo, _: &Snapshot) -> bool {
        matches!(event, Event::PodUpdated { new, .. } if gates(new).is_empty())
    }

    fn pre_enqueue(&self) -> Option<&dyn PreEnqueue> {
        Some(self)
    }
}

impl PreEnqueue for SchedulingGates {
    fn pre_enqueue(&self, pod: &PodInfo) -> Result<(), Status> {
        match gates(pod)[..] {
            [] => Ok(()),
            ref gates => {
                Err(Status::unresolvable(format!("waiting for scheduling gates: [{}]", gates.join(" "))))
            }
        }
    }
}
