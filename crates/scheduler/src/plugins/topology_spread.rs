//! PodTopologySpread, as far as its system defaults go: the pods of one controller spread over the hosts.
//!
//! Constraints that pods name themselves are not looked at yet.

use k8s_openapi::api::core::v1::Pod;

use crate::framework::Score;
use crate::snapshot::{NodeInfo, controller};

/// The plugin.
pub struct PodTopologySpread;

impl Score for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn weight(&self) -> i64 {
        2
    }

    fn score(&self, pod: &Pod, node: &NodeInfo) -> i64 {
        let siblings = controller(pod).map_or(0, |uid| node.controllers.get(uid).copied().unwrap_or(0));
        // Halves with each sibling, so that it tells many from more.
        100 / (siblings + 1)
    }
}
