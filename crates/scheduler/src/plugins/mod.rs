//! The plugins, one file each, under the reference's names and with its words.

mod node_affinity;
mod node_name;
mod node_ports;
mod node_ready;
mod node_resources;
mod node_unschedulable;
mod taint_toleration;
mod topology_spread;

use crate::framework::Framework;

pub use node_affinity::NodeAffinity;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_ready::NodeReady;
pub use node_resources::{BalancedAllocation, NodeResourcesFit};
pub use node_unschedulable::NodeUnschedulable;
pub use taint_toleration::TaintToleration;
pub use topology_spread::PodTopologySpread;

/// The default profile, in the reference's order.
pub fn default_profile() -> Framework {
    Framework::new(
        vec![
            Box::new(NodeUnschedulable),
            Box::new(NodeName),
            Box::new(NodeReady),
            Box::new(TaintToleration),
            Box::new(NodeAffinity),
            Box::new(NodePorts),
            Box::new(NodeResourcesFit),
        ],
        vec![
            Box::new(TaintToleration),
            Box::new(NodeAffinity),
            Box::new(NodeResourcesFit),
            Box::new(PodTopologySpread),
            Box::new(BalancedAllocation),
        ],
    )
}

#[cfg(test)]
mod tests;
