//! NodeUnschedulable: a cordoned node takes only pods that tolerate that.

use k8s_openapi::api::core::v1::Taint;

use super::taint_toleration::tolerates;
use crate::framework::{Cycle, CycleState, Event, Filter, Plugin, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct NodeUnschedulable;

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn helps(&self, event: &Event, _: &PodInfo, _: &Snapshot) -> bool {
        let open = |n: &k8s_openapi::api::core::v1::Node| {
            !n.spec.as_ref().and_then(|s| s.unschedulable).unwrap_or(false)
        };
        match event {
            Event::PodUpdated { old, new } => old.tolerations() != new.tolerations(),
            _ => event.node(|c| c.taints).is_some_and(|n| open(n)),
        }
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }
}

impl Filter for NodeUnschedulable {
    fn filter(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        if !node.node.spec.as_ref().and_then(|s| s.unschedulable).unwrap_or(false) {
            return Ok(());
        }
        let taint = Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        if tolerates(pod.tolerations(), &taint) {
            return Ok(());
        }
        Err(Status::unresolvable("node(s) were unschedulable"))
    }
}
