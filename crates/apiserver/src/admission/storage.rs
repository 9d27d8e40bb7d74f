//! DefaultStorageClass: a claim that names no class gets the default one.

use serde_json::Value;

use super::{Operation, Subject};
use crate::object;
use crate::read;
use crate::write::Writing;

const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn default_class(w: &Writing<'_>, subject: &Subject, claim: &mut Value) {
    let id = &w.target.resource.id;
    let claims = id.group.is_empty() && &*id.resource == "persistentvolumeclaims" && w.subresource.is_empty();
    if !claims || subject.operation != Operation::Create || !w.server.config.admits("DefaultStorageClass") {
        return;
    }
    let old_form = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].is_string();
    // An empty name is a choice, too.
    if old_form || !claim["spec"].is_object() || !claim["spec"]["storageClassName"].is_null() {
        return;
    }
    let Some(classes) = w.server.registry.table().named("storage.k8s.io", "storageclasses") else { return };
    let snapshot = w.server.config.store.snapshot();
    let newest = snapshot
        .range(&classes.resource.collection, "", None)
        .map(|r| read::stored(r, &classes))
        .filter(|c| c["metadata"]["annotations"][DEFAULT] == "true")
        .max_by(|a, b| {
            let created = |c: &Value| object::meta_str(c, "creationTimestamp").to_owned();
            created(a).cmp(&created(b)).then_with(|| object::name(b).cmp(object::name(a)))
        });
    if let Some(class) = newest {
        claim["spec"]["storageClassName"] = object::name(&class).into();
    }
}
