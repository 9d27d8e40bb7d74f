//! TaintToleration: taints keep pods away unless they tolerate them.

use k8s_openapi::api::core::v1::{Pod, Taint, Toleration};

use crate::framework::{Filter, Score};
use crate::snapshot::NodeInfo;

/// The plugin.
pub struct TaintToleration;

impl Filter for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn filter(&self, pod: &Pod, node: &NodeInfo) -> Result<(), Vec<String>> {
        let hard = |t: &&Taint| matches!(&*t.effect, "NoSchedule" | "NoExecute");
        match taints(node).filter(hard).find(|t| !tolerates(pod, t)) {
            Some(t) => Err(vec![format!(
                "node(s) had untolerated taint {{{}: {}}}",
                t.key,
                t.value.as_deref().unwrap_or_default()
            )]),
            None => Ok(()),
        }
    }
}

impl Score for TaintToleration {
    fn name(&self) -> &'static str {
        "TaintToleration"
    }

    fn weight(&self) -> i64 {
        3
    }

    fn score(&self, pod: &Pod, node: &NodeInfo) -> i64 {
        let disliked = taints(node).filter(|t| t.effect == "PreferNoSchedule" && !tolerates(pod, t)).count();
        100 - i64::try_from(disliked).unwrap_or(100).saturating_mul(10).min(100)
    }
}

fn taints(node: &NodeInfo) -> impl Iterator<Item = &Taint> {
    node.node.spec.iter().flat_map(|s| s.taints.iter().flatten())
}

/// Whether one of the pod's tolerations covers `taint`.
pub(super) fn tolerates(pod: &Pod, taint: &Taint) -> bool {
    let tolerations = pod.spec.as_ref().and_then(|s| s.tolerations.as_deref()).unwrap_or_default();
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
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => {
            toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
        }
        Some(_) => false,
    }
}
