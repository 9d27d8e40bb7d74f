//! The rights of the program and of the people who use its kinds, as roles and bindings.
//!
//! Pure. The rules come from the operators' types; nothing is granted that no type asks for. Invariant: what the
//! program needs only in its own namespace is granted only there.

use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::Options;
use super::rights::compact;
use super::workload::{labels, meta};
use crate::rbac::{RBAC, bound, rule, service_account};

fn rules_value(rules: &[PolicyRule]) -> Value {
    serde_json::to_value(compact(rules)).unwrap_or_default()
}

/// A role and its binding: in the namespace, or for the whole cluster.
pub(crate) fn role(
    name: &str,
    options: &Options,
    suffix: &str,
    rules: &[PolicyRule],
    cluster: bool,
) -> [Value; 2] {
    let mut metadata = meta(name, options, suffix);
    if cluster && let Some(fields) = metadata.as_object_mut() {
        fields.remove("namespace");
    }
    bound(&metadata, cluster, &rules_value(rules), &service_account(&options.namespace, name))
}

/// What leader election needs, in the program's own namespace.
pub(crate) fn leases() -> Vec<PolicyRule> {
    vec![rule("coordination.k8s.io", "leases", &["get", "create", "update"])]
}

/// Roles for people: whoever may `view`, `edit` or `admin` a namespace may do so with the kind's objects.
pub(crate) fn for_people(name: &str, crd: &CustomResourceDefinition) -> [Value; 2] {
    let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
    let make = |suffix: &str, into: &[&str], rules: Vec<PolicyRule>| {
        let mut labels = labels(name);
        for role in into {
            labels[format!("{RBAC}/aggregate-to-{role}")] = json!("true");
        }
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "ClusterRole",
            "metadata": {"name": format!("{plural}.{group}-{suffix}"), "labels": labels},
            "rules": rules_value(&rules),
        })
    };
    let status = format!("{plural}/status");
    let all = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
    [
        make("editor", &["admin", "edit"], vec![rule(group, plural, &all), rule(group, &status, &["get"])]),
        make(
            "viewer",
            &["view"],
            vec![rule(group, plural, &["get", "list", "watch"]), rule(group, &status, &["get"])],
        ),
    ]
}
