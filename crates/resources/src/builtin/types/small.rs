//! Types of a few rules each: Leases, PriorityClasses, RuntimeClasses, APIServices, flow control.

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{self, dns1123_label_value, dns1123_subdomain_value};
use serde_json::{Value, json};

use crate::builtin::rules;
use crate::builtin::value::{
    Errors, at, each, empty, has, int, items, non_negative, one_of, set, text, unchanged, wrong,
};
use crate::strategy::{Cx, Strategy};

/// Leases.
pub(super) struct Leases;

impl Strategy for Leases {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|s| *s <= 0) {
            errors.push(Error::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
        }
        non_negative(&mut errors, spec, "spec", "leaseTransitions");
        if has(spec, "strategy") && text(spec, "strategy").is_empty() {
            errors.push(Error::invalid("spec.strategy", "", "must be a non-empty string"));
        }
        if !empty(spec, "preferredHolder") && empty(spec, "strategy") {
            let why = "may only be specified if `strategy` is defined";
            errors.push(Error::forbidden("spec.preferredHolder", why));
        }
        errors
    }
}

/// PriorityClasses.
pub(super) struct PriorityClasses;

/// The highest value that users may give.
const HIGHEST: i64 = 1_000_000_000;

impl Strategy for PriorityClasses {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let (name, value) = (text(new, "metadata.name"), int(new, "value").unwrap_or_default());
        if name.starts_with("system-") {
            let known = match name {
                "system-cluster-critical" => value == 2_000_000_000,
                "system-node-critical" => value == 2_000_001_000,
                _ => false,
            };
            if !known {
                let why = format!(
                    "priority class names with 'system-' prefix are reserved for system use only. error: {name} is \
                     not a known system priority class"
                );
                errors.push(Error::forbidden("metadata.name", why));
            }
        } else if value > HIGHEST {
            let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
            errors.push(Error::forbidden("value", why));
        }
        one_of(&mut errors, new, "", "preemptionPolicy", &["Never", "PreemptLowerPriority"]);
        errors
    }

    fn validate_update(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if at(new, "value") != at(old, "value") {
            errors.push(Error::forbidden("value", "may not be changed in an update."));
        }
        unchanged(&mut errors, new, old, "preemptionPolicy");
        errors
    }
}

/// RuntimeClasses.
pub(super) struct RuntimeClasses;

impl Strategy for RuntimeClasses {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let handler = text(new, "handler");
        wrong(&mut errors, "handler", handler, dns1123_label_value(handler));
        if has(new, "overhead.podFixed") {
            let resources = json!({"limits": at(new, "overhead.podFixed")});
            let mut found = Vec::new();
            rules::container_resources(&mut found, "overhead.podFixed", &resources);
            errors.extend(found);
        }
        errors.extend(validation::labels(at(new, "scheduling.nodeSelector"), "scheduling.nodeSelector"));
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        unchanged(&mut errors, new, old, "handler");
        if errors.is_empty() {
            errors.extend(self.validate(cx, new));
        }
        errors
    }
}

/// APIServices.
pub(super) struct ApiServices;

impl Strategy for ApiServices {
    fn prepare_create(&self, cx: &Cx<'_>, new: &mut Value) {
        if !has(new, "spec.service") {
            let now = homeostat_model::clock::seconds(cx.now);
            set(
                new,
                "status.conditions",
                json!([{
                    "type": "Available", "status": "True", "reason": "Local", "lastTransitionTime": now,
                    "message": "Local APIServices are always available",
                }]),
            );
        }
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let (name, group, version) =
            (text(new, "metadata.name"), text(new, "spec.group"), text(new, "spec.version"));
        let wanted = format!("{version}.{group}");
        if name != wanted {
            errors.push(Error::invalid(
                "metadata.name",
                name,
                format!("must be `spec.version+\".\"+spec.group`: \"{wanted}\""),
            ));
        }
        if group.is_empty() && version != "v1" {
            errors.push(Error::required(
                "spec.group",
                "only v1 may have an empty group and it better be legacy kube",
            ));
        }
        if !group.is_empty() {
            wrong(&mut errors, "spec.group", group, dns1123_subdomain_value(group));
        }
        wrong(&mut errors, "spec.version", version, validation::dns1035_label(version, false));
        for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
            let value = int(new, &child("spec", field)).unwrap_or_default();
            if value <= 0 || value > max {
                let why = format!("must be positive and less than {max}");
                errors.push(Error::invalid(child("spec", field), value, why));
            }
        }
        let service = at(new, "spec.service");
        if service.is_null() {
            if !empty(new, "spec.caBundle") {
                let shown = format!("{} bytes", text(new, "spec.caBundle").len());
                errors.push(Error::invalid(
                    "spec.caBundle",
                    shown,
                    "local APIServices may not have a caBundle",
                ));
            }
        } else {
            for field in ["namespace", "name"] {
                rules::required(&mut errors, service, "spec.service", field);
            }
        }
        errors
    }
}

/// FlowSchemas and PriorityLevelConfigurations.
pub(super) struct FlowControl;

impl Strategy for FlowControl {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if text(new, "kind") == "FlowSchema" {
            flow_schema(&mut errors, &new["spec"]);
        } else {
            let allowed = ["Exempt", "Limited"];
            if !allowed.contains(&text(new, "spec.type")) {
                errors.push(Error::not_supported("spec.type", text(new, "spec.type"), &allowed));
            }
        }
        errors
    }
}

fn flow_schema(errors: &mut Errors, spec: &Value) {
    let precedence = int(spec, "matchingPrecedence").unwrap_or_default();
    if precedence <= 0 {
        errors.push(Error::invalid("spec.matchingPrecedence", precedence, "must be a positive value"));
    } else if precedence > 10_000 {
        let why = "must not be greater than 10000";
        errors.push(Error::invalid("spec.matchingPrecedence", precedence, why));
    }
    let level = text(spec, "priorityLevelConfiguration.name");
    if level.is_empty() {
        let why = "must reference a priority level";
        errors.push(Error::required("spec.priorityLevelConfiguration.name", why));
    }
    for (i, rule) in items(spec, "rules").iter().enumerate() {
        let path = index("spec.rules", i);
        if empty(rule, "subjects") {
            errors
                .push(Error::required(child(&path, "subjects"), "subjects must contain at least one value"));
        }
        if empty(rule, "resourceRules") && empty(rule, "nonResourceRules") {
            let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
            errors.push(Error::required(&*path, why));
        }
    }
}

/// ResourceClaims, their templates, ResourceSlices and DeviceClasses.
pub(super) struct Devices;

impl Strategy for Devices {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        for path in ["spec.devices.requests", "spec.spec.devices.requests"] {
            each(object, path, |request| {
                if let Some(exact) = request.get_mut("exactly").filter(|e| e.is_object()) {
                    count(exact);
                }
                each(request, "firstAvailable", count);
            });
        }
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        match text(new, "kind") {
            "ResourceClaim" => claim(&mut errors, "spec", &new["spec"]),
            "ResourceClaimTemplate" => claim(&mut errors, "spec.spec", at(new, "spec.spec")),
            "ResourceSlice" => {
                let driver = text(new, "spec.driver");
                if driver.is_empty() {
                    errors.push(Error::required("spec.driver", ""));
                } else {
                    wrong(&mut errors, "spec.driver", driver, dns1123_subdomain_value(driver));
                }
                let places = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
                let given = places.iter().filter(|p| !empty(&new["spec"], p)).count();
                if given != 1 && !has(new, "spec.sharedCounters") {
                    let why = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
                    let shown = Error::invalid("spec", at(new, "spec").clone(), why);
                    errors.push(if given == 0 { shown } else { Error::forbidden("spec", why) });
                }
            }
            _ => {}
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        if matches!(text(new, "kind"), "ResourceClaim" | "ResourceClaimTemplate") {
            unchanged(&mut errors, new, old, "spec");
        }
        errors
    }
}

fn count(request: &mut Value) {
    if text(request, "allocationMode") == "ExactCount" && int(request, "count").unwrap_or_default() == 0 {
        set(request, "count", 1);
    }
}

fn claim(errors: &mut Errors, path: &str, spec: &Value) {
    let mut names = std::collections::BTreeSet::new();
    for (i, request) in items(spec, "devices.requests").iter().enumerate() {
        let path = index(&child(path, "devices.requests"), i);
        let name = text(request, "name");
        rules::required_label(errors, &child(&path, "name"), name);
        if !names.insert(name) {
            errors.push(Error::duplicate(child(&path, "name"), name));
        }
        let (exactly, first) = (has(request, "exactly"), !empty(request, "firstAvailable"));
        let why = "exactly one of `exactly` or `firstAvailable` is required";
        if exactly == first {
            errors.push(if exactly {
                Error::invalid(&*path, Value::Null, format!("{why}, but multiple fields are set"))
            } else {
                Error::required(&*path, why)
            });
        }
        if exactly && empty(request, "exactly.deviceClassName") {
            errors.push(Error::required(child(&path, "exactly.deviceClassName"), ""));
        }
    }
}
