//! Bindings of admission policies: where a policy is in force, with which parameters, and what becomes of a failure.

use std::collections::BTreeSet;

use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{self, dns1123_subdomain_value, path_segment_name};
use serde_json::Value;

use super::match_resources;
use crate::builtin::value::{at, empty, has, required_one_of, text, texts, wrong};
use crate::strategy::{Cx, Strategy};

/// Bindings of admission policies.
pub(in crate::builtin::types) struct PolicyBindings {
    pub(in crate::builtin::types) mutating: bool,
}

impl Strategy for PolicyBindings {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        let name = text(spec, "policyName");
        if name.is_empty() {
            errors.push(Error::required("spec.policyName", ""));
        } else {
            wrong(&mut errors, "spec.policyName", name, dns1123_subdomain_value(name));
        }
        let reference = at(spec, "paramRef");
        if !reference.is_null() {
            let (by_name, by_selector) = (!empty(reference, "name"), has(reference, "selector"));
            let path = "spec.paramRef";
            let name = text(reference, "name");
            let exclusive = "name and selector are mutually exclusive";
            if by_name {
                wrong(&mut errors, &child(path, "name"), name, path_segment_name(name, false));
            }
            if by_name && by_selector {
                errors.push(Error::forbidden(child(path, "name"), exclusive));
            }
            if by_selector {
                let at = child(path, "selector");
                errors.extend(validation::label_selector(&reference["selector"], &at));
            }
            if by_name && by_selector {
                errors.push(Error::forbidden(child(path, "selector"), exclusive));
            }
            if !by_name && !by_selector {
                errors.push(Error::required(path, "one of name or selector must be specified"));
            }
            required_one_of(&mut errors, reference, path, "parameterNotFoundAction", &["Deny", "Allow"]);
        }
        match_resources(&mut errors, "spec.matchResources", at(spec, "matchResources"));
        if !self.mutating {
            let actions = texts(spec, "validationActions");
            let allowed = ["Audit", "Deny", "Warn"];
            if actions.is_empty() {
                errors.push(Error::required(
                    "spec.validationActions",
                    "at least one validation action is required",
                ));
            }
            let mut seen = BTreeSet::new();
            for (i, action) in actions.iter().enumerate() {
                if !allowed.contains(action) {
                    errors.push(Error::not_supported(index("spec.validationActions", i), *action, &allowed));
                } else if !seen.insert(*action) {
                    errors.push(Error::duplicate(index("spec.validationActions", i), *action));
                }
            }
            if seen.contains("Deny") && seen.contains("Warn") {
                let shown = at(spec, "validationActions").clone();
                let why = "must not contain both Deny and Warn (repeating the same validation failure information \
                           in the API response and headers serves no purpose)";
                errors.push(Error::invalid("spec.validationActions", shown, why));
            }
        }
        errors
    }
}
