//! Webhook configurations: who is asked about which requests, and where.

use std::collections::BTreeSet;

use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{self, dns1035_label, dns1123_subdomain_value};
use homeostat_schema::cel::check::Environment;
use serde_json::Value;

use super::{conditions, rule};
use crate::builtin::rules;
use crate::builtin::value::{Errors, at, has, int, items, required_one_of, text, texts, wrong};
use crate::strategy::{Cx, Strategy};

/// ValidatingWebhookConfigurations and MutatingWebhookConfigurations.
pub(in crate::builtin::types) struct Webhooks {
    pub(in crate::builtin::types) mutating: bool,
}

impl Strategy for Webhooks {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        self.configuration(new, true)
    }

    fn validate_update(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        // Conditions that stay as they are are not held against a newer server.
        let conditions = |v: &Value| {
            items(v, "webhooks").iter().map(|w| at(w, "matchConditions").clone()).collect::<Vec<_>>()
        };
        self.configuration(new, conditions(new) != conditions(old))
    }
}

impl Webhooks {
    fn configuration(&self, new: &Value, with_conditions: bool) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let mut names = BTreeSet::new();
        for (i, webhook) in items(new, "webhooks").iter().enumerate() {
            let path = index("webhooks", i);
            self.webhook(&mut errors, &path, webhook);
            if with_conditions {
                let list = items(webhook, "matchConditions");
                conditions(&mut errors, &child(&path, "matchConditions"), list, &Environment::new(false));
            }
            versions(&mut errors, &child(&path, "admissionReviewVersions"), webhook);
            let name = text(webhook, "name");
            if !name.is_empty() && !names.insert(name) {
                errors.push(Error::duplicate(child(&path, "name"), name));
            }
        }
        errors
    }

    fn webhook(&self, errors: &mut Errors, path: &str, webhook: &Value) {
        fully_qualified(errors, &child(path, "name"), text(webhook, "name"));
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
