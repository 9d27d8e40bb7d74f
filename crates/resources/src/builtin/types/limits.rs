//! LimitRanges and ResourceQuotas.

use std::collections::BTreeSet;

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child, index, key};
use homeostat_model::quantity::Quantity;
use homeostat_model::validation::qualified_name;
use serde_json::{Map, Value};

use crate::builtin::rules;
use crate::builtin::value::{Errors, IMMUTABLE, at, each, entries, has, items, text, texts, wrong};
use crate::strategy::{Cx, Strategy};

/// LimitRanges.
pub(super) struct LimitRanges;

impl Strategy for LimitRanges {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        each(object, "spec.limits", |limit| {
            if text(limit, "type") == "Container" {
                container_defaults(limit);
            }
        });
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let mut kinds = BTreeSet::new();
        for (i, limit) in items(new, "spec.limits").iter().enumerate() {
            let path = index("spec.limits", i);
            let kind = text(limit, "type");
            wrong(&mut errors, &child(&path, "type"), kind, qualified_name(kind));
            if !kinds.insert(kind) {
                errors.push(Error::duplicate(child(&path, "type"), kind));
            }
            amounts(&mut errors, &path, limit, kind);
        }
        errors
    }
}

/// Limits and requests that follow from the bounds: a limit from the maximum, a request from the limit, or from the
/// minimum.
fn container_defaults(limit: &mut Value) {
    let list = |value: &Value, name: &str| value[name].as_object().cloned().unwrap_or_default();
    let fill = |into: &mut Map<String, Value>, from: Map<String, Value>| {
        for (name, value) in from {
            into.entry(name).or_insert(value);
        }
    };
    let mut limits = list(limit, "default");
    fill(&mut limits, list(limit, "max"));
    let mut requests = list(limit, "defaultRequest");
    fill(&mut requests, limits.clone());
    fill(&mut requests, list(limit, "min"));
    for (name, map) in [("default", limits), ("defaultRequest", requests)] {
        if map.is_empty() {
            crate::builtin::value::remove(limit, name);
        } else {
            limit[name] = map.into();
        }
    }
}

fn amounts(errors: &mut Errors, path: &str, limit: &Value, kind: &str) {
    for list in ["max", "min"] {
        for (name, _) in entries(limit, list) {
            rules::resource_name(errors, &key(&child(path, list), name), name);
        }
    }
    if kind == "Pod" {
        for list in ["default", "defaultRequest"] {
            if has(limit, list) {
                errors.push(Error::forbidden(child(path, list), "may not be specified when `type` is 'Pod'"));
            }
        }
    }
    if kind == "PersistentVolumeClaim" && !has(limit, "min.storage") && !has(limit, "max.storage") {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.push(Error::required(child(path, "limits"), why));
    }
    let names: BTreeSet<&str> = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"]
        .into_iter()
        .flat_map(|list| entries(limit, list).map(|(name, _)| name))
        .collect();
    for name in names {
        let get = |list: &str| limit[list].get(name).and_then(|v| Quantity::from_value(v).ok());
        let (min, max, default, request) = (get("min"), get("max"), get("default"), get("defaultRequest"));
        let mut compare =
            |list: &str, a: &Option<Quantity>, b: &Option<Quantity>, shown: &Option<Quantity>, what: &str| {
                if let (Some(a), Some(b), Some(shown)) = (a, b, shown)
                    && a > b
                {
                    errors.push(Error::invalid(
                        key(&child(path, list), name),
                        shown.to_string(),
                        what.replace("{a}", &a.to_string()).replace("{b}", &b.to_string()),
                    ));
                }
            };
        compare("min", &min, &max, &min, "min value {a} is greater than max value {b}");
        if request.is_some() {
            compare(
                "defaultRequest",
                &min,
                &request,
                &request,
                "min value {a} is greater than default request value {b}",
            );
            compare(
                "defaultRequest",
                &request,
                &max,
                &request,
                "default request value {a} is greater than max value {b}",
            );
            compare(
                "defaultRequest",
                &request,
                &default,
                &request,
                "default request value {a} is greater than default limit value {b}",
            );
        }
        if default.is_some() {
            compare("default", &min, &default, &min, "min value {a} is greater than default value {b}");
            compare("default", &default, &max, &max, "default value {a} is greater than max value {b}");
        }
        if let Some(ratio) = get("maxLimitRequestRatio")
            && ratio < Quantity::integer(1, ratio.format())
        {
            let path = key(&child(path, "maxLimitRequestRatio"), name);
            errors.push(Error::invalid(path, ratio.to_string(), format!("ratio {ratio} is less than 1")));
        }
    }
}

/// ResourceQuotas.
pub(super) struct ResourceQuotas;

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

impl Strategy for ResourceQuotas {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        hard(&mut errors, "spec.hard", at(new, "spec.hard"));
        scopes(&mut errors, &new["spec"]);
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        let set = |object: &Value| -> BTreeSet<String> {
            texts(object, "spec.scopes").into_iter().map(str::to_owned).collect()
        };
        if set(new) != set(old) {
            errors.push(Error::invalid("spec.scopes", at(new, "spec.scopes").clone(), IMMUTABLE));
        }
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        hard(&mut errors, "status.hard", at(new, "status.hard"));
        hard(&mut errors, "status.used", at(new, "status.used"));
        errors
    }
}

/// Resources that a quota may count without a domain.
fn quota_resource(name: &str) -> bool {
    matches!(
        name,
        "cpu"
            | "memory"
            | "ephemeral-storage"
            | "requests.cpu"
            | "requests.memory"
            | "requests.storage"
            | "requests.ephemeral-storage"
            | "limits.cpu"
            | "limits.memory"
            | "limits.ephemeral-storage"
            | "pods"
            | "resourcequotas"
            | "services"
            | "replicationcontrollers"
            | "secrets"
            | "persistentvolumeclaims"
            | "configmaps"
            | "services.nodeports"
            | "services.loadbalancers"
    ) || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

fn hard(errors: &mut Errors, path: &str, list: &Value) {
    for (name, value) in list.as_object().into_iter().flatten() {
        let path = key(path, name);
        rules::resource_name(errors, &path, name);
        if !name.contains('/') && !quota_resource(name) {
            errors.push(Error::invalid(&*path, &**name, "must be a standard resource for quota"));
        }
        rules::quantity_value(errors, &path, name, value);
    }
}

fn scopes(errors: &mut Errors, spec: &Value) {
    let given = texts(spec, "scopes");
    if given.is_empty() {
        return;
    }
    let all = at(spec, "scopes");
    let pods_only = |name: &str| {
        matches!(
            name,
            "pods" | "requests.cpu" | "requests.memory" | "limits.cpu" | "limits.memory" | "cpu" | "memory"
        )
    };
    let computes = |scope: &str| matches!(scope, "Terminating" | "NotTerminating" | "NotBestEffort");
    for scope in &given {
        if !SCOPES.contains(scope) {
            errors.push(Error::invalid("spec.scopes", all.clone(), "unsupported scope"));
            continue;
        }
        for (name, _) in entries(spec, "hard") {
            let fits = match *scope {
                "BestEffort" => name == "pods",
                s if computes(s) => pods_only(name),
                _ => true,
            };
            if !fits && quota_resource(name) {
                errors.push(Error::invalid(
                    "spec.scopes",
                    all.clone(),
                    "unsupported scope applied to resource",
                ));
            }
        }
    }
    for (a, b) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if given.contains(&a) && given.contains(&b) {
            errors.push(Error::invalid("spec.scopes", all.clone(), "conflicting scopes"));
        }
    }
}
