//! The plugins, one file each, under the reference's names and with its words.

mod accelerators;
mod balanced_allocation;
mod default_binder;
mod default_preemption;
pub mod devices;
mod domains;
mod gang;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources;
mod node_unschedulable;
mod node_volume_limits;
mod priority_sort;
mod scheduling_gates;
mod taint_toleration;
#[cfg(test)]
mod tests;
mod topology_spread;
mod volume_binding;
mod volume_restrictions;
mod volume_zone;
mod volumes;

pub use accelerators::Accelerators;
pub use balanced_allocation::BalancedAllocation;
pub use default_binder::DefaultBinder;
pub use default_preemption::DefaultPreemption;
pub use gang::{GROUP, Gang, MINIMUM};
pub use image_locality::ImageLocality;
pub use inter_pod_affinity::InterPodAffinity;
pub use node_affinity::NodeAffinity;
pub use node_name::NodeName;
pub use node_ports::NodePorts;
pub use node_resources::{NodeResourcesFit, Strategy, Weighed, cpu_and_memory};
pub use node_unschedulable::NodeUnschedulable;
pub use node_volume_limits::NodeVolumeLimits;
pub use priority_sort::PrioritySort;
pub use scheduling_gates::SchedulingGates;
pub use taint_toleration::{TaintToleration, tolerates, untolerated};
pub use topology_spread::PodTopologySpread;
pub(crate) use volume_binding::Decisions;
pub use volume_binding::VolumeBinding;
pub use volume_restrictions::VolumeRestrictions;
pub use volume_zone::VolumeZone;
