//! Webhook configurations and admission policies.

use std::collections::BTreeSet;

use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{self, dns1035_label, dns1123_subdomain_value, qualified_name};
use serde_json::Value;

use crate::builtin::rules;
use crate::builtin::value::{Errors, at, empty, has, int, items, required_one_of, text, texts, wrong};
use crate::strategy::{Cx, Strategy};

/// ValidatingWebhookConfigurations and MutatingWebhookConfigurations.
pub(super) struct Webhooks {
    pub(super) mutating: bool,
}

impl Strategy for Webhooks {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let mut names = BTreeSet::new();
        for (i, webhook) in items(new, "webhooks").iter().enumerate() {
            let path = index("webhooks", i);
            self.webhook(&mut errors, &path, webhook);
            let name = text(webhook, "name");
            if !name.is_empty() && !names.insert(name) {
                errors.push(Error::duplicate(child(&path, "name"), name));
            }
        }
        errors
    }
}

impl Webhooks {
    fn webhook(&self, errors: &mut Errors, path: &str, webhook: &Value) {
        fully_qualified(errors, &child(path, "name"), text(webhook, "name"));
        versions(errors, &child(path, "admissionReviewVersions"), webhook);
        for (i, rule) in items(webhook, "rules").iter().enumerate() {
            self::rule(errors, &index(&child(path, "rules"), i), rule);
        }
        required_one_of(errors, webhook, path, "failurePolicy", &["Fail", "Ignore"]);
        required_one_of(errors, webhook, path, "matchPolicy", &["Equivalent", "Exact"]);
        if has(webhook, "sideEffects") {
            required_one_of(errors, webhook, path, "sideEffects", &["None", "NoneOnDryRun"]);
        } else {
            let why = "must specify one of None, NoneOnDryRun";
            errors.push(Error::required(child(path, "sideEffects"), why));
        }
        if let Some(seconds) = int(webhook, "timeoutSeconds").filter(|s| !(1..=30).contains(s)) {
            let why = "the timeout value must be between 1 and 30 seconds";
            errors.push(Error::invalid(child(path, "timeoutSeconds"), seconds, why));
        }
        for selector in ["namespaceSelector", "objectSelector"] {
            errors.extend(validation::label_selector(at(webhook, selector), &child(path, selector)));
        }
        if self.mutating {
            required_one_of(errors, webhook, path, "reinvocationPolicy", &["IfNeeded", "Never"]);
        }
        client(errors, &child(path, "clientConfig"), at(webhook, "clientConfig"));
        conditions(errors, &child(path, "matchConditions"), items(webhook, "matchConditions"));
    }
}

/// Names of match conditions; their expressions are compiled by the API server's CEL.
fn conditions(errors: &mut Errors, path: &str, list: &[Value]) {
    if list.len() > 64 {
        errors.push(Error::too_many(path, list.len(), 64));
        return;
    }
    let mut names = BTreeSet::new();
    for (i, condition) in list.iter().enumerate() {
        let path = index(path, i);
        if text(condition, "expression").trim().is_empty() {
            errors.push(Error::required(child(&path, "expression"), ""));
        }
        let name = text(condition, "name");
        if name.is_empty() {
            errors.push(Error::required(child(&path, "name"), ""));
            continue;
        }
        wrong(errors, &child(&path, "name"), name, qualified_name(name));
        if !names.insert(name) {
            errors.push(Error::duplicate(child(&path, "name"), name));
        }
    }
}

fn fully_qualified(errors: &mut Errors, path: &str, name: &str) {
    if name.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    let bad = dns1123_subdomain_value(name);
    if !bad.is_empty() {
        return wrong(errors, path, name, bad);
    }
    if name.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        errors.push(Error::invalid(path, name, why));
    }
}

fn versions(errors: &mut Errors, path: &str, webhook: &Value) {
    let all = texts(webhook, "admissionReviewVersions");
    if all.is_empty() {
        return errors.push(Error::required(path, "must specify one of v1, v1beta1"));
    }
    let mut seen = BTreeSet::new();
    let mut known = false;
    for (i, version) in all.iter().enumerate() {
        if !seen.insert(*version) {
            errors.push(Error::invalid(index(path, i), *version, "duplicate version"));
            continue;
        }
        let bad = dns1035_label(version, false);
        if !bad.is_empty() {
            wrong(errors, &index(path, i), version, bad);
        }
        known |= matches!(*version, "v1" | "v1beta1");
    }
    if !known {
        let shown = at(webhook, "admissionReviewVersions").clone();
        errors.push(Error::invalid(path, shown, "must include at least one of v1, v1beta1"));
    }
}

/// `*` stands alone.
fn star(errors: &mut Errors, path: &str, rule: &Value, field: &str, what: &str) -> bool {
    let list = texts(rule, field);
    let path = child(path, field);
    if list.is_empty() {
        errors.push(Error::required(path, ""));
        return false;
    }
    if list.len() > 1 && list.contains(&"*") {
        let why = format!("if '*' is present, must not specify other {what}");
        errors.push(Error::invalid(path, at(rule, field).clone(), why));
    }
    true
}

/// Rules of what requests a webhook or policy wants to see.
fn rule(errors: &mut Errors, path: &str, rule: &Value) {
    if star(errors, path, rule, "operations", "operations") {
        let allowed = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        for (i, operation) in texts(rule, "operations").into_iter().enumerate() {
            if !allowed.contains(&operation) {
                errors.push(Error::not_supported(index(&child(path, "operations"), i), operation, &allowed));
            }
        }
    }
    star(errors, path, rule, "apiGroups", "API groups");
    if star(errors, path, rule, "apiVersions", "API versions") {
        for (i, version) in texts(rule, "apiVersions").into_iter().enumerate() {
            if version.is_empty() {
                errors.push(Error::required(index(&child(path, "apiVersions"), i), ""));
            }
        }
    }
    resources(errors, path, rule);
    if has(rule, "scope") {
        required_one_of(errors, rule, path, "scope", &["*", "Cluster", "Namespaced"]);
    }
}

fn resources(errors: &mut Errors, path: &str, rule: &Value) {
    let list = texts(rule, "resources");
    let path = child(path, "resources");
    if list.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    let (mut parents, mut subresources) = (BTreeSet::new(), BTreeSet::new());
    for (i, resource) in list.iter().enumerate() {
        let path = index(&path, i);
        if resource.is_empty() {
            errors.push(Error::required(path, ""));
            continue;
        }
        if *resource == "*/*" && list.len() > 1 {
            let shown = at(rule, "resources").clone();
            let why = "if '*/*' is present, must not specify other resources";
            errors.push(Error::invalid(child("", &path), shown, why));
        }
        let Some((parent, sub)) = resource.split_once('/') else { continue };
        if subresources.contains(&format!("*/{sub}")) {
            let why = format!("if '*/{sub}' is present, must not specify {resource}");
            errors.push(Error::invalid(&*path, *resource, why));
        }
        if parents.contains(parent) {
            let why = format!("if '{parent}/*' is present, must not specify {resource}");
            errors.push(Error::invalid(&*path, *resource, why));
        }
        if sub == "*" {
            parents.insert(parent);
        }
        if parent == "*" {
            subresources.insert(format!("*/{sub}"));
        }
    }
    if list.len() > 1 && list.contains(&"*") && list.iter().any(|r| !r.contains('/') && *r != "*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.push(Error::invalid(path, at(rule, "resources").clone(), why));
    }
}

fn client(errors: &mut Errors, path: &str, config: &Value) {
    let (url, service) = (at(config, "url"), at(config, "service"));
    if url.is_null() == service.is_null() {
        return errors.push(Error::required(path, "exactly one of url or service is required"));
    }
    if let Some(text) = url.as_str() {
        webhook_url(errors, &child(path, "url"), text);
    } else {
        let path = child(path, "service");
        for field in ["namespace", "name"] {
            rules::required(errors, service, &path, field);
        }
        let number = int(service, "port").unwrap_or(443);
        if !(1..=65535).contains(&number) {
            let why = format!("port is not valid: {}", rules::PORT);
            errors.push(Error::invalid(child(&path, "port"), number, why));
        }
        service_path(errors, &child(&path, "path"), service);
    }
}

fn service_path(errors: &mut Errors, path: &str, service: &Value) {
    let value = text(service, "path");
    if !has(service, "path") || value == "/" {
        return;
    }
    let Some(rest) = value.strip_prefix('/') else {
        return errors.push(Error::invalid(path, value, "must start with a '/'"));
    };
    let steps: Vec<&str> = rest.strip_suffix('/').unwrap_or(rest).split('/').collect();
    for (i, step) in steps.into_iter().enumerate() {
        if step.is_empty() {
            errors.push(Error::invalid(path, value, format!("segment[{i}] may not be empty")));
            continue;
        }
        for why in dns1123_subdomain_value(step) {
            errors.push(Error::invalid(path, value, format!("segment[{i}]: {why}")));
        }
    }
}

fn webhook_url(errors: &mut Errors, path: &str, url: &str) {
    const FORM: &str = "; desired format: https://host[/path]";
    let Some((scheme, rest)) = url.split_once("://") else {
        if let Some((scheme, _)) = url.split_once(':') {
            errors.push(Error::invalid(
                path,
                scheme,
                format!("'https' is the only allowed URL scheme{FORM}"),
            ));
        } else {
            errors.push(Error::invalid(path, "", format!("'https' is the only allowed URL scheme{FORM}")));
        }
        return errors.push(Error::invalid(path, "", format!("host must be specified{FORM}")));
    };
    if scheme != "https" {
        errors.push(Error::invalid(path, scheme, format!("'https' is the only allowed URL scheme{FORM}")));
    }
    let (rest, fragment) = rest.split_once('#').map_or((rest, ""), |(r, f)| (r, f));
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(r, q)| (r, q));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(u, h)| (u, h));
    if host.is_empty() {
        errors.push(Error::invalid(path, host, format!("host must be specified{FORM}")));
    }
    if !user.is_empty() {
        errors.push(Error::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(Error::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(Error::invalid(path, query, "query parameters are not permitted in the URL"));
    }
}

/// ValidatingAdmissionPolicies and MutatingAdmissionPolicies: what doesn't need CEL.
pub(super) struct Policies {
    pub(super) mutating: bool,
}

impl Strategy for Policies {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        required_one_of(&mut errors, spec, "spec", "failurePolicy", &["Fail", "Ignore"]);
        let kind = at(spec, "paramKind");
        if !kind.is_null() {
            rules::required(&mut errors, kind, "spec.paramKind", "apiVersion");
            if rules::required(&mut errors, kind, "spec.paramKind", "kind") {
                let name = text(kind, "kind");
                for why in dns1035_label(&name.to_lowercase(), false) {
                    let why = format!("may have mixed case, but should otherwise match: {why}");
                    errors.push(Error::invalid("spec.paramKind.kind", name, why));
                }
            }
        }
        let constraints = at(spec, "matchConstraints");
        if constraints.is_null() {
            errors.push(Error::required("spec.matchConstraints", ""));
        } else {
            match_resources(&mut errors, "spec.matchConstraints", constraints);
            if empty(constraints, "resourceRules") {
                errors.push(Error::required("spec.matchConstraints.resourceRules", ""));
            }
        }
        conditions(&mut errors, "spec.matchConditions", items(spec, "matchConditions"));
        for (i, variable) in items(spec, "variables").iter().enumerate() {
            let path = index("spec.variables", i);
            let name = text(variable, "name");
            let identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            if name.is_empty() {
                errors.push(Error::required(child(&path, "name"), "name is not specified"));
            } else if !identifier {
                errors.push(Error::invalid(child(&path, "name"), name, "must be a valid CEL identifier"));
            }
            if text(variable, "expression").trim().is_empty() {
                errors.push(Error::required(child(&path, "expression"), "expression is not specified"));
            }
        }
        if self.mutating {
            if empty(spec, "mutations") {
                errors.push(Error::required("spec.mutations", "mutations must contain at least one item"));
            }
            required_one_of(&mut errors, spec, "spec", "reinvocationPolicy", &["IfNeeded", "Never"]);
        } else if empty(spec, "validations") && empty(spec, "auditAnnotations") {
            let why = "validations or auditAnnotations must contain at least one item";
            errors.push(Error::required("spec.validations", why));
            errors.push(Error::required("spec.auditAnnotations", why));
        }
        for (i, rule) in items(spec, "validations").iter().enumerate() {
            let path = index("spec.validations", i);
            if text(rule, "expression").trim().is_empty() {
                errors.push(Error::required(child(&path, "expression"), "expression is not specified"));
            }
            let message = text(rule, "message");
            if has(rule, "message") && message.trim().is_empty() {
                let why = "message must be non-empty if specified";
                errors.push(Error::invalid(child(&path, "message"), message, why));
            } else if message.contains(['\n', '\r']) {
                errors.push(Error::invalid(child(&path, "message"), message, "must not contain line breaks"));
            }
            if has(rule, "reason") {
                let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
                required_one_of(&mut errors, rule, &path, "reason", &reasons);
            }
        }
        audit_annotations(&mut errors, new);
        for (i, mutation) in items(spec, "mutations").iter().enumerate() {
            self::mutation(&mut errors, &index("spec.mutations", i), mutation);
        }
        errors
    }
}

fn audit_annotations(errors: &mut Errors, policy: &Value) {
    let mut keys = BTreeSet::new();
    for (i, annotation) in items(policy, "spec.auditAnnotations").iter().enumerate() {
        let path = index("spec.auditAnnotations", i);
        let key = text(annotation, "key");
        let full = format!("{}/{key}", text(policy, "metadata.name"));
        if key.is_empty() {
            errors.push(Error::required(child(&path, "key"), ""));
        } else {
            wrong(errors, &child(&path, "key"), &full, qualified_name(&full));
        }
        if text(annotation, "valueExpression").trim().is_empty() {
            let why = "valueExpression is not specified";
            errors.push(Error::required(child(&path, "valueExpression"), why));
        }
        if !key.is_empty() && !keys.insert(key) {
            errors.push(Error::duplicate(child(&path, "key"), key));
        }
    }
}

fn mutation(errors: &mut Errors, path: &str, mutation: &Value) {
    let kind = text(mutation, "patchType");
    let (field, other) = match kind {
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "" => return errors.push(Error::required(child(path, "patchType"), "")),
        _ => {
            let allowed = ["ApplyConfiguration", "JSONPatch"];
            return errors.push(Error::not_supported(child(path, "patchType"), kind, &allowed));
        }
    };
    if has(mutation, other) {
        let why = format!("must not be specified when patchType is {kind}");
        errors.push(Error::invalid(child(path, other), format!("{{{other}}}"), why));
    }
    if !has(mutation, field) {
        let why = format!("must be specified when patchType is {kind}");
        errors.push(Error::required(child(path, field), why));
    } else if text(mutation, &format!("{field}.expression")).trim().is_empty() {
        errors.push(Error::required(
            child(path, &format!("{field}.expression")),
            "expression is not specified",
        ));
    }
}

fn match_resources(errors: &mut Errors, path: &str, resources: &Value) {
    if has(resources, "matchPolicy") {
        required_one_of(errors, resources, path, "matchPolicy", &["Equivalent", "Exact"]);
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        errors.extend(validation::label_selector(at(resources, selector), &child(path, selector)));
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for (i, item) in items(resources, list).iter().enumerate() {
            let path = index(&child(path, list), i);
            rule(errors, &path, item);
            let mut names = BTreeSet::new();
            for (j, name) in texts(item, "resourceNames").into_iter().enumerate() {
                if !names.insert(name) {
                    errors.push(Error::duplicate(index(&child(&path, "resourceNames"), j), name));
                }
            }
        }
    }
}

/// Bindings of admission policies.
pub(super) struct PolicyBindings {
    pub(super) mutating: bool,
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
            if by_name && by_selector {
                let why = "name and selector are mutually exclusive";
                errors.push(Error::forbidden(child(path, "name"), why));
                errors.push(Error::forbidden(child(path, "selector"), why));
            } else if !by_name && !by_selector {
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
