//! Impersonation: requests that one user makes in the name of another.
//!
//! The headers say whom; the requester must be allowed to. Constrained modes (verbs `impersonate:<mode>` on the user
//! and `impersonate-on:<mode>:<verb>` on the request itself) are tried before the old verb `impersonate`, which
//! permits every request. Where all fail, the first mode's refusal is the answer, and a requester's last successful
//! mode is tried first. Source: kubernetes `apiserver/pkg/endpoints/filters/impersonation`.

mod header;
mod mode;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use homeostat_model::Status;

pub use header::wanted;
use mode::Mode;

use crate::{Attributes, Policy, User};

/// How many requesters' modes are remembered.
const REMEMBERED: usize = 10_000;

/// Decides impersonations.
#[derive(Debug, Default)]
pub struct Impersonation {
    last: Mutex<BTreeMap<String, Mode>>,
}

impl Impersonation {
    /// The user that the requester of `attributes` becomes when they want to be `wanted` (of [`wanted`]); 403 where
    /// they may not.
    pub fn resolve(
        &self,
        policy: &Policy,
        attributes: &Attributes<'_>,
        wanted: &User,
    ) -> Result<User, Status> {
        let requester = &attributes.user.name;
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let first = last().get(requester).copied();
        let others = Mode::ALL.into_iter().filter(|m| Some(*m) != first);
        let mut refusal = None;
        for mode in first.into_iter().chain(others) {
            match mode.check(policy, attributes, wanted) {
                None => {}
                Some(Ok(user)) => {
                    if first != Some(mode) {
                        let mut last = last();
                        if last.len() >= REMEMBERED {
                            last.clear();
                        }
                        last.insert(requester.clone(), mode);
                    }
                    return Ok(user);
                }
                Some(Err(status)) => refusal = refusal.or(Some(status)),
            }
        }
        // The old mode always has an answer; this is for the compiler.
        Err(refusal.unwrap_or_else(|| attributes.forbidden("all impersonation modes failed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AUTHENTICATED, MASTERS, UNAUTHENTICATED};
    use serde_json::{Value, json};

    fn policy(rules: Value) -> Policy {
        Policy::from_objects(&[
            json!({"kind": "ClusterRole", "metadata": {"name": "imp"}, "rules": rules}),
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": "imp"}, "roleRef": {"kind": "ClusterRole", "name": "imp"},
                "subjects": [{"kind": "User", "name": "gate"}]}),
        ])
    }

    fn user(headers: &[(&str, &str)]) -> User {
        wanted(headers.iter().copied()).unwrap().unwrap()
    }

    #[test]
    fn administrators_become_anyone() {
        let (p, root) = (Policy::default(), User::administrator("root"));
        let a = Attributes::resource(&root, "list", "", "pods");
        for (headers, groups) in [
            (&[("impersonate-user", "jane")][..], vec![AUTHENTICATED]),
            (&[("impersonate-user", "jane"), ("impersonate-group", "devs")], vec!["devs", AUTHENTICATED]),
            (&[("impersonate-user", "jane"), ("impersonate-group", UNAUTHENTICATED)], vec![UNAUTHENTICATED]),
            (&[("impersonate-user", "jane"), ("impersonate-group", MASTERS)], vec![MASTERS, AUTHENTICATED]),
            (&[("impersonate-user", "system:anonymous")], vec![UNAUTHENTICATED]),
            (
                &[("impersonate-user", "system:serviceaccount:d:op")],
                vec!["system:serviceaccounts", "system:serviceaccounts:d", AUTHENTICATED],
            ),
            (
                &[("impersonate-user", "system:serviceaccount:d:op"), ("impersonate-group", "only")],
                vec!["only", AUTHENTICATED],
            ),
            (&[("impersonate-user", "system:node:n1")], vec!["system:nodes", AUTHENTICATED]),
        ] {
            let i = Impersonation::default();
            assert_eq!(i.resolve(&p, &a, &user(headers)).unwrap().groups, groups, "{headers:?}");
        }
    }

    #[test]
    fn others_need_rights_for_every_part() {
        let nobody = policy(json!([]));
        let gate = User::new("gate", [AUTHENTICATED]);
        let pods = Attributes::resource(&gate, "list", "", "pods").namespace("d");
        let check = |i: &Impersonation, p: &Policy, headers: &[(&str, &str)], want: Result<&str, &str>| {
            let got = i.resolve(p, &pods, &user(headers)).map(|u| u.name).map_err(|s| s.message);
            assert_eq!(got.as_deref().map_err(|e| &**e), want, "{headers:?}");
        };
        let jane = ("impersonate-user", "jane");
        let i = Impersonation::default();
        let refused = r#"pods is forbidden: User "gate" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "d""#;
        check(&i, &nobody, &[jane], Err(refused));
        check(
            &i,
            &nobody,
            &[("impersonate-user", "system:serviceaccount:d:op")],
            Err(&refused.replace("user-info", "serviceaccount")),
        );

        let old = policy(json!([
            {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]},
            {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]},
            {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "verbs": ["impersonate"], "resourceNames": ["view"]},
        ]));
        check(&i, &old, &[jane], Ok("jane"));
        check(
            &i,
            &old,
            &[("impersonate-user", "system:serviceaccount:d:op")],
            Ok("system:serviceaccount:d:op"),
        );
        // The old mode has succeeded, so its refusals are told from now on.
        check(
            &i,
            &old,
            &[("impersonate-user", "john")],
            Err(
                r#"users "john" is forbidden: User "gate" cannot impersonate resource "users" in API group "" at the cluster scope"#,
            ),
        );
        check(
            &i,
            &old,
            &[jane, ("impersonate-group", "developers")],
            Err(
                r#"groups "developers" is forbidden: User "gate" cannot impersonate resource "groups" in API group "" at the cluster scope"#,
            ),
        );
        check(&i, &old, &[jane, ("impersonate-extra-scopes", "view")], Ok("jane"));
        check(
            &i,
            &old,
            &[jane, ("impersonate-extra-scopes", "edit")],
            Err(
                r#"userextras.authentication.k8s.io "edit" is forbidden: User "gate" cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope"#,
            ),
        );

        // Constrained: this user, for this request only.
        let new = policy(json!([
            {"apiGroups": ["authentication.k8s.io"], "resources": ["users"], "verbs": ["impersonate:user-info"], "resourceNames": ["jane"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["impersonate-on:user-info:list"]},
        ]));
        let i = Impersonation::default();
        check(&i, &new, &[jane], Ok("jane"));
        check(
            &i,
            &new,
            &[jane, ("impersonate-group", MASTERS)],
            Err(
                r#"groups.authentication.k8s.io "system:masters" is forbidden: User "gate" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed"#,
            ),
        );
        let secrets = Attributes::resource(&gate, "list", "", "secrets").namespace("d");
        assert!(i.resolve(&new, &secrets, &user(&[jane])).is_err());
    }
}
