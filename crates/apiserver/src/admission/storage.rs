//! Plugins of storage: a claim that names no class gets the default one (DefaultStorageClass), and claims and volumes
//! leave only when nobody uses them (StorageObjectInUseProtection).

use homeostat_resources::builtin::admit;
use serde_json::Value;

use super::{Operation, Subject};
use crate::read;
use crate::write::Writing;

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
    let all: Vec<Value> =
        snapshot.range(&classes.resource.collection, "", None).map(|r| read::stored(r, &classes)).collect();
    if let Some(name) = admit::default_storage_class(&all) {
        claim["spec"]["storageClassName"] = name.into();
    }
}

pub(super) fn protect(w: &Writing<'_>, subject: &Subject, object: &mut Value) {
    let core = w.target.resource.id.group.is_empty() && w.subresource.is_empty();
    if core
        && subject.operation == Operation::Create
        && w.server.config.admits("StorageObjectInUseProtection")
    {
        admit::protect_storage(&w.target.resource.kind, object);
    }
}
