//! The modes of impersonation, and what a requester must be allowed in each.

use homeostat_model::{Status, validation};

use crate::{
    ANONYMOUS, AUTHENTICATED, Attributes, MASTERS, NODES, Policy, UNAUTHENTICATED, User,
    service_account_groups, split_service_account,
};

const AUTHENTICATION: &str = "authentication.k8s.io";
/// From so many groups or extra values on, a right to all of them is asked for first.
const MANY: usize = 4;

/// A way of impersonating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// A service account becomes the node that its pod runs on.
    AssociatedNode,
    /// Someone becomes any node.
    ArbitraryNode,
    /// Someone becomes a service account.
    ServiceAccount,
    /// Someone becomes another user.
    UserInfo,
    /// The verb `impersonate` alone.
    Legacy,
}

fn node_name(username: &str) -> Option<&str> {
    let name = username.strip_prefix("system:node:")?;
    validation::dns1123_subdomain(name, false).is_empty().then_some(name)
}

impl Mode {
    /// In the order in which they are tried.
    pub(super) const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    /// The verb on the user, and what precedes the verb of the request.
    fn verbs(self) -> (&'static str, &'static str) {
        match self {
            Self::AssociatedNode => ("impersonate:associated-node", "impersonate-on:associated-node:"),
            Self::ArbitraryNode => ("impersonate:arbitrary-node", "impersonate-on:arbitrary-node:"),
            Self::ServiceAccount => ("impersonate:serviceaccount", "impersonate-on:serviceaccount:"),
            Self::UserInfo => ("impersonate:user-info", "impersonate-on:user-info:"),
            Self::Legacy => ("impersonate", ""),
        }
    }

    fn applies(self, requester: &User, wanted: &User) -> bool {
        let only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        let account = split_service_account(&wanted.name).is_some();
        match self {
            Self::AssociatedNode => {
                let runs_on = requester.extra.get("authentication.kubernetes.io/node-name");
                only_name
                    && split_service_account(&requester.name).is_some()
                    && node.is_some_and(|n| runs_on.is_some_and(|r| r.len() == 1 && r[0] == n))
            }
            Self::ArbitraryNode => only_name && node.is_some(),
            Self::ServiceAccount => only_name && account,
            Self::UserInfo => node.is_none() && !account,
            Self::Legacy => true,
        }
    }

    /// The user that the requester becomes, or a refusal; `None` where the mode is not for such a user.
    pub(super) fn check(
        self,
        policy: &Policy,
        request: &Attributes<'_>,
        wanted: &User,
    ) -> Option<Result<User, Status>> {
        self.applies(request.user, wanted).then(|| {
            if self != Self::Legacy {
                let verb = format!("{}{}", self.verbs().1, request.verb);
                allowed(policy, &Attributes { verb: &verb, ..*request })?;
            }
            self.become_user(policy, request.user, wanted)
        })
    }

    fn become_user(self, policy: &Policy, requester: &User, wanted: &User) -> Result<User, Status> {
        let verb = self.verbs().0;
        let constrained = self != Self::Legacy;
        let group = if constrained { AUTHENTICATION } else { "" };
        let mut user = wanted.clone();

        let mut name = Attributes::resource(requester, verb, group, "users").name(&wanted.name);
        if let Some(node) = node_name(&wanted.name).filter(|_| constrained) {
            // The rights of an associated node must not depend on which node it is.
            let node = if self == Self::AssociatedNode { "*" } else { node };
            name = Attributes { resource: "nodes", name: node, ..name };
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, account)) = split_service_account(&wanted.name) {
            name = Attributes { resource: "serviceaccounts", namespace, name: account, ..name };
            if wanted.groups.is_empty() {
                user.groups = service_account_groups(namespace).to_vec();
            }
        }
        allowed(policy, &name)?;
        if !wanted.uid.is_empty() {
            allowed(
                policy,
                &Attributes::resource(requester, verb, AUTHENTICATION, "uids").name(&wanted.uid),
            )?;
        }
        let groups = Attributes::resource(requester, verb, group, "groups");
        check_groups(policy, groups, &wanted.groups, constrained)?;
        let extra = Attributes::resource(requester, verb, AUTHENTICATION, "userextras");
        check_extra(policy, extra, wanted, constrained)?;

        let implied = if user.name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        if !user.is_in(implied) && !user.is_in(UNAUTHENTICATED) {
            user.groups.push(implied.to_owned());
        }
        Ok(user)
    }
}

fn check_groups(
    policy: &Policy,
    a: Attributes<'_>,
    groups: &[String],
    constrained: bool,
) -> Result<(), Status> {
    if constrained {
        if groups.iter().any(String::is_empty) {
            return Err(a.forbidden("impersonating the empty string group is not allowed"));
        }
        if groups.iter().any(|g| g == MASTERS) {
            return Err(a.name(MASTERS).forbidden("impersonating the system:masters group is not allowed"));
        }
        if groups.len() >= MANY && policy.allows(&a.name("*")).allowed {
            return Ok(());
        }
    }
    groups.iter().try_for_each(|g| allowed(policy, &a.name(g)))
}

fn check_extra(policy: &Policy, a: Attributes<'_>, wanted: &User, constrained: bool) -> Result<(), Status> {
    if constrained {
        for (key, values) in &wanted.extra {
            let why = if key.is_empty() {
                "impersonating the empty string key in extra is not allowed"
            } else if !is_domain_prefixed_path(key) {
                "impersonating an invalid key in extra is not allowed"
            } else if values.iter().any(String::is_empty) {
                "impersonating the empty string value in extra is not allowed"
            } else {
                continue;
            };
            return Err(a.forbidden(why));
        }
        let count: usize = wanted.extra.values().map(Vec::len).sum();
        if count >= MANY && policy.allows(&a.subresource("*").name("*")).allowed {
            return Ok(());
        }
    }
    for (key, values) in &wanted.extra {
        for value in values {
            allowed(policy, &a.subresource(key).name(value))?;
        }
    }
    Ok(())
}

/// `example.com/path`, in lower case.
fn is_domain_prefixed_path(key: &str) -> bool {
    let Some((domain, path)) = key.split_once('/') else { return false };
    let in_path = |c: char| c.is_ascii_alphanumeric() || "/%:@!$&'()*+,;=._~-".contains(c);
    validation::dns1123_subdomain_value(domain).is_empty()
        && !path.is_empty()
        && path.chars().all(in_path)
        && key.to_lowercase() == key
}

fn allowed(policy: &Policy, a: &Attributes<'_>) -> Result<(), Status> {
    let decision = policy.allows(a);
    if decision.allowed { Ok(()) } else { Err(a.forbidden(&decision.reason)) }
}
