//! What Deployments, ReplicaSets, ReplicationControllers, DaemonSets and StatefulSets share: a selector, a template
//! that it must select, and counters.

use homeostat_model::field::{Error, child};
use homeostat_model::validation;
use serde_json::Value;

use super::pod::spec;
use crate::builtin::rules::{empty_selector, selector_error, selects};
use crate::builtin::value::{Errors, at, has, int, non_negative, text};

/// `spec.selector` is there and selects something.
pub(super) fn selector(errors: &mut Errors, object: &Value, empty: &str) {
    let selector = at(object, "spec.selector");
    if selector.is_null() {
        return errors.push(Error::required("spec.selector", ""));
    }
    errors.extend(validation::label_selector(selector, "spec.selector"));
    if empty_selector(selector) {
        errors.push(Error::invalid("spec.selector", selector.clone(), empty));
    }
}

/// `spec.template`: labels that the selector selects, pods that run for ever.
pub(super) fn template(errors: &mut Errors, object: &Value, owner: &str) {
    let selector = at(object, "spec.selector");
    let template = at(object, "spec.template");
    let labels = at(template, "metadata.labels");
    if (selector.is_null() || !empty_selector(selector)) && !selects(selector, labels) {
        let why = "`selector` does not match template `labels`";
        errors.push(Error::invalid("spec.template.metadata.labels", labels.clone(), why));
    }
    spec::template(errors, "spec.template", template);
    if text(template, "spec.restartPolicy") != "Always" && has(template, "spec.restartPolicy") {
        let policy = text(template, "spec.restartPolicy");
        // An unknown policy has been reported by the rules of pods.
        if matches!(policy, "OnFailure" | "Never") {
            errors.push(Error::not_supported("spec.template.spec.restartPolicy", policy, &["Always"]));
        }
    }
    if has(template, "spec.activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.push(Error::forbidden("spec.template.spec.activeDeadlineSeconds", why));
    }
}

/// The selector is as it was.
pub(super) fn selector_unchanged(errors: &mut Errors, new: &Value, old: &Value) {
    let selector = at(new, "spec.selector");
    if selector != at(old, "spec.selector") {
        errors.push(selector_error("spec.selector", selector, crate::builtin::value::IMMUTABLE));
    }
}

/// Counters of a status: none below zero, and none of the second above the first.
pub(super) fn counters(errors: &mut Errors, status: &Value, all: &[&str], bounded: &[(&str, &str, &str)]) {
    for field in all {
        non_negative(errors, status, "status", field);
    }
    for (field, limit, why) in bounded {
        let (n, max) = (int(status, field).unwrap_or_default(), int(status, limit).unwrap_or_default());
        if n > max {
            errors.push(Error::invalid(child("status", field), n, *why));
        }
    }
}

/// `collisionCount` counts.
pub(super) fn collisions(errors: &mut Errors, new: &Value, old: &Value) {
    non_negative(errors, &new["status"], "status", "collisionCount");
    if let Some(before) = int(old, "status.collisionCount") {
        let now = int(new, "status.collisionCount");
        if now.is_none_or(|n| n < before) {
            let why = "cannot be decremented";
            errors.push(Error::invalid("status.collisionCount", now.map_or(Value::Null, Value::from), why));
        }
    }
}
