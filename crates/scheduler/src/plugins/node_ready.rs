//! NodeReady: a node that does not report Ready takes no pods.
//!
//! The reference leaves this to the taints that its node lifecycle controller sets; a node that says itself that it
//! is not ready, or says nothing yet, is no place for a pod either way.

use k8s_openapi::api::core::v1::Pod;

use crate::framework::Filter;
use crate::snapshot::NodeInfo;

/// The plugin.
pub struct NodeReady;

impl Filter for NodeReady {
    fn name(&self) -> &'static str {
        "NodeReady"
    }

    fn filter(&self, _pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>> {
        let conditions = node.node.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
        if conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True") {
            Ok(())
        } else {
            Err(vec!["node(s) were not ready".to_owned()])
        }
    }
}
