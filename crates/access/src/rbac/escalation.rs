//! Nobody grants what they do not have: checks of writes to roles and bindings.
//!
//! A write passes when its user holds every permission that it grants, or the verb `escalate` on the role or `bind`
//! on the role that is bound. Source: kubernetes `pkg/registry/rbac/*/policybased`.

use std::collections::{BTreeMap, BTreeSet};

use homeostat_model::field::quote;
use homeostat_model::{GroupResource, Status};
use serde_json::Value;

use super::rule::quoted_list;
use super::{GROUP, Policy, Rule};
use crate::{Attributes, MASTERS, User};

/// A write to a role or binding.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Who writes.
    pub user: &'a User,
    /// `roles`, `clusterroles`, `rolebindings` or `clusterrolebindings`; others pass.
    pub resource: &'a str,
    /// The request's namespace; empty for cluster-wide resources.
    pub namespace: &'a str,
    /// The name in the URL; empty for a create.
    pub name: &'a str,
    /// The object as it would be.
    pub new: &'a Value,
    /// The object as it is, for an update.
    pub old: Option<&'a Value>,
}

/// 403 (or 404 where the bound role is absent) for a write that would give away what its user does not hold.
pub fn check(policy: &Policy, w: &Write<'_>) -> Result<(), Status> {
    if w.user.is_in(MASTERS) || w.old.is_some_and(|old| only_collector_fields(w.new, old)) {
        return Ok(());
    }
    match w.resource {
        "roles" | "clusterroles" => check_role(policy, w),
        "rolebindings" | "clusterrolebindings" => check_binding(policy, w),
        _ => Ok(()),
    }
}

fn check_role(policy: &Policy, w: &Write<'_>) -> Result<(), Status> {
    let attributes =
        Attributes::resource(w.user, "escalate", GROUP, w.resource).namespace(w.namespace).name(w.name);
    if policy.allows(&attributes).allowed {
        return Ok(());
    }
    covered(policy, w, &Rule::list(&w.new["rules"]))?;
    let aggregates = |o: &Value| o.get("aggregationRule").is_some_and(|a| !a.is_null());
    if w.resource == "clusterroles" && (aggregates(w.new) || w.old.is_some_and(aggregates)) {
        // What it will gather cannot be known, so only those who hold everything may say what to gather.
        let star = || vec!["*".to_owned()];
        let everything = [
            Rule { verbs: star(), groups: star(), resources: star(), ..Rule::default() },
            Rule { verbs: star(), urls: star(), ..Rule::default() },
        ];
        if covered(policy, w, &everything).is_err() {
            return Err(refuse(w, "must have cluster-admin privileges to use the aggregationRule"));
        }
    }
    Ok(())
}

fn check_binding(policy: &Policy, w: &Write<'_>) -> Result<(), Status> {
    let (kind, name) =
        (w.new["roleRef"]["kind"].as_str(), w.new["roleRef"]["name"].as_str().unwrap_or_default());
    let kind = kind.unwrap_or_default();
    let resource = match kind {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        _ => "",
    };
    let attributes = Attributes::resource(w.user, "bind", GROUP, resource).namespace(w.namespace).name(name);
    if !resource.is_empty() && policy.allows(&attributes).allowed {
        return Ok(());
    }
    // The reference names the request's resource here, with the role's name.
    let rules = policy.role_rules(kind, name, w.namespace).map_err(|why| match resource {
        "" => Status::new(500, "", why),
        _ => Status::not_found(&GroupResource::new(GROUP, w.resource), name),
    })?;
    covered(policy, w, rules)
}

fn refuse(w: &Write<'_>, why: &str) -> Status {
    let name = w.new["metadata"]["name"].as_str().unwrap_or(w.name);
    Status::forbidden(&GroupResource::new(GROUP, w.resource), name, why)
}

/// Whether the user holds all of `rules` in the request's namespace.
fn covered(policy: &Policy, w: &Write<'_>, rules: &[Rule]) -> Result<(), Status> {
    let (held, error) = policy.rules_for(w.user, w.namespace);
    let pieces = rules.iter().flat_map(Rule::pieces);
    let missing: Vec<Rule> = pieces.filter(|piece| !held.iter().any(|h| h.covers(piece))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let texts: BTreeSet<String> = compact(missing).iter().map(ToString::to_string).collect();
    let mut why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&w.user.name),
        quoted_list(&w.user.groups),
        texts.into_iter().collect::<Vec<_>>().join("\n")
    );
    if let Some(error) = error {
        why.push_str(&format!("; resolution errors: [{error}]"));
    }
    Err(refuse(w, &why))
}

/// Joins rules that differ in their verb only.
fn compact(pieces: Vec<Rule>) -> Vec<Rule> {
    let mut simple: BTreeMap<(String, String), Rule> = BTreeMap::new();
    let mut out = Vec::new();
    for piece in pieces {
        match (piece.groups.as_slice(), piece.resources.as_slice()) {
            ([group], [resource]) if piece.names.is_empty() => {
                let verbs = piece.verbs.clone();
                match simple.entry((group.clone(), resource.clone())) {
                    std::collections::btree_map::Entry::Occupied(mut e) => e.get_mut().verbs.extend(verbs),
                    std::collections::btree_map::Entry::Vacant(e) => {
                        e.insert(piece);
                    }
                }
            }
            _ => out.push(piece),
        }
    }
    out.extend(simple.into_values());
    out
}

/// Whether a change is one of those that the garbage collector makes.
fn only_collector_fields(new: &Value, old: &Value) -> bool {
    let strip = |v: &Value| {
        let mut v = v.clone();
        if let Some(metadata) = v["metadata"].as_object_mut() {
            metadata.remove("ownerReferences");
            metadata.remove("finalizers");
        }
        v
    };
    strip(new) == strip(old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(extra: &[Value]) -> Policy {
        let mut p = Policy::from_objects(&[
            json!({"kind": "Role", "metadata": {"name": "lead", "namespace": "d"}, "rules": [
                {"apiGroups": ["cache.example.com"], "resources": ["redisclusters"], "verbs": ["get", "list", "watch", "update"]}]}),
            json!({"kind": "RoleBinding", "metadata": {"name": "lead", "namespace": "d"},
                "roleRef": {"kind": "Role", "name": "lead"}, "subjects": [{"kind": "User", "name": "lead"}]}),
            json!({"kind": "ClusterRole", "metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
        ]);
        for o in extra {
            p.upsert(o);
        }
        p
    }

    /// What user `lead` is told when they write `new` as a `resource` of namespace `d`.
    fn check_write(p: &Policy, resource: &str, new: Value, want: Result<(), &str>) {
        let user = User::new("lead", ["leads", "system:authenticated"]);
        let namespace = if resource.starts_with("cluster") { "" } else { "d" };
        let w = Write { user: &user, resource, namespace, name: "", new: &new, old: None };
        let got = check(p, &w).map_err(|s| s.message);
        assert_eq!(got.as_ref().map(|_| ()).map_err(String::as_str), want, "{new}");
    }

    fn role(name: &str, rules: Value) -> Value {
        json!({"metadata": {"name": name}, "rules": rules})
    }

    fn binding(name: &str, kind: &str, role: &str) -> Value {
        json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role}})
    }

    #[test]
    fn roles() {
        let p = policy(&[]);
        let redis = |verbs: &[&str]| json!({"apiGroups": ["cache.example.com"], "resources": ["redisclusters"], "verbs": verbs});
        check_write(&p, "roles", role("ok", json!([redis(&["get", "update"])])), Ok(()));
        check_write(
            &p,
            "roles",
            role(
                "toomuch",
                json!([redis(&["get", "delete", "patch"]),
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["one", "two"]}]),
            ),
            Err(concat!(
                r#"roles.rbac.authorization.k8s.io "toomuch" is forbidden: user "lead" (groups=["leads" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#,
                "\n",
                r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["one"], Verbs:["get"]}"#,
                "\n",
                r#"{APIGroups:[""], Resources:["secrets"], ResourceNames:["two"], Verbs:["get"]}"#,
                "\n",
                r#"{APIGroups:["cache.example.com"], Resources:["redisclusters"], Verbs:["delete" "patch"]}"#
            )),
        );
        let admin = "clusterroles.rbac.authorization.k8s.io \"sum\" is forbidden: must have cluster-admin privileges to use the aggregationRule";
        let mut sum = role("sum", json!([]));
        sum["aggregationRule"] = json!({"clusterRoleSelectors": []});
        check_write(&p, "clusterroles", sum, Err(admin));
        let p = policy(&[
            role_of(
                "escalator",
                json!([{"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["escalate"]}]),
            ),
            bind_of("escalator"),
        ]);
        check_write(&p, "roles", role("toomuch", json!([redis(&["delete"])])), Ok(()));
    }

    fn role_of(name: &str, rules: Value) -> Value {
        json!({"kind": "Role", "metadata": {"name": name, "namespace": "d"}, "rules": rules})
    }

    fn bind_of(role: &str) -> Value {
        json!({"kind": "RoleBinding", "metadata": {"name": role, "namespace": "d"},
            "roleRef": {"kind": "Role", "name": role}, "subjects": [{"kind": "User", "name": "lead"}]})
    }

    #[test]
    fn bindings() {
        let p = policy(&[]);
        let all = concat!(
            r#"rolebindings.rbac.authorization.k8s.io "all" is forbidden: user "lead" (groups=["leads" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:"#,
            "\n",
            r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#
        );
        check_write(&p, "rolebindings", binding("mine", "Role", "lead"), Ok(()));
        check_write(&p, "rolebindings", binding("all", "ClusterRole", "all"), Err(all));
        let missing = "rolebindings.rbac.authorization.k8s.io \"missing\" not found";
        check_write(&p, "rolebindings", binding("b", "Role", "missing"), Err(missing));
        let p = policy(&[
            role_of(
                "binder",
                json!([{"apiGroups": [GROUP], "resources": ["clusterroles"], "verbs": ["bind"], "resourceNames": ["all"]}]),
            ),
            bind_of("binder"),
        ]);
        check_write(&p, "rolebindings", binding("all", "ClusterRole", "all"), Ok(()));
    }

    #[test]
    fn the_collector_may_finish_its_work() {
        let p = policy(&[]);
        let user = User::new("lead", [""; 0]);
        let old = json!({"metadata": {"name": "r", "finalizers": ["a/b"]}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]});
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!([]);
        let mut w =
            Write { user: &user, resource: "roles", namespace: "d", name: "r", new: &new, old: Some(&old) };
        assert!(check(&p, &w).is_ok());
        let mut labelled = new.clone();
        labelled["metadata"]["labels"] = json!({"a": "b"});
        w.new = &labelled;
        assert_eq!(check(&p, &w).unwrap_err().code, 403);
    }
}
