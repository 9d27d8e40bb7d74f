//! How long kubelets may keep what they read, told on each node: the more nodes there are, the longer.
//!
//! Kubelets read it from the annotation `node.alpha.kubernetes.io/ttl` for secrets and ConfigMaps. The ranges overlap, so
//! that a cluster whose size wavers doesn't write all its nodes again and again. A change reaches a node with the node's
//! next own change. Source: kube-controller-manager's `pkg/controller/ttl`.

use std::sync::{Mutex, PoisonError};

use homeostat_sdk::{Context, Next, Operator, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use serde_json::json;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// From how many nodes on, up to how many, and the seconds.
const STEPS: [(usize, usize, u32); 5] =
    [(0, 100, 0), (90, 500, 15), (450, 1000, 30), (900, 2000, 60), (1800, usize::MAX, 300)];

/// The controller, with the step that holds.
#[derive(Default)]
pub(crate) struct NodeTtl(Mutex<usize>);

/// The step for so many nodes, coming from another.
fn step(mut at: usize, nodes: usize) -> usize {
    while nodes > STEPS[at].1 {
        at += 1;
    }
    while nodes < STEPS[at].0 {
        at -= 1;
    }
    at
}

impl Operator for NodeTtl {
    type Resource = Node;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "ttl-controller"
    }

    async fn reconcile(&self, node: &Node, cx: &Context<Self>) -> Result<Next> {
        let seconds = {
            let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *at = step(*at, cx.resources().len());
            STEPS[*at].2.to_string()
        };
        if node.metadata.annotations.as_ref().and_then(|a| a.get(ANNOTATION)) != Some(&seconds) {
            let patch = json!({"metadata": {"annotations": {ANNOTATION: seconds}}});
            cx.patch_resource(&Patch::Merge(patch)).await?;
        }
        Ok(Next::done())
    }

    async fn finalize(&self, _: &Node, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_follows_the_size_and_doesnt_waver() {
        let check = |from: usize, nodes: usize, seconds: u32| {
            assert_eq!(STEPS[step(from, nodes)].2, seconds, "{from} {nodes}");
        };
        check(0, 100, 0);
        check(0, 101, 15);
        check(1, 95, 15);
        check(1, 89, 0);
        check(0, 5000, 300);
        check(4, 1800, 300);
        check(4, 1799, 60);
        check(4, 0, 0);
    }
}
