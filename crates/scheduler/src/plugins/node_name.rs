//! NodeName: a pod that names its node goes there or nowhere.

use k8s_openapi::api::core::v1::Pod;

use crate::framework::Filter;
use crate::snapshot::NodeInfo;

/// The plugin.
pub struct NodeName;

impl Filter for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn filter(&self, pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>> {
        match pod.spec.as_ref().and_then(|s| s.node_name.as_deref()) {
            Some(name) if !name.is_empty() && name != node.name() => {
                Err(vec!["node(s) didn't match the requested node name".to_owned()])
            }
            _ => Ok(()),
        }
    }
}
