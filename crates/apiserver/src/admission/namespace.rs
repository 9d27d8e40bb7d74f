//! NamespaceLifecycle: nothing is created in a namespace that is absent or terminating, and the namespaces that
//! the system needs stay.

use homeostat_model::status::Result;
use homeostat_model::{GroupResource, Status};

use super::{Operation, Subject};
use crate::write::Writing;

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) fn check(w: &Writing<'_>, subject: &Subject) -> Result<()> {
    if !w.server.config.admits("NamespaceLifecycle") {
        return Ok(());
    }
    let id = &w.target.resource.id;
    if subject.operation == Operation::Delete && id.group.is_empty() && &*id.resource == "namespaces" {
        if IMMORTAL.contains(&subject.name.as_str()) {
            return Err(Status::forbidden(id, &subject.name, "this namespace may not be deleted"));
        }
        return Ok(());
    }
    // Reviews say something about a namespace; they are not in it.
    if subject.operation != Operation::Create || w.namespace.is_empty() || !w.target.resource.namespaced {
        return Ok(());
    }
    if &*id.resource == "localsubjectaccessreviews" {
        return Ok(());
    }
    let Some(record) = w.server.config.store.get("namespaces", w.namespace) else {
        return Err(Status::not_found(&GroupResource::new("", "namespaces"), w.namespace));
    };
    if !record.meta.deleting {
        return Ok(());
    }
    let why =
        format!("unable to create new content in namespace {} because it is being terminated", w.namespace);
    let name = &subject.name;
    Err(Status::forbidden(id, name, &why).cause(
        "NamespaceTerminating",
        format!("namespace {} is being terminated", w.namespace),
        "metadata.namespace",
    ))
}
