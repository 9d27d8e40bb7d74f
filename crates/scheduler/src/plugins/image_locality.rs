//! ImageLocality: prefers nodes that have the pod's images already, large ones above all.
//!
//! An image counts by its size, scaled by the share of nodes that have it, so that pods don't heap up on the one node
//! that was first.

use std::sync::Arc;

use crate::framework::{Cycle, CycleState, MAX_SCORE, Opinion, Plugin, PreScore, Score, Status};
use crate::snapshot::{NodeInfo, PodInfo};

const MIB: i64 = 1024 * 1024;
/// Less is not worth a preference.
const MIN: i64 = 23 * MIB;
/// More than this for each container makes no difference.
const MAX_PER_CONTAINER: i64 = 1000 * MIB;

/// The plugin.
#[derive(Debug)]
pub struct ImageLocality;

/// The names under which nodes report the pod's images.
#[derive(Clone, Debug)]
struct Images {
    /// With the number of nodes that have each.
    names: Vec<(String, i64)>,
    containers: i64,
}

/// As nodes report it: with a tag.
fn normalized(name: &str) -> String {
    let tag = name.rfind(':').is_some_and(|colon| name.rfind('/').is_none_or(|slash| colon > slash));
    if tag { name.to_owned() } else { format!("{name}:latest") }
}

impl Plugin for ImageLocality {
    fn name(&self) -> &'static str {
        "ImageLocality"
    }

    fn pre_score(&self) -> Option<&dyn PreScore> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn Score> {
        Some(self)
    }
}

impl PreScore for ImageLocality {
    fn pre_score(
        &self,
        cx: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &[Arc<NodeInfo>],
    ) -> Result<Opinion, Status> {
        let Some(spec) = pod.spec() else { return Ok(Opinion::None) };
        let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        let volumes = spec.volumes.iter().flatten().filter_map(|v| v.image.as_ref()?.reference.as_deref());
        let wanted: Vec<&str> =
            containers.map(|c| c.image.as_deref().unwrap_or_default()).chain(volumes).collect();
        let names: Vec<(String, i64)> = wanted
            .iter()
            .filter(|i| !i.is_empty())
            .map(|i| normalized(i))
            .map(|i| (cx.snapshot.image_nodes(&i), i))
            .filter(|(nodes, _)| *nodes > 0)
            .map(|(nodes, i)| (i, i64::try_from(nodes).unwrap_or(i64::MAX)))
            .collect();
        if names.is_empty() {
            return Ok(Opinion::None);
        }
        state.write(Images { names, containers: i64::try_from(wanted.len()).unwrap_or(1) });
        Ok(Opinion::Some)
    }
}

impl Score for ImageLocality {
    fn score(&self, cx: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> i64 {
        let Some(images) = state.read::<Images>() else { return 0 };
        let nodes = cx.snapshot.len().max(1) as f64;
        let sum: i64 = images
            .names
            .iter()
            .filter_map(|(name, on)| Some((*node.images.get(name)? as f64 * (*on as f64 / nodes)) as i64))
            .sum();
        let most = MAX_PER_CONTAINER * images.containers;
        MAX_SCORE * (sum.clamp(MIN, most) - MIN) / (most - MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn names_without_a_tag_get_one() {
        for (name, want) in [
            ("nginx", "nginx:latest"),
            ("nginx:1", "nginx:1"),
            ("host:5000/nginx", "host:5000/nginx:latest"),
            ("host:5000/nginx:1", "host:5000/nginx:1"),
            ("nginx@sha256:ab", "nginx@sha256:ab"),
        ] {
            assert_eq!(normalized(name), want);
        }
    }
}
