//! The rights that an operator needs, from its types.
//!
//! What can be read or written through a [`Context`](crate::Context) is declared in the types, so the rules follow
//! from them and can't drift. Not included is what goes through `Context::client` and `Context::writer`.

use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Resource;
use serde_json::{Value, json};

use crate::kinds::{Kinds, Visitor};
use crate::object::Object;
use crate::operator::Operator;

/// The API group of roles.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

struct Collect {
    owned: bool,
    rules: Vec<PolicyRule>,
}

/// The rule that allows `verbs` on a resource (such as `pods`, or `pods/status`) of an API group.
pub fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|v| (*v).to_owned()).collect(),
        ..PolicyRule::default()
    }
}

/// A ClusterRole of these rules, and the ClusterRoleBinding of the same name that gives it to a service account.
pub fn grant(name: &str, namespace: &str, account: &str, rules: &[PolicyRule]) -> [Value; 2] {
    bound(&json!({"name": name}), true, &json!(rules), &service_account(namespace, account))
}

/// A service account as the subject of a binding.
pub(crate) fn service_account(namespace: &str, name: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
}

/// A role and the binding of the same metadata that gives it to a subject: for the whole cluster, or in a namespace.
pub(crate) fn bound(metadata: &Value, cluster: bool, rules: &Value, subject: &Value) -> [Value; 2] {
    let (role, binding) =
        if cluster { ("ClusterRole", "ClusterRoleBinding") } else { ("Role", "RoleBinding") };
    let version = format!("{RBAC}/v1");
    [
        json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": version,
            "kind": binding,
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": role, "name": metadata["name"]},
            "subjects": [subject],
        }),
    ]
}

impl Visitor for Collect {
    fn kind<T: Object>(&mut self, edits: bool) {
        let (group, plural) = (T::group(&()), T::plural(&()));
        if self.owned || edits {
            self.rules.push(rule(&group, &plural, &WRITE));
        } else {
            self.rules.push(rule(&group, &plural, &READ));
        }
        if edits {
            self.rules.push(rule(&group, &format!("{plural}/status"), &["patch"]));
        }
    }
}

/// The rules that operator `O` needs to do all that its types allow it: for a Role, or a ClusterRole.
///
/// ```
/// # use homeostat_sdk::{Context, Next, Operator, Result};
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
/// # struct Greeter;
/// # impl Operator for Greeter {
/// #     type Resource = ServiceAccount;
/// #     type Owns = (ConfigMap,);
/// #     type Reads = (Secret,);
/// #     async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
/// # }
/// let rules = homeostat_sdk::rules::<Greeter>();
/// let secrets = rules.iter().find(|r| r.resources == Some(vec!["secrets".into()])).unwrap();
/// assert_eq!(secrets.verbs, ["get", "list", "watch"]);
/// ```
pub fn rules<O: Operator>() -> Vec<PolicyRule> {
    let (group, plural) = (O::Resource::group(&()), O::Resource::plural(&()));
    let mut collect = Collect { owned: false, rules: Vec::new() };
    collect.rules.push(rule(&group, &plural, &["get", "list", "watch", "patch"]));
    collect.rules.push(rule(&group, &format!("{plural}/status"), &["get", "patch"]));
    // Owner references that block deletion need this where OwnerReferencesPermissionEnforcement is on.
    collect.rules.push(rule(&group, &format!("{plural}/finalizers"), &["update"]));
    collect.owned = true;
    O::Owns::visit(&mut collect);
    collect.owned = false;
    O::Reads::visit(&mut collect);
    collect.rules.push(rule("events.k8s.io", "events", &["create", "patch"]));
    collect.rules
}
