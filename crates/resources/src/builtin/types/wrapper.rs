//! What all built-in types have in common, around the strategy of one.

use homeostat_model::{GroupVersion, Timestamp, field};
use serde_json::{Map, Value};

use super::facts::{Facts, Status};
use crate::builtin::shape;
use crate::builtin::tables::Row;
use crate::builtin::value::carry;
use crate::strategy::{Cx, Propagation, Strategy};

/// A built-in type: its own strategy, the form of its encoding, the small facts, and its table row.
pub(super) struct BuiltIn {
    pub(super) definitions: Vec<(GroupVersion, String)>,
    pub(super) inner: Box<dyn Strategy>,
    pub(super) facts: Facts,
    pub(super) row: Option<Row>,
}

impl BuiltIn {
    fn definition(&self, object: &Value) -> Option<&str> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let known = self.definitions.iter().find(|(gv, _)| gv.to_string() == api_version);
        known.or(self.definitions.first()).map(|(_, name)| &**name)
    }
}

/// Subresources whose body is the object and that may change only a part of it, as `status` does.
fn side_door(cx: &Cx<'_>) -> bool {
    matches!(cx.subresource, "approval" | "ephemeralcontainers" | "finalize" | "resize")
}

impl Strategy for BuiltIn {
    fn default(&self, gv: &GroupVersion, object: &mut Value) {
        let known = self.definitions.iter().find(|(known, _)| known == gv);
        if let Some((_, name)) = known.or(self.definitions.first()) {
            shape::normalize(name, object);
        }
        self.inner.default(gv, object);
    }

    fn empty(&self, gv: &GroupVersion) -> Value {
        let known = self.definitions.iter().find(|(known, _)| known == gv).or(self.definitions.first());
        known.map_or(Value::Null, |(_, name)| shape::empty(name))
    }

    fn prepare_create(&self, cx: &Cx<'_>, new: &mut Value) {
        if self.facts.status == Status::Dropped
            && let Some(map) = new.as_object_mut()
        {
            map.insert("status".into(), Value::Object(Map::new()));
        }
        self.inner.prepare_create(cx, new);
        if let Some(name) = self.definition(new) {
            shape::normalize_field(name, new, "status");
        }
    }

    fn prepare_update(&self, cx: &Cx<'_>, new: &mut Value, old: &Value) {
        if side_door(cx) {
            return self.prepare_status(cx, new, old);
        }
        // The server itself binds pods: node, conditions and annotations at once.
        if cx.subresource == "binding" {
            return;
        }
        if self.facts.status != Status::None {
            carry(new, old, "status");
        }
        self.inner.prepare_update(cx, new, old);
    }

    fn prepare_status(&self, cx: &Cx<'_>, new: &mut Value, old: &Value) {
        if matches!(cx.subresource, "status" | "approval") {
            for key in old.as_object().into_iter().flatten().map(|(k, _)| k) {
                if !matches!(&**key, "apiVersion" | "kind" | "metadata" | "status") {
                    carry(new, old, key);
                }
            }
            if let (Some(map), Some(before)) = (new.as_object_mut(), old.as_object()) {
                map.retain(|k, _| k == "status" || before.contains_key(k));
            }
        }
        if self.facts.status_keeps_metadata {
            for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
                carry(new, old, &format!("metadata.{key}"));
            }
        }
        self.inner.prepare_status(cx, new, old);
    }

    fn validate(&self, cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        self.inner.validate(cx, new)
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        if side_door(cx) {
            return self.validate_status(cx, new, old);
        }
        if cx.subresource == "binding" {
            return Vec::new();
        }
        self.inner.validate_update(cx, new, old)
    }

    fn validate_status(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        self.inner.validate_status(cx, new, old)
    }

    fn warnings(&self, cx: &Cx<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        self.inner.warnings(cx, new, old)
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        self.inner.validate_name(name, prefix)
    }

    fn has_generation(&self) -> bool {
        self.facts.generation
    }

    fn spec_changed(&self, new: &Value, old: &Value) -> bool {
        self.inner.spec_changed(new, old)
    }

    fn create_on_update(&self) -> bool {
        self.facts.create_on_update
    }

    fn unconditional_update(&self) -> bool {
        self.facts.unconditional_update
    }

    fn delete_returns_object(&self) -> bool {
        self.facts.delete_returns_object
    }

    fn default_propagation(&self) -> Propagation {
        self.facts.propagation
    }

    fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        self.inner.grace_period(object, requested)
    }

    fn mark_deleted(&self, cx: &Cx<'_>, object: &mut Value) -> bool {
        self.inner.mark_deleted(cx, object)
    }

    fn holds_deletion(&self, object: &Value) -> bool {
        self.inner.holds_deletion(object)
    }

    fn row(&self, object: &Value, now: Timestamp) -> Option<Vec<Value>> {
        self.row.map_or_else(|| self.inner.row(object, now), |row| Some(row(object, now)))
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        self.inner.selectable(object)
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        self.inner.selectable_labels()
    }

    fn converts_metadata(&self) -> bool {
        self.inner.converts_metadata()
    }

    fn convert(&self, object: &mut Value, to: &GroupVersion) {
        self.inner.convert(object, to);
    }
}
