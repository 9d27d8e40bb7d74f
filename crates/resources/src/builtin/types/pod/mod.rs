//! Pods: their defaults, rules and life cycle as far as the API server has a say in it.

pub(crate) mod container;
pub(crate) mod default;
pub(crate) mod qos;
pub(crate) mod spec;
pub(crate) mod update;
mod volume;

use homeostat_model::{GroupVersion, clock, field};
use serde_json::{Value, json};

use crate::builtin::value::{at, carry, flag, has, int, items, remove, set, text};
use crate::strategy::{Cx, Strategy};

/// Pods.
pub(super) struct Pods;

impl Strategy for Pods {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        default::pod(object);
    }

    fn prepare_create(&self, cx: &Cx<'_>, new: &mut Value) {
        let class = qos::class(&new["spec"]);
        new["status"] = json!({"phase": "Pending", "qosClass": class});
        if !items(new, "spec.schedulingGates").is_empty() {
            new["status"]["conditions"] = json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastTransitionTime": clock::seconds(cx.now),
            }]);
        }
    }

    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        carry(new, old, "status");
    }

    fn prepare_status(&self, cx: &Cx<'_>, new: &mut Value, old: &Value) {
        match cx.subresource {
            "resize" => update::resize(new, old),
            "ephemeralcontainers" => {
                let added = at(new, "spec.ephemeralContainers").clone();
                carry(new, old, "spec");
                if !added.is_null() {
                    set(new, "spec.ephemeralContainers", added);
                }
            }
            _ => {
                carry(new, old, "metadata.ownerReferences");
                if !has(new, "status.qosClass") {
                    carry(new, old, "status.qosClass");
                }
                return;
            }
        }
        carry(new, old, "status");
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        spec::spec(&mut errors, "spec", &new["spec"]);
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        if cx.subresource == "binding" {
            // A binding sets the node of a pod that is what it was.
            return Vec::new();
        }
        // Adding or removing containers is the whole story then.
        let mut changes = Vec::new();
        update::pod(&mut changes, new, old);
        let mut errors = self.validate(cx, new);
        errors.append(&mut changes);
        errors
    }

    fn validate_status(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        match cx.subresource {
            "resize" => spec::spec(&mut errors, "spec", &new["spec"]),
            "ephemeralcontainers" => {
                spec::spec(&mut errors, "spec", &new["spec"]);
                for gone in items(old, "spec.ephemeralContainers") {
                    let path = "spec.ephemeralContainers";
                    let kept = items(new, path).iter().find(|c| text(c, "name") == text(gone, "name"));
                    let name = text(gone, "name");
                    match kept {
                        None => {
                            let why =
                                format!("existing ephemeral containers \"{name}\" may not be removed\n");
                            errors.push(field::Error::forbidden(path, why));
                        }
                        Some(kept) if kept != gone => {
                            let why =
                                format!("existing ephemeral containers \"{name}\" may not be changed\n");
                            errors.push(field::Error::forbidden(path, why));
                        }
                        Some(_) => {}
                    }
                }
            }
            _ => update::status(&mut errors, new, old),
        }
        errors
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings("spec", &new["spec"])
    }

    /// A binding is no change of what the user means.
    fn spec_changed(&self, new: &Value, old: &Value) -> bool {
        let without_node = |pod: &Value| {
            let mut spec = pod["spec"].clone();
            remove(&mut spec, "nodeName");
            spec
        };
        new["spec"] != old["spec"] && without_node(new) != without_node(old)
    }

    fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        let own = int(object, "spec.terminationGracePeriodSeconds").unwrap_or(30);
        let phase = text(object, "status.phase");
        // A pod that no node runs has nobody to wait for.
        if text(object, "spec.nodeName").is_empty() || matches!(phase, "Succeeded" | "Failed") {
            return Some(0);
        }
        let seconds = requested.unwrap_or(own);
        Some(if seconds < 0 { 1 } else { seconds })
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        let ip = text(object, "status.podIP");
        let ip = if ip.is_empty() {
            items(object, "status.podIPs").first().map_or("", |i| text(i, "ip"))
        } else {
            ip
        };
        SELECTABLE
            .iter()
            .map(|label| {
                let value = match *label {
                    "spec.hostNetwork" => flag(object, label).to_string(),
                    "status.podIP" => ip.to_owned(),
                    _ => text(object, label).to_owned(),
                };
                (*label, value)
            })
            .collect()
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        SELECTABLE
    }
}

const SELECTABLE: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

/// Warnings of a pod or template, of those that the reference gives for what still works but shouldn't be used.
pub(crate) fn warnings(path: &str, spec: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in spec["nodeSelector"].as_object().into_iter().flatten().map(|(k, _)| k.as_str()) {
        let successor = match key {
            "beta.kubernetes.io/arch" => "kubernetes.io/arch",
            "beta.kubernetes.io/os" => "kubernetes.io/os",
            "failure-domain.beta.kubernetes.io/region" => "topology.kubernetes.io/region",
            "failure-domain.beta.kubernetes.io/zone" => "topology.kubernetes.io/zone",
            "beta.kubernetes.io/instance-type" => "node.kubernetes.io/instance-type",
            _ => continue,
        };
        warnings
            .push(format!("{path}.nodeSelector[{key}]: deprecated since v1.14; use \"{successor}\" instead"));
    }
    for list in ["initContainers", "containers"] {
        for (i, container) in items(spec, list).iter().enumerate() {
            for kind in ["limits", "requests"] {
                let amounts = container["resources"][kind].as_object();
                for (name, value) in amounts.into_iter().flatten() {
                    if matches!(&**name, "memory" | "ephemeral-storage")
                        && value.as_str().is_some_and(|v| v.ends_with('m'))
                    {
                        let shown = value.as_str().unwrap_or_default();
                        warnings.push(format!(
                            "{path}.{list}[{i}].resources.{kind}[{name}]: fractional byte value \"{shown}\" is invalid, must be an integer"
                        ));
                    }
                }
            }
            let mut seen = std::collections::BTreeSet::new();
            for (j, env) in items(container, "env").iter().enumerate() {
                if !seen.insert(text(env, "name")) {
                    warnings.push(format!(
                        "{path}.{list}[{i}].env[{j}]: hides previous definition of \"{}\", which may be dropped when using apply",
                        text(env, "name")
                    ));
                }
            }
        }
    }
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|s| s < 0) {
        warnings.push(format!("{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    warnings
}
