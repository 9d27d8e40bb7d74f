//! Namespaces.

use homeostat_model::field::{self, Error, index};
use homeostat_model::validation::{dns1123_label, qualified_name};
use homeostat_model::{GroupVersion, clock};
use serde_json::{Value, json};

use crate::builtin::value::{Errors, at, carry, empty, items, object, set, text, wrong};
use crate::strategy::{Cx, Strategy};

/// Namespaces.
pub(super) struct Namespaces;

const FINALIZER: &str = "kubernetes";

impl Strategy for Namespaces {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        let name = at(object, "metadata.name").clone();
        if name.as_str().is_some_and(|n| !n.is_empty()) {
            self::object(object, "metadata.labels").insert("kubernetes.io/metadata.name".into(), name);
        }
    }

    fn prepare_create(&self, _cx: &Cx<'_>, new: &mut Value) {
        new["status"] = json!({"phase": "Active"});
        let has = texts_contain(new, FINALIZER);
        if !has {
            let list = object(new, "spec").entry("finalizers").or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(FINALIZER.into());
            }
        }
        // Names that the server has generated are known only now.
        let name = at(new, "metadata.name").clone();
        if !empty(new, "metadata.name") {
            object(new, "metadata.labels").insert("kubernetes.io/metadata.name".into(), name);
        }
    }

    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        carry(new, old, "spec.finalizers");
        carry(new, old, "status");
    }

    fn prepare_status(&self, cx: &Cx<'_>, new: &mut Value, old: &Value) {
        if cx.subresource == "finalize" {
            carry(new, old, "status");
        }
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        dns1123_label(name, prefix)
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        finalizers(&mut errors, new);
        errors
    }

    fn validate_status(&self, cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if cx.subresource == "finalize" {
            finalizers(&mut errors, new);
            return errors;
        }
        let (phase, leaving) = (text(new, "status.phase"), !empty(new, "metadata.deletionTimestamp"));
        if leaving && phase != "Terminating" {
            let why = "may only be 'Terminating' if `deletionTimestamp` is not empty";
            errors.push(Error::invalid("status.Phase", phase, why));
        }
        if !leaving && phase != "Active" {
            let why = "may only be 'Active' if `deletionTimestamp` is empty";
            errors.push(Error::invalid("status.Phase", phase, why));
        }
        errors
    }

    fn mark_deleted(&self, cx: &Cx<'_>, object: &mut Value) -> bool {
        set(object, "metadata.deletionTimestamp", clock::seconds(cx.now));
        set(object, "status.phase", "Terminating");
        true
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        !items(object, "spec.finalizers").is_empty()
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("status.phase", text(object, "status.phase").to_owned())]
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["status.phase"]
    }
}

fn texts_contain(namespace: &Value, name: &str) -> bool {
    items(namespace, "spec.finalizers").iter().any(|f| f == name)
}

fn finalizers(errors: &mut Errors, namespace: &Value) {
    for (i, finalizer) in items(namespace, "spec.finalizers").iter().filter_map(Value::as_str).enumerate() {
        let path = index("spec.finalizers", i);
        wrong(errors, &path, finalizer, qualified_name(finalizer));
        let standard = matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion");
        if !finalizer.contains('/') && !standard {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(Error::invalid(path, finalizer, why));
        }
    }
}
