//! TaintToleration: taints keep pods away unless they tolerate them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Taint, Toleration};

use crate::framework::{
    Cycle, CycleState, Event, Filter, Opinion, Plugin, PreScore, Score, Status, normalize,
};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct TaintToleration;

impl Plugin for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn helps(&self, event: &Event, pod: &PodInfo, _: &Snapshot) -> bool {
        match event {
            // Tolerations may be added to a pod.
            Event::PodUpdated { old, new } => old.tolerations() != new.tolerations(),
            _ => event.node(|c| c.taints).is_some_and(|n| {
                let taints = n.spec.as_ref().and_then(|s| s.taints.as_deref()).unwrap_or_default();
                untolerated(pod.tolerations(), taints).is_none()
            }),
        }
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }

    fn pre_score(&self) -> Option<&dyn PreScore> {
        Some(self)
    }

    fn score(&self) -> Option<&dyn Score> {
        Some(self)
    }
}

impl Filter for TaintToleration {
    fn filter(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        match untolerated(pod.tolerations(), node.taints()) {
            Some(_) => Err(Status::unresolvable("node(s) had untolerated taint(s)")),
            None => Ok(()),
        }
    }
}

fn is_soft(taint: &Taint) -> bool {
    taint.effect == "PreferNoSchedule"
}

impl PreScore for TaintToleration {
    fn pre_score(
        &self,
        _: &Cycle<'_>,
        _: &mut CycleState,
        _: &PodInfo,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<Opinion, Status> {
        // The reference scores every node alike then, which chooses the same.
        let any = nodes.iter().any(|n| n.taints().iter().any(is_soft));
        Ok(if any { Opinion::Some } else { Opinion::None })
    }
}

impl Score for TaintToleration {
    fn score(&self, _: &Cycle<'_>, _: &CycleState, pod: &PodInfo, node: &NodeInfo) -> i64 {
        let disliked =
            node.taints().iter().filter(|t| is_soft(t) && !tolerates(pod.tolerations(), t)).count();
        i64::try_from(disliked).unwrap_or(i64::MAX)
    }

    fn normalize(&self, _: &Cycle<'_>, _: &CycleState, _: &PodInfo, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        normalize(scores, true);
    }
}

/// The first taint that keeps a pod with these tolerations away.
pub fn untolerated<'t>(tolerations: &[Toleration], taints: &'t [Taint]) -> Option<&'t Taint> {
    taints
        .iter()
        .find(|t| matches!(t.effect.as_str(), "NoSchedule" | "NoExecute") && !tolerates(tolerations, t))
}

/// Whether one of the tolerations covers `taint`.
pub fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|t| covers(t, taint))
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let unset_or = |value: &Option<String>, want: &str| match value.as_deref() {
        None | Some("") => true,
        Some(v) => v == want,
    };
    if !unset_or(&toleration.effect, &taint.effect) || !unset_or(&toleration.key, &taint.key) {
        return false;
    }
    let (own, theirs) =
        (toleration.value.as_deref().unwrap_or_default(), taint.value.as_deref().unwrap_or_default());
    // KEP-5471: taints whose values are numbers. What is no number is not tolerated.
    let compare = |f: fn(i64, i64) -> bool| match (theirs.parse(), own.parse()) {
        (Ok(theirs), Ok(own)) => f(theirs, own),
        _ => false,
    };
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => own == theirs,
        Some("Lt") => compare(|taint, bound| taint < bound),
        Some("Gt") => compare(|taint, bound| taint > bound),
        Some(_) => false,
    }
}
