//! NodePorts: two pods can't have one port of a host.

use k8s_openapi::api::core::v1::Pod;

use crate::framework::Filter;
use crate::snapshot::{HostPort, NodeInfo, host_ports};

/// The plugin.
pub struct NodePorts;

impl Filter for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn filter(&self, pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>> {
        let wanted = pod.spec.as_ref().map(host_ports).unwrap_or_default();
        if wanted.iter().any(|w| node.ports.iter().any(|t| clash(w, t))) {
            return Err(vec!["node(s) didn't have free ports for the requested pod ports".to_owned()]);
        }
        Ok(())
    }
}

fn clash(a: &HostPort, b: &HostPort) -> bool {
    let any = |address: &str| address == "0.0.0.0";
    a.1 == b.1 && a.2 == b.2 && (a.0 == b.0 || any(&a.0) || any(&b.0))
}
