//! NodeResourcesBalancedAllocation: prefers nodes whose resources are used alike.

use std::sync::Arc;

use super::node_resources::{Weighed, cpu_and_memory, usage};
use crate::framework::{Cycle, CycleState, MAX_SCORE, Opinion, Plugin, PreScore, Score, Status};
use crate::snapshot::{NodeInfo, PodInfo};

/// The plugin.
#[derive(Clone, Debug)]
pub struct BalancedAllocation {
    /// The resources to balance. Their weights don't matter.
    pub resources: Vec<Weighed>,
}

impl Default for BalancedAllocation {
    fn default() -> Self {
        Self { resources: cpu_and_memory() }
    }
}

impl Plugin for BalancedAllocation {
    fn name(&self) -> &'static str {
        "NodeResourcesBalancedAllocation"
    }

    fn pre_score(&self) -> Option<&dyn PreScore> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn Score> {
        Some(self)
    }
}

impl PreScore for BalancedAllocation {
    fn pre_score(
        &self,
        _: &Cycle<'_>,
        _: &mut CycleState,
        pod: &PodInfo,
        _: &[Arc<NodeInfo>],
    ) -> Result<Opinion, Status> {
        // Pods that ask for nothing would all go to the node that is balanced best.
        let asks = self.resources.iter().any(|r| pod.requests.get(&r.name) > 0);
        Ok(if asks { Opinion::Some } else { Opinion::None })
    }
}

impl Score for BalancedAllocation {
    fn score(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let fractions = self
            .resources
            .iter()
            .filter_map(|r| usage(pod, node, &r.name, true))
            .map(|(used, has)| (used as f64 / has as f64).min(1.0));
        let (mut n, mut sum, mut squares) = (0.0_f64, 0.0_f64, 0.0_f64);
        for f in fractions {
            n += 1.0;
            sum += f;
            squares += f * f;
        }
        let deviation = if n < 2.0 { 0.0 } else { (squares / n - (sum / n).powi(2)).max(0.0).sqrt() };
        ((1.0 - deviation) * MAX_SCORE as f64) as i64
    }
}
