//! Whether a pod may run on a node by its node selector, its required node affinity, and the node's taints. Pure.
//!
//! It is for those who look at nodes without the scheduler: daemon pods, evictions by taints, kubelets that admit.

use k8s_openapi::api::core::v1::{
    Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

/// Whether selector and required affinity allow the node.
pub fn fits(spec: &PodSpec, node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let selected = spec.node_selector.iter().flatten().all(|(k, v)| labels.and_then(|l| l.get(k)) == Some(v));
    let required = spec
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.as_ref())
        .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
    selected && required.is_none_or(|r| selects(r, node))
}

/// Any term, all of whose requirements hold. A term without requirements selects nothing.
fn selects(selector: &NodeSelector, node: &Node) -> bool {
    let label = |key: &str| node.metadata.labels.as_ref().and_then(|l| l.get(key)).map(String::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(node.metadata.name.as_deref()).flatten();
    let holds = |term: &NodeSelectorTerm| {
        let (expressions, fields) = (term.match_expressions.as_deref(), term.match_fields.as_deref());
        let (expressions, fields) = (expressions.unwrap_or_default(), fields.unwrap_or_default());
        !(expressions.is_empty() && fields.is_empty())
            && expressions.iter().all(|r| requires(r, label(&r.key)))
            && fields.iter().all(|r| requires(r, field(&r.key)))
    };
    selector.node_selector_terms.iter().any(holds)
}

fn requires(requirement: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_in = value.is_some_and(|v| values.iter().any(|x| x == v));
    let number = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok());
    let bound = number(values.first().map(String::as_str));
    match requirement.operator.as_str() {
        "In" => is_in,
        "NotIn" => !is_in,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(bound).is_some_and(|(v, b)| v > b),
        "Lt" => number(value).zip(bound).is_some_and(|(v, b)| v < b),
        _ => false,
    }
}

/// Whether a toleration covers a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let some = |s: &Option<String>| s.clone().filter(|s| !s.is_empty());
    let effect = some(&toleration.effect).is_none_or(|e| e == taint.effect);
    let key = some(&toleration.key).is_none_or(|k| k == taint.key);
    let value = toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    effect && key && (toleration.operator.as_deref() == Some("Exists") || value)
}

/// The first taint of these effects that nothing tolerates.
pub fn untolerated<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    effects: &[&str],
) -> Option<&'a Taint> {
    let counts = |t: &&Taint| effects.contains(&t.effect.as_str());
    taints.iter().filter(counts).find(|taint| !tolerations.iter().any(|t| tolerates(t, taint)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(spec: Value, want: bool) {
        let mut spec = spec;
        spec["containers"] = json!([]);
        let node: Node =
            serde_json::from_value(json!({"metadata": {"name": "n1", "labels": {"disk": "ssd", "n": "5"}}}))
                .unwrap();
        assert_eq!(fits(&serde_json::from_value(spec.clone()).unwrap(), &node), want, "{spec}");
    }

    fn affinity(terms: Value) -> Value {
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}})
    }

    #[test]
    fn nodes_are_selected() {
        check(json!({}), true);
        check(json!({"nodeSelector": {"disk": "ssd"}}), true);
        check(json!({"nodeSelector": {"disk": "hdd"}}), false);
        let one = |r: Value| affinity(json!([{"matchExpressions": [r]}]));
        check(one(json!({"key": "disk", "operator": "In", "values": ["ssd"]})), true);
        check(one(json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]})), false);
        check(one(json!({"key": "gpu", "operator": "NotIn", "values": ["a"]})), true);
        check(one(json!({"key": "gpu", "operator": "Exists"})), false);
        check(one(json!({"key": "gpu", "operator": "DoesNotExist"})), true);
        check(one(json!({"key": "n", "operator": "Gt", "values": ["4"]})), true);
        check(one(json!({"key": "n", "operator": "Lt", "values": ["4"]})), false);
        check(affinity(json!([{}])), false);
        let field = |name: &str| json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]);
        check(affinity(field("n1")), true);
        check(affinity(field("n2")), false);
    }

    #[test]
    fn taints_need_tolerations() {
        let check = |toleration: Value, want: bool| {
            let taint: Taint =
                serde_json::from_value(json!({"key": "k", "value": "v", "effect": "NoExecute"})).unwrap();
            let toleration: Toleration = serde_json::from_value(toleration.clone()).unwrap();
            assert_eq!(tolerates(&toleration, &taint), want, "{toleration:?}");
        };
        check(json!({"key": "k", "operator": "Equal", "value": "v"}), true);
        check(json!({"key": "k", "value": "w"}), false);
        check(json!({"key": "k", "operator": "Exists"}), true);
        check(json!({"operator": "Exists"}), true);
        check(json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"}), false);
        check(json!({"key": "other", "operator": "Exists"}), false);
    }
}
