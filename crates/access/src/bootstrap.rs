//! The RBAC objects that a fresh API server makes for itself: default roles and bindings, among them those of the
//! built-in controllers, scheduler and kubelets.
//!
//! The data is Kubernetes 1.36's, reduced to what differs between objects; here it becomes whole again, without uid,
//! times and versions. `admin`, `edit` and `view` have no rules until a controller aggregates them.

use serde_json::{Value, json};

use crate::rbac::GROUP;

/// One object per line; keys are those of the resources.
const DATA: &str = include_str!("../data/rbac.json");

/// The default cluster roles, cluster role bindings, roles and role bindings.
pub fn objects() -> Vec<Value> {
    // The data is ours and covered by a test; were it broken, there would be no default roles.
    let mut data: Value = serde_json::from_str(DATA).unwrap_or_default();
    let kinds = [
        ("clusterroles", "ClusterRole"),
        ("clusterrolebindings", "ClusterRoleBinding"),
        ("roles", "Role"),
        ("rolebindings", "RoleBinding"),
    ];
    let mut out = Vec::new();
    for (plural, kind) in kinds {
        if let Value::Array(list) = data[plural].take() {
            out.extend(list.into_iter().map(|o| whole(o, kind)));
        }
    }
    out
}

fn whole(mut short: Value, kind: &str) -> Value {
    let mut metadata = json!({
        "name": short["name"].take(),
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    });
    if let Some(namespace) = short.get_mut("namespace") {
        metadata["namespace"] = namespace.take();
    }
    for (k, v) in short["labels"].as_object().into_iter().flatten() {
        metadata["labels"][k] = v.clone();
    }
    let mut object =
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata});
    if kind.ends_with("Role") {
        object["rules"] = short["rules"].take();
        if let Some(aggregation) = short.get_mut("aggregationRule") {
            object["aggregationRule"] = aggregation.take();
        }
        return object;
    }
    object["roleRef"] = json!({"apiGroup": GROUP, "kind": short["role"][0], "name": short["role"][1]});
    let subjects: Vec<Value> = short["subjects"].as_array().into_iter().flatten().map(subject).collect();
    if !subjects.is_empty() {
        object["subjects"] = subjects.into();
    }
    object
}

/// `[kind, name, namespace]`; users and groups have an API group instead of a namespace.
fn subject(short: &Value) -> Value {
    let mut subject = json!({"kind": short[0], "name": short[1]});
    if short[2] == "" {
        subject["apiGroup"] = GROUP.into();
    } else {
        subject["namespace"] = short[2].clone();
    }
    subject
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AUTHENTICATED, Attributes, Policy, User, rbac::aggregated_rules};

    #[test]
    fn the_data_is_whole() {
        let all = objects();
        let count = |kind: &str| all.iter().filter(|o| o["kind"] == kind).count();
        assert_eq!(
            ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].map(count),
            [71, 52, 7, 7],
            "as many as the reference makes"
        );
        for o in &all {
            assert!(o["metadata"]["name"].is_string(), "{o}");
            assert_eq!(
                o["kind"].as_str().unwrap().starts_with("Cluster"),
                o["metadata"]["namespace"].is_null()
            );
        }
    }

    #[test]
    fn the_default_policy() {
        let all = objects();
        let policy = Policy::from_objects(&all);
        let jane = User::new("jane", [AUTHENTICATED]);
        let anonymous = User::anonymous();
        let job = User::service_account("kube-system", "job-controller", "");
        for (a, want) in [
            (Attributes::path(&anonymous, "get", "/version"), true),
            (Attributes::path(&anonymous, "get", "/healthz"), true),
            (Attributes::path(&anonymous, "get", "/metrics"), false),
            (Attributes::path(&anonymous, "get", "/api"), false),
            (Attributes::path(&jane, "get", "/api"), true),
            (Attributes::path(&jane, "get", "/apis/apps/v1"), true),
            (Attributes::path(&jane, "get", "/openapi/v2"), true),
            (Attributes::resource(&jane, "create", "authorization.k8s.io", "selfsubjectaccessreviews"), true),
            (
                Attributes::resource(&anonymous, "create", "authentication.k8s.io", "selfsubjectreviews"),
                false,
            ),
            (Attributes::resource(&jane, "list", "", "pods"), false),
            (Attributes::resource(&job, "create", "", "pods").namespace("d"), true),
            (
                Attributes::resource(&job, "update", "batch", "jobs").subresource("status").namespace("d"),
                true,
            ),
            (Attributes::resource(&job, "list", "", "secrets"), false),
        ] {
            assert_eq!(policy.allows(&a).allowed, want, "{a:?}");
        }
    }

    #[test]
    fn admin_edit_and_view_aggregate() {
        let mut all = objects();
        // As a controller would: until nothing changes, since admin contains edit and edit contains view.
        for _ in 0..3 {
            let rules: Vec<_> = all
                .iter()
                .map(|o| aggregated_rules(o, all.iter().filter(|o| o["kind"] == "ClusterRole")))
                .collect();
            for (object, rules) in all.iter_mut().zip(rules) {
                if let Some(rules) = rules {
                    object["rules"] = rules.into();
                }
            }
        }
        let mut policy = Policy::from_objects(&all);
        for role in ["admin", "edit", "view"] {
            policy.upsert(&json!({"kind": "RoleBinding", "metadata": {"name": role, "namespace": "d"},
                "roleRef": {"kind": "ClusterRole", "name": role}, "subjects": [{"kind": "User", "name": role}]}));
        }
        for (user, verb, group, resource, want) in [
            ("view", "list", "apps", "deployments", true),
            ("view", "get", "", "secrets", false),
            ("edit", "create", "apps", "deployments", true),
            ("edit", "get", "", "secrets", true),
            ("edit", "create", GROUP, "rolebindings", false),
            ("admin", "create", GROUP, "rolebindings", true),
        ] {
            let user = User::new(user, [""; 0]);
            let a = Attributes::resource(&user, verb, group, resource).namespace("d");
            assert_eq!(policy.allows(&a).allowed, want, "{a:?}");
        }
    }
}
