//! PrioritySort: more important pods go first, of equally important ones who came first.

use crate::framework::{Plugin, QueueSort};
use crate::snapshot::PodInfo;

/// The plugin.
#[derive(Debug)]
pub struct PrioritySort;

impl Plugin for PrioritySort {
    fn name(&self) -> &'static str {
        "PrioritySort"
    }

    fn queue_sort(&self) -> Option<&dyn QueueSort> {
        Some(self)
    }
}

impl QueueSort for PrioritySort {
    fn rank(&self, pod: &PodInfo) -> i64 {
        i64::from(pod.priority)
    }
}
