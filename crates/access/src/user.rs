//! The user of a request, and the names that the API reserves for users and groups.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// User name of requests without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// Group of everyone who has proved who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of everyone else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Group that may do everything, whatever the policy says.
pub const MASTERS: &str = "system:masters";
/// Group of kubelets.
pub const NODES: &str = "system:nodes";
/// Key in [`User::extra`] that tells which credential was used.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct User {
    /// User name.
    pub name: String,
    /// Identifier that outlives a reuse of the name; may be empty.
    pub uid: String,
    /// Groups, in the order in which they were found.
    pub groups: Vec<String>,
    /// Whatever else the authenticator knows.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user with groups, as they are given.
    pub fn new<G: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Self {
        Self { name: name.into(), groups: groups.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// An administrator: a member of `system:masters`.
    pub fn administrator(name: impl Into<String>) -> Self {
        Self::new(name, [MASTERS, AUTHENTICATED])
    }

    /// A service account, in the groups that all of its kind are in.
    pub fn service_account(namespace: &str, name: &str, uid: impl Into<String>) -> Self {
        Self {
            name: service_account_username(namespace, name),
            uid: uid.into(),
            groups: service_account_groups(namespace).to_vec(),
            extra: BTreeMap::new(),
        }
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Adds `system:authenticated`, unless the user is in it or is nobody.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) && self.name != ANONYMOUS {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// As `authentication.k8s.io/v1` UserInfo; empty parts are left out.
    pub fn to_value(&self) -> Value {
        let mut out = Map::new();
        if !self.name.is_empty() {
            out.insert("username".into(), json!(self.name));
        }
        if !self.uid.is_empty() {
            out.insert("uid".into(), json!(self.uid));
        }
        if !self.groups.is_empty() {
            out.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            out.insert("extra".into(), json!(self.extra));
        }
        Value::Object(out)
    }
}

/// `system:serviceaccount:namespace:name`.
pub fn service_account_username(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// The groups that every service account of a namespace is in.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Namespace and name of a service account's user name; `None` for other users and for malformed names.
pub fn split_service_account(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let valid = homeostat_model::validation::dns1123_label(namespace, false).is_empty()
        && homeostat_model::validation::dns1123_subdomain(name, false).is_empty();
    valid.then_some((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_names() {
        for (name, want) in [
            ("system:serviceaccount:a:b", Some(("a", "b"))),
            ("system:serviceaccount:a:b.c", Some(("a", "b.c"))),
            ("system:serviceaccount:a:b:c", None),
            ("system:serviceaccount:a", None),
            ("system:serviceaccount::b", None),
            ("jane", None),
        ] {
            assert_eq!(split_service_account(name), want, "{name}");
        }
    }

    #[test]
    fn user_info_leaves_out_what_is_empty() {
        assert_eq!(User::default().to_value(), json!({}));
        assert_eq!(
            User::service_account("a", "b", "u").authenticated().to_value(),
            json!({"username": "system:serviceaccount:a:b", "uid": "u",
                "groups": ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]})
        );
        assert_eq!(User::anonymous().authenticated().groups, [UNAUTHENTICATED]);
    }
}
