//! What a request's user has to do with the object: who asks for a certificate, and that nobody grants rights
//! that they do not hold.

use homeostat_access::rbac::escalation;
use homeostat_model::status::Result;
use serde_json::{Value, json};

use super::{Operation, Subject};
use crate::write::Writing;

/// A CertificateSigningRequest says who asks; the client cannot.
pub(super) fn requester(w: &Writing<'_>, object: &mut Value) {
    let id = &w.target.resource.id;
    let requests = &*id.group == "certificates.k8s.io" && &*id.resource == "certificatesigningrequests";
    if !requests || !object["spec"].is_object() {
        return;
    }
    let mut set = |key: &str, value: Value, empty: bool| {
        if let Some(spec) = object["spec"].as_object_mut() {
            match empty {
                true => spec.remove(key),
                false => spec.insert(key.to_owned(), value),
            };
        }
    };
    let user = w.user;
    set("username", json!(user.name), user.name.is_empty());
    set("uid", json!(user.uid), user.uid.is_empty());
    set("groups", json!(user.groups), user.groups.is_empty());
    set("extra", json!(user.extra), user.extra.is_empty());
}

/// Roles and bindings may not give more than their writer has.
pub(super) fn escalation(
    w: &Writing<'_>,
    subject: &Subject,
    object: &Value,
    old: Option<&Value>,
) -> Result<()> {
    let id = &w.target.resource.id;
    if &*id.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let policy = w.server.authority.policy(w.server.config.store.as_ref());
    let name = if subject.operation == Operation::Create { "" } else { subject.name.as_str() };
    escalation::check(
        &policy,
        &escalation::Write {
            user: w.user,
            resource: &id.resource,
            namespace: w.namespace,
            name,
            new: object,
            old,
        },
    )
}
