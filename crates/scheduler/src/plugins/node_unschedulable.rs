//! NodeUnschedulable: a cordoned node takes only pods that tolerate that.

use k8s_openapi::api::core::v1::{Pod, Taint};

use super::taint_toleration::tolerates;
use crate::framework::Filter;
use crate::snapshot::NodeInfo;

/// The plugin.
pub struct NodeUnschedulable;

impl Filter for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn filter(&self, pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>> {
        let cordoned = node.node.spec.as_ref().and_then(|s| s.unschedulable).unwrap_or(false);
        let taint = Taint {
            key: "node.kubernetes.io/unschedulable".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        if cordoned && !tolerates(pod, &taint) {
            return Err(vec!["node(s) were unschedulable".to_owned()]);
        }
        Ok(())
    }
}
