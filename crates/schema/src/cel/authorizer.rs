//! `authorizer`: what a user or service account may do, asked from within an expression.
//!
//! Who decides is the caller's [`Authorizer`]; here are the values that gather a question. Source: Kubernetes' `authz`
//! library.

use homeostat_model::validation;

use super::eval::{Eval, Out, fault};
use super::value::Val;

/// What one check costs.
const CHECK: u64 = 350_000;

/// Decides what users may do.
pub trait Authorizer: Send + Sync {
    /// Answers a question.
    fn check(&self, question: &Question<'_>) -> Answer;

    /// The object that the request is about.
    fn request_resource(&self) -> RequestResource;
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Namespace and name of a service account; otherwise whoever makes the request is meant.
    pub service_account: Option<(&'a str, &'a str)>,
    /// The verb.
    pub verb: &'a str,
    /// A path that belongs to no resource; then only this and the verb count.
    pub path: Option<&'a str>,
    /// API group.
    pub group: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// Name, or empty.
    pub name: &'a str,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, in the authorizer's words.
    pub reason: String,
    /// Why it could not be told.
    pub error: Option<String>,
}

/// An object that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestResource {
    /// API group.
    pub group: String,
    /// Plural.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name, or empty.
    pub name: String,
}

/// A value on the way to a question, and its answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Authz {
    Authorizer(Who),
    Path(Who, String),
    Group(Who, String),
    Resource(Who, RequestResource),
    Decision(Answer),
}

/// Namespace and name of a service account, or whoever makes the request.
type Who = Option<(String, String)>;

impl Authz {
    /// The type's name.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Self::Path(..) => "kubernetes.authorization.PathCheck",
            Self::Group(..) => "kubernetes.authorization.GroupCheck",
            Self::Resource(..) => "kubernetes.authorization.ResourceCheck",
            Self::Decision(_) => "kubernetes.authorization.Decision",
        }
    }
}

/// `authorizer.requestResource`.
pub(super) fn request_resource(authorizer: &dyn Authorizer) -> Val {
    Val::authz(Authz::Resource(None, authorizer.request_resource()))
}

/// Calls a method.
pub(super) fn call(eval: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Option<Out> {
    let Some(Val::Authz(value)) = target else { return None };
    let made = |v: Authz| Some(Ok(Val::authz(v)));
    match (&**value, name, args) {
        (Authz::Authorizer(who), "path", [Val::String(path)]) => match path.trim().is_empty() {
            true => Some(fault("path must not be empty")),
            false => made(Authz::Path(who.clone(), path.to_string())),
        },
        (Authz::Authorizer(who), "group", [Val::String(group)]) => {
            made(Authz::Group(who.clone(), group.to_string()))
        }
        (Authz::Authorizer(_), "serviceAccount", [Val::String(namespace), Val::String(account)]) => {
            if !validation::dns1123_subdomain(account, false).is_empty() {
                return Some(fault("Invalid service account name"));
            }
            if !validation::dns1123_label(namespace, false).is_empty() {
                return Some(fault("Invalid service account namespace"));
            }
            made(Authz::Authorizer(Some((namespace.to_string(), account.to_string()))))
        }
        (Authz::Group(who, group), "resource", [Val::String(resource)]) => {
            if resource.trim().is_empty() {
                return Some(fault("resource must not be empty"));
            }
            let (group, resource) = (group.clone(), resource.to_string());
            made(Authz::Resource(who.clone(), RequestResource { group, resource, ..Default::default() }))
        }
        (Authz::Resource(who, r), method, [Val::String(s)]) if method != "check" => {
            let mut r = r.clone();
            match method {
                "subresource" => r.subresource = s.to_string(),
                "namespace" => r.namespace = s.to_string(),
                "name" => r.name = s.to_string(),
                // RBAC does not look at selectors.
                "fieldSelector" | "labelSelector" => {}
                _ => return None,
            }
            made(Authz::Resource(who.clone(), r))
        }
        (Authz::Path(who, path), "check", [Val::String(verb)]) => {
            let nothing = RequestResource::default();
            Some(check(eval, who, verb, Some(path), &nothing))
        }
        (Authz::Resource(who, r), "check", [Val::String(verb)]) => Some(check(eval, who, verb, None, r)),
        (Authz::Decision(answer), _, []) => Some(Ok(match name {
            "allowed" => Val::Bool(answer.allowed),
            "reason" => Val::text(&answer.reason),
            "errored" => Val::Bool(answer.error.is_some()),
            "error" => Val::text(answer.error.as_deref().unwrap_or_default()),
            _ => return None,
        })),
        _ => None,
    }
}

fn check(eval: &mut Eval<'_>, who: &Who, verb: &str, path: Option<&str>, r: &RequestResource) -> Out {
    eval.charge(CHECK)?;
    let Some(authorizer) = eval.authorizer else { return fault("no such attribute(s): authorizer") };
    let answer = authorizer.check(&Question {
        service_account: who.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str())),
        verb,
        path,
        group: &r.group,
        resource: &r.resource,
        subresource: &r.subresource,
        namespace: &r.namespace,
        name: &r.name,
    });
    Ok(Val::authz(Authz::Decision(answer)))
}
