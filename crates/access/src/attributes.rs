//! What a request wants to do, as authorization sees it, and the answer to those who may not.

use homeostat_model::field::quote;
use homeostat_model::{GroupResource, Status};

use crate::User;

/// What a user wants to do. For a list, watch or deletecollection with `fieldSelector=metadata.name=x`, `name` is
/// `x`, as in the reference.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or whatever a subject
    /// access review asks for; the lower-case HTTP method for other paths.
    pub verb: &'a str,
    /// API group; empty for core.
    pub group: &'a str,
    /// API version; RBAC ignores it.
    pub version: &'a str,
    /// Lower-case plural.
    pub resource: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// Object's name, or empty.
    pub name: &'a str,
    /// Namespace, or empty. A request for a namespace itself has its name here too.
    pub namespace: &'a str,
    /// The URL's path.
    pub path: &'a str,
    /// Whether the request is for a resource; otherwise only `verb` and `path` count.
    pub resource_request: bool,
}

impl<'a> Attributes<'a> {
    /// A request for a resource, cluster-wide until a namespace is set.
    pub fn resource(user: &'a User, verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        Self {
            user,
            verb,
            group,
            version: "",
            resource,
            subresource: "",
            name: "",
            namespace: "",
            path: "",
            resource_request: true,
        }
    }

    /// A request for a path that belongs to no resource.
    pub fn path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        Self { path, resource_request: false, ..Self::resource(user, verb, "", "") }
    }

    /// In a namespace.
    #[must_use]
    pub fn namespace(self, namespace: &'a str) -> Self {
        Self { namespace, ..self }
    }

    /// Of one object.
    #[must_use]
    pub fn name(self, name: &'a str) -> Self {
        Self { name, ..self }
    }

    /// For a subresource.
    #[must_use]
    pub fn subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// What the user cannot do, in the reference's words.
    pub fn denial(&self) -> String {
        let (user, verb) = (quote(&self.user.name), self.verb);
        if !self.resource_request {
            return format!("User {user} cannot {verb} path {}", quote(self.path));
        }
        let resource = match self.subresource {
            "" => quote(self.resource),
            sub => quote(&format!("{}/{sub}", self.resource)),
        };
        let scope = match self.namespace {
            "" => "at the cluster scope".to_owned(),
            ns => format!("in the namespace {}", quote(ns)),
        };
        format!("User {user} cannot {verb} resource {resource} in API group {} {scope}", quote(self.group))
    }

    /// 403 for these attributes; `reason` is the authorizer's, and may be empty.
    pub fn forbidden(&self, reason: &str) -> Status {
        let mut why = self.denial();
        if !reason.is_empty() {
            why.push_str(": ");
            why.push_str(reason);
        }
        Status::forbidden(&GroupResource::new(self.group, self.resource), self.name, &why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_read_as_the_references() {
        let jane = User::new("jane", [""; 0]);
        let pods = Attributes::resource(&jane, "list", "", "pods");
        for (attributes, reason, want) in [
            (
                pods,
                "",
                "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
            ),
            (
                pods.namespace("d"),
                "",
                "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"d\"",
            ),
            (
                Attributes::resource(&jane, "patch", "apps", "deployments")
                    .subresource("scale")
                    .name("web")
                    .namespace("d"),
                "RBAC: no",
                "deployments.apps \"web\" is forbidden: User \"jane\" cannot patch resource \"deployments/scale\" in API group \"apps\" in the namespace \"d\": RBAC: no",
            ),
            (Attributes::path(&jane, "get", "/x"), "", "forbidden: User \"jane\" cannot get path \"/x\""),
        ] {
            assert_eq!(attributes.forbidden(reason).message, want);
        }
    }
}
