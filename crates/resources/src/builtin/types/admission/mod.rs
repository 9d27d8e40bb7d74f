//! Webhook configurations and admission policies: what is right of one when it is registered.
//!
//! Expressions are compiled here and thrown away; evaluating them is the server's. What both families share is in this
//! file: rules of requests, selectors, conditions.

mod bindings;
mod policies;
mod webhooks;

use std::collections::BTreeSet;

use homeostat_model::field::{Error, child, index};
use homeostat_model::validation::{self, path_segment_name, qualified_name};
use homeostat_schema::cel::check::{Environment, Uses, Wanted};
use serde_json::Value;

pub(super) use bindings::PolicyBindings;
pub(super) use policies::Policies;
pub(super) use webhooks::Webhooks;

use crate::builtin::value::{Errors, at, has, items, required_one_of, text, texts, wrong};

/// Conditions of a request, in an environment without a policy's variables.
fn conditions(errors: &mut Errors, path: &str, list: &[Value], env: &Environment) {
    if list.len() > 64 {
        errors.push(Error::too_many(path, list.len(), 64));
        return;
    }
    let uses = Uses { authorizer: true, variables: false };
    let mut names = BTreeSet::new();
    for (i, condition) in list.iter().enumerate() {
        let path = index(path, i);
        let expression = text(condition, "expression").trim();
        if expression.is_empty() {
            errors.push(Error::required(child(&path, "expression"), ""));
        } else if let Err(why) = env.compile(expression, Wanted::Bool, uses) {
            errors.push(Error::invalid(child(&path, "expression"), expression, why));
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
            let mut names = BTreeSet::new();
            for (j, name) in texts(item, "resourceNames").into_iter().enumerate() {
                let path = index(&child(&path, "resourceNames"), j);
                wrong(errors, &path, name, path_segment_name(name, false));
                if !names.insert(name) {
                    errors.push(Error::duplicate(path, name));
                }
            }
            rule(errors, &path, item);
        }
    }
}
