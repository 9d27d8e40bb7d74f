//! What of a pod may change: images, a shorter deadline, more tolerations, and what the subresources are for.

use homeostat_model::field::{Error, child, index};
use serde_json::Value;

use super::spec::tolerations;
use crate::builtin::rules;
use crate::builtin::value::{Errors, at, carry, each, has, int, items, non_negative, remove, set, text};

/// Rules of an update of the pod itself.
pub(super) fn pod(errors: &mut Errors, new: &Value, old: &Value) {
    for list in ["containers", "initContainers"] {
        if items(&new["spec"], list).len() != items(&old["spec"], list).len() {
            let what = if list == "containers" { "containers" } else { "initContainers" };
            let why = format!(
                "pod updates may not add or remove {}",
                if what == "containers" { what } else { "containers" }
            );
            errors.push(Error::forbidden(child("spec", what), why));
            return;
        }
    }
    for list in ["containers", "initContainers"] {
        for (i, container) in items(&new["spec"], list).iter().enumerate() {
            rules::required(errors, container, &index(&child("spec", list), i), "image");
        }
    }
    deadline(errors, new, old);
    added_tolerations(errors, new, old);
    if !gates_only_removed(errors, new, old) {
        return;
    }
    let mut allowed = new["spec"].clone();
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        carry(&mut allowed, &old["spec"], field);
    }
    for list in ["containers", "initContainers"] {
        let images: Vec<Value> = items(&old["spec"], list).iter().map(|c| at(c, "image").clone()).collect();
        let mut images = images.into_iter();
        each(&mut allowed, list, |container| match images.next() {
            Some(Value::Null) | None => drop(remove(container, "image")),
            Some(image) => set(container, "image", image),
        });
    }
    if int(&old["spec"], "terminationGracePeriodSeconds").is_some_and(|s| s < 0)
        && int(&allowed, "terminationGracePeriodSeconds") == Some(1)
    {
        carry(&mut allowed, &old["spec"], "terminationGracePeriodSeconds");
    }
    if !items(&old["spec"], "schedulingGates").is_empty() {
        // While gated, a pod's node selector and affinity may become stricter; ours may change in any way.
        for field in ["nodeSelector", "affinity"] {
            carry(&mut allowed, &old["spec"], field);
        }
    }
    if allowed != old["spec"] {
        let why = format!(
            "pod updates may not change fields other than `spec.containers[*].image`,\
             `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
             existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
             previously negative)\n{}",
            difference("spec", &old["spec"], &allowed)
        );
        errors.push(Error::forbidden("spec", why));
    }
}

/// Fields that differ, one a line: what was there, and what is asked for.
pub(crate) fn difference(path: &str, old: &Value, new: &Value) -> String {
    fn walk(path: &str, old: &Value, new: &Value, out: &mut Vec<String>) {
        match (old, new) {
            _ if old == new => {}
            (Value::Object(o), Value::Object(n)) => {
                let keys: std::collections::BTreeSet<&String> = o.keys().chain(n.keys()).collect();
                for key in keys {
                    let (o, n) = (o.get(key).unwrap_or(&Value::Null), n.get(key).unwrap_or(&Value::Null));
                    walk(&child(path, key), o, n, out);
                }
            }
            (Value::Array(o), Value::Array(n)) if o.len() == n.len() => {
                for (i, (o, n)) in o.iter().zip(n).enumerate() {
                    walk(&index(path, i), o, n, out);
                }
            }
            _ => {
                out.push(format!("- \t{path}: {old}"));
                out.push(format!("+ \t{path}: {new}"));
            }
        }
    }
    let mut out = Vec::new();
    walk(path, old, new, &mut out);
    out.push(String::new());
    out.join("\n")
}

fn deadline(errors: &mut Errors, new: &Value, old: &Value) {
    let path = "spec.activeDeadlineSeconds";
    let (now, before) = (int(new, path), int(old, path));
    match (now, before) {
        (Some(n), _) if !(0..=i64::from(i32::MAX)).contains(&n) => {
            errors.push(Error::invalid(path, n, "must be between 0 and 2147483647, inclusive"));
        }
        (Some(n), Some(o)) if n > o => {
            errors.push(Error::invalid(path, n, "must be less than or equal to previous value"));
        }
        (None, Some(_)) => {
            errors.push(Error::invalid(
                path,
                Value::Null,
                "must not update from a positive integer to nil value",
            ));
        }
        _ => {}
    }
}

fn added_tolerations(errors: &mut Errors, new: &Value, old: &Value) {
    let path = "spec.tolerations";
    let plain = |t: &Value| {
        let mut t = t.clone();
        drop(remove(&mut t, "tolerationSeconds"));
        t
    };
    for gone in items(old, path) {
        if !items(new, path).iter().any(|t| plain(t) == plain(gone)) {
            let why = "existing toleration can not be modified except its tolerationSeconds";
            return errors.push(Error::forbidden(path, why));
        }
    }
    tolerations(errors, path, items(new, path));
}

fn gates_only_removed(errors: &mut Errors, new: &Value, old: &Value) -> bool {
    let path = "spec.schedulingGates";
    let added: Vec<&Value> = items(new, path).iter().filter(|g| !items(old, path).contains(g)).collect();
    let Some(first) = added.first() else { return true };
    let why = format!("only deletion is allowed, but found new scheduling gate '{}'", text(first, "name"));
    errors.push(Error::forbidden(path, why));
    false
}

/// Rules of a status update.
pub(super) fn status(errors: &mut Errors, new: &Value, old: &Value) {
    if text(old, "status.nominatedNodeName") != text(new, "status.nominatedNodeName") {
        let name = text(new, "status.nominatedNodeName");
        let wrong = homeostat_model::validation::dns1123_subdomain_value(name);
        if !name.is_empty() {
            crate::builtin::value::wrong(errors, "status.nominatedNodeName", name, wrong);
        }
    }
    if has(old, "status.qosClass") && text(old, "status.qosClass") != text(new, "status.qosClass") {
        let class = text(new, "status.qosClass");
        errors.push(Error::invalid("status.qosClass", class, crate::builtin::value::IMMUTABLE));
    }
    for list in ["containerStatuses", "initContainerStatuses"] {
        restarts(errors, new, old, list);
    }
    for (i, condition) in items(new, "status.conditions").iter().enumerate() {
        let kind = text(condition, "type");
        if matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            continue;
        }
        let path = format!("status.conditions[{i}].Type");
        crate::builtin::value::wrong(errors, &path, kind, homeostat_model::validation::qualified_name(kind));
    }
    non_negative(errors, &new["status"], "status", "observedGeneration");
    for (i, ip) in items(new, "status.podIPs").iter().enumerate() {
        if rules::ip(text(ip, "ip")).is_none() {
            errors.push(Error::invalid(format!("status.podIPs[{i}]"), text(ip, "ip"), rules::IP));
        }
    }
}

/// Containers that ended for good stay ended.
fn restarts(errors: &mut Errors, new: &Value, old: &Value, list: &str) {
    if text(old, "spec.restartPolicy") == "Always" {
        return;
    }
    for was in items(&old["status"], list) {
        let failed = int(was, "state.terminated.exitCode").unwrap_or_default() != 0;
        if !has(was, "state.terminated") || (failed && text(old, "spec.restartPolicy") == "OnFailure") {
            continue;
        }
        let now = items(&new["status"], list).iter().position(|c| text(c, "name") == text(was, "name"));
        if let Some(i) = now
            && !has(&items(&new["status"], list)[i], "state.terminated")
        {
            let path = format!("status.{list}[{i}].state");
            errors.push(Error::forbidden(path, "may not be transitioned to non-terminated state"));
        }
    }
}

/// The only fields that a resize takes from its body.
pub(super) fn resize(new: &mut Value, old: &Value) {
    let wanted = new.clone();
    carry(new, old, "spec");
    for list in ["containers", "initContainers"] {
        each(new, &format!("spec.{list}"), |container| {
            let name = text(container, "name").to_owned();
            if let Some(asked) = items(&wanted["spec"], list).iter().find(|c| text(c, "name") == name) {
                carry(container, asked, "resources");
                carry(container, asked, "resizePolicy");
            }
        });
    }
}
