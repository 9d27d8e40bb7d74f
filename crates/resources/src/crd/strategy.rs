//! The strategy of the built-in type CustomResourceDefinition.

use homeostat_model::{GroupVersion, Timestamp, field};
use serde_json::Value;

use crate::strategy::{Cx, Strategy};

/// Defaults, validates and keeps the status of CRDs. Naming, establishing and deleting objects happen after the
/// write: see [`super::reconcile`].
pub struct CrdStrategy;

impl Strategy for CrdStrategy {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        super::default(object);
    }

    fn prepare_create(&self, _cx: &Cx<'_>, new: &mut Value) {
        super::prepare_create(new);
    }

    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        super::prepare_update(new, old);
    }

    fn prepare_status(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        super::prepare_status(new, old);
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        super::validate_create(new)
    }

    fn validate_update(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        super::validate_update(new, old)
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        super::validate_status(new, old)
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        super::warnings(new, old)
    }

    fn mark_deleted(&self, cx: &Cx<'_>, object: &mut Value) -> bool {
        let now = homeostat_model::clock::seconds(cx.now);
        object["metadata"]["deletionTimestamp"] = now.as_str().into();
        super::set_deletion(object, &super::Deletion::Pending, &now);
        true
    }

    fn row(&self, object: &Value, _now: Timestamp) -> Option<Vec<Value>> {
        let metadata = &object["metadata"];
        Some(vec![metadata["name"].clone(), metadata["creationTimestamp"].clone()])
    }
}
