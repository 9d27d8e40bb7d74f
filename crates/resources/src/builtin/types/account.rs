//! ServiceAccounts, PodTemplates and ReplicationControllers.

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error};
use homeostat_model::validation;
use serde_json::Value;

use super::apps::replica_status;
use super::pod::default::template as default_template;
use super::pod::{spec as pod_spec, warnings};
use crate::builtin::rules::selects;
use crate::builtin::value::{at, empty, inside, int, non_negative, set};
use crate::strategy::{Cx, Strategy};

/// ServiceAccounts.
pub(super) struct ServiceAccounts;
impl Strategy for ServiceAccounts {}

/// PodTemplates.
pub(super) struct PodTemplates;

impl Strategy for PodTemplates {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        inside(object, "template", default_template);
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        pod_spec::template(&mut errors, "template", &new["template"]);
        errors
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings("template.spec", at(new, "template.spec"))
    }
}

/// ReplicationControllers.
pub(super) struct ReplicationControllers;

impl Strategy for ReplicationControllers {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        inside(object, "spec.template", default_template);
        let labels = at(object, "spec.template.metadata.labels").clone();
        if !labels.is_null() {
            if empty(object, "spec.selector") {
                set(object, "spec.selector", labels.clone());
            }
            if empty(object, "metadata.labels") {
                set(object, "metadata.labels", labels);
            }
        }
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        non_negative(&mut errors, spec, "spec", "minReadySeconds");
        if empty(spec, "selector") {
            errors.push(Error::required("spec.selector", ""));
        }
        errors.extend(validation::labels(at(spec, "selector"), "spec.selector"));
        non_negative(&mut errors, spec, "spec", "replicas");
        if at(spec, "template").is_null() {
            errors.push(Error::required("spec.template", ""));
            return errors;
        }
        let labels = at(spec, "template.metadata.labels");
        let selector = serde_json::json!({"matchLabels": at(spec, "selector")});
        if !empty(spec, "selector") && !selects(&selector, labels) {
            let why = "`selector` does not match template `labels`";
            errors.push(Error::invalid("spec.template.metadata.labels", labels.clone(), why));
        }
        pod_spec::template(&mut errors, "spec.template", at(spec, "template"));
        let policy = crate::builtin::value::text(spec, "template.spec.restartPolicy");
        if matches!(policy, "OnFailure" | "Never") {
            errors.push(Error::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
        }
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        replica_status(&new["status"])
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("status.replicas", int(object, "status.replicas").unwrap_or_default().to_string())]
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["status.replicas"]
    }
}
