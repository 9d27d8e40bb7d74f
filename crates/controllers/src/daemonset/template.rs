//! A daemon pod: the template, tied to one node and tolerant of what befalls nodes.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, PodTemplateSpec, Toleration,
};

use crate::common::{history, template};

/// Taints that daemon pods tolerate, and the effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");
/// Annotation and label of an older form of revisions, which the API server still counts.
const GENERATION: &str = "deprecated.daemonset.template.generation";
const GENERATION_LABEL: &str = "pod-template-generation";

/// The pod of `set` for `node`.
pub(super) fn pod(set: &DaemonSet, template: &PodTemplateSpec, node: &str, hash: &str) -> Pod {
    let mut pod = template::pod(template, set.metadata.name.as_deref().unwrap_or_default());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(history::HASH_LABEL.into(), hash.into());
    if let Some(generation) = set.metadata.annotations.as_ref().and_then(|a| a.get(GENERATION)) {
        labels.insert(GENERATION_LABEL.into(), generation.clone());
    }
    let spec = pod.spec.get_or_insert_default();
    tolerate(spec);
    bind(spec, node);
    pod
}

/// Adds what every daemon pod tolerates.
pub(super) fn tolerate(spec: &mut PodSpec) {
    let network = (spec.host_network == Some(true)).then_some(NETWORK);
    let all = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.into_iter().chain(network) {
        let new = Toleration {
            key: Some(key.into()),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            ..Toleration::default()
        };
        let same = |t: &&mut Toleration| t.key == new.key && t.effect == new.effect;
        match all.iter_mut().find(same) {
            Some(old) => *old = new,
            None => all.push(new),
        }
    }
}

/// Lets only one node do, in place of any other choice of nodes by name; selectors stay.
fn bind(spec: &mut PodSpec, node: &str) {
    let only = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: "In".into(),
        values: Some(vec![node.into()]),
    };
    let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .get_or_insert_with(NodeSelector::default);
    // The choice was made with all the terms; one that only names the node is left of them.
    required.node_selector_terms =
        vec![NodeSelectorTerm { match_fields: Some(vec![only]), match_expressions: None }];
}
