//! ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
//!
//! Every expression must compile in the environment that it will have: `params` where a kind of parameters is named,
//! the variables that stand before it, no authorizer in messages. Objects have no type here.

use std::collections::BTreeSet;

use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{dns1035_label, dns1123_subdomain_value, qualified_name};
use homeostat_schema::cel::check::{Environment, Uses, Wanted};
use homeostat_schema::cel::is_identifier;
use serde_json::Value;

use super::{conditions, match_resources};
use crate::builtin::value::{Errors, at, empty, has, items, required_one_of, text, wrong};
use crate::jsonpath;
use crate::strategy::{Cx, Strategy};

/// Annotations that one policy may have.
const MAX_ANNOTATIONS: usize = 20;
/// Bytes of the expression of one.
const MAX_ANNOTATION: usize = 5 * 1024;

const FULL: Uses = Uses { authorizer: true, variables: true };
const MESSAGE: Uses = Uses { authorizer: false, variables: true };

/// ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
pub(in crate::builtin::types) struct Policies {
    pub(in crate::builtin::types) mutating: bool,
}

impl Strategy for Policies {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        self.policy(new, true)
    }

    fn validate_update(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let same = |path: &str| at(new, path) == at(old, path);
        self.policy(new, !same("spec.paramKind") || !same("spec.matchConditions"))
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let list = "status.typeChecking.expressionWarnings";
        for (i, warning) in items(new, list).iter().enumerate() {
            let path = index(list, i);
            if text(warning, "warning").is_empty() {
                errors.push(Error::required(child(&path, "warning"), ""));
            }
            let (path, field) = (child(&path, "fieldRef"), text(warning, "fieldRef").trim());
            let dot = if field.starts_with(['.', '[']) { "" } else { "." };
            if field.is_empty() {
                errors.push(Error::required(path, ""));
            } else if let Err(why) = jsonpath::Path::parse(&format!("{dot}{field}")) {
                errors.push(Error::invalid(path, field, format!("invalid JSONPath: {}", why.0)));
            }
        }
        errors
    }
}

impl Policies {
    fn policy(&self, new: &Value, with_conditions: bool) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        required_one_of(&mut errors, spec, "spec", "failurePolicy", &["Fail", "Ignore"]);
        let kind = at(spec, "paramKind");
        if !kind.is_null() {
            param_kind(&mut errors, "spec.paramKind", kind);
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
        let mut env = Environment::new(!kind.is_null());
        if with_conditions {
            conditions(&mut errors, "spec.matchConditions", items(spec, "matchConditions"), &env);
        }
        // Without any, `variables` is no name at all.
        let composed = !empty(spec, "variables");
        for (i, variable) in items(spec, "variables").iter().enumerate() {
            self::variable(&mut errors, &index("spec.variables", i), variable, &mut env);
        }
        let mut expressions = Expressions { errors: &mut errors, env: &env, composed };
        if self.mutating {
            expressions.mutations(spec);
        } else {
            expressions.validations(new);
        }
        errors
    }
}

fn param_kind(errors: &mut Errors, path: &str, kind: &Value) {
    let (version_path, version) = (child(path, "apiVersion"), text(kind, "apiVersion"));
    match version.matches('/').count() {
        _ if version.is_empty() => errors.push(Error::required(version_path, "")),
        0 | 1 => {
            let (group, version) = match version.split_once('/') {
                Some(_) if version == "/" => ("", ""),
                Some((group, version)) => (group, version),
                None => ("", version),
            };
            let joined = |why: Vec<String>| why.join(",");
            let bad = if group.is_empty() { Vec::new() } else { dns1123_subdomain_value(group) };
            if !bad.is_empty() {
                errors.push(Error::invalid(&*version_path, group, joined(bad)));
            }
            let bad = dns1035_label(version, false);
            if version.is_empty() {
                let given = text(kind, "apiVersion");
                errors.push(Error::invalid(version_path, given, "version must be specified"));
            } else if !bad.is_empty() {
                errors.push(Error::invalid(version_path, version, joined(bad)));
            }
        }
        _ => {
            let why = format!("unexpected GroupVersion string: {version}");
            errors.push(Error::invalid(version_path, version, why));
        }
    }
    let (path, name) = (child(path, "kind"), text(kind, "kind"));
    let bad = dns1035_label(&name.to_lowercase(), false);
    if name.is_empty() {
        errors.push(Error::required(path, ""));
    } else if !bad.is_empty() {
        let why = format!("may have mixed case, but should otherwise match: {}", bad.join(","));
        errors.push(Error::invalid(path, name, why));
    }
}

fn variable(errors: &mut Errors, path: &str, variable: &Value, env: &mut Environment) {
    let (name, expression) = (text(variable, "name"), text(variable, "expression"));
    if name.trim().is_empty() {
        errors.push(Error::required(child(path, "name"), "name is not specified"));
    } else if !is_identifier(name) {
        errors.push(Error::invalid(child(path, "name"), name, "must be a valid CEL identifier"));
    }
    if expression.trim().is_empty() {
        errors.push(Error::required(child(path, "expression"), "expression is not specified"));
    } else if let Err(why) = env.variable(name, expression) {
        errors.push(Error::invalid(child(path, "expression"), expression, why));
    }
}

/// The expressions of a policy, after its variables.
struct Expressions<'a> {
    errors: &'a mut Errors,
    env: &'a Environment,
    composed: bool,
}

impl Expressions<'_> {
    fn compile(&mut self, path: String, shown: &str, source: &str, wanted: Wanted, uses: Uses) {
        let uses = Uses { variables: self.composed, ..uses };
        if let Err(why) = self.env.compile(source, wanted, uses) {
            self.errors.push(Error::invalid(path, shown, why));
        }
    }

    fn validations(&mut self, policy: &Value) {
        let spec = &policy["spec"];
        if empty(spec, "validations") && empty(spec, "auditAnnotations") {
            let why = "validations or auditAnnotations must contain at least one item";
            self.errors.push(Error::required("spec.validations", why));
            self.errors.push(Error::required("spec.auditAnnotations", why));
            return;
        }
        for (i, rule) in items(spec, "validations").iter().enumerate() {
            self.validation(&index("spec.validations", i), rule);
        }
        let annotations = items(spec, "auditAnnotations");
        if annotations.len() > MAX_ANNOTATIONS {
            let why = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
            let shown = at(spec, "auditAnnotations").clone();
            self.errors.push(Error::invalid("spec.auditAnnotations", shown, why));
        }
        let mut keys = BTreeSet::new();
        for (i, annotation) in annotations.iter().enumerate() {
            let path = index("spec.auditAnnotations", i);
            self.annotation(&path, text(policy, "metadata.name"), annotation);
            let key = text(annotation, "key");
            if !keys.insert(key) {
                self.errors.push(Error::duplicate(child(&path, "key"), key));
            }
        }
    }

    fn validation(&mut self, path: &str, rule: &Value) {
        let expression = text(rule, "expression");
        if expression.trim().is_empty() {
            self.errors.push(Error::required(child(path, "expression"), "expression is not specified"));
        } else {
            self.compile(child(path, "expression"), expression, expression, Wanted::Bool, FULL);
        }
        let source = text(rule, "messageExpression");
        let path_of_message = child(path, "messageExpression");
        if !source.is_empty() && source.trim().is_empty() {
            self.errors.push(Error::invalid(path_of_message, source, "must be non-empty if specified"));
        } else if !source.is_empty() {
            self.compile(path_of_message, source, source, Wanted::Text, MESSAGE);
        }
        let message = text(rule, "message");
        if !message.is_empty() && message.trim().is_empty() {
            let why = "message must be non-empty if specified";
            self.errors.push(Error::invalid(child(path, "message"), message, why));
        } else if message.trim().contains(['\n', '\r']) {
            let why = "must not contain line breaks";
            self.errors.push(Error::invalid(child(path, "message"), message, why));
        }
        if has(rule, "reason") {
            let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
            required_one_of(self.errors, rule, path, "reason", &reasons);
        }
    }

    fn annotation(&mut self, path: &str, policy: &str, annotation: &Value) {
        let key = text(annotation, "key");
        if policy.is_empty() {
            let why = "requires metadata.name be non-empty";
            self.errors.push(Error::invalid(child(path, "key"), key, why));
        } else {
            let full = format!("{policy}/{key}");
            wrong(self.errors, &child(path, "key"), &full, qualified_name(&full));
        }
        let (path, whole) = (child(path, "valueExpression"), text(annotation, "valueExpression"));
        let source = whole.trim();
        if source.is_empty() {
            self.errors.push(Error::required(path, "valueExpression is not specified"));
        } else if source.len() > MAX_ANNOTATION {
            let why = format!("must not exceed {MAX_ANNOTATION} bytes in length");
            self.errors.push(Error::required(path, why));
        } else {
            self.compile(path, whole, source, Wanted::TextOrNull, FULL);
        }
    }

    fn mutations(&mut self, spec: &Value) {
        if empty(spec, "mutations") {
            let why = "mutations must contain at least one item";
            self.errors.push(Error::required("spec.mutations", why));
        }
        for (i, mutation) in items(spec, "mutations").iter().enumerate() {
            self.mutation(&index("spec.mutations", i), mutation);
        }
        required_one_of(self.errors, spec, "spec", "reinvocationPolicy", &["IfNeeded", "Never"]);
    }

    fn mutation(&mut self, path: &str, mutation: &Value) {
        let kind = text(mutation, "patchType");
        let (field, other, wanted) = match kind {
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Wanted::Object),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", Wanted::Patches),
            "" => return self.errors.push(Error::required(child(path, "patchType"), "")),
            _ => {
                let allowed = ["ApplyConfiguration", "JSONPatch"];
                return self.errors.push(Error::not_supported(child(path, "patchType"), kind, &allowed));
            }
        };
        if !has(mutation, field) {
            let why = format!("must be specified when patchType is {kind}");
            self.errors.push(Error::required(child(path, field), why));
        }
        if has(mutation, other) {
            let why = format!("must not be specified when patchType is {kind}");
            self.errors.push(Error::invalid(child(path, other), format!("{{{other}}}"), why));
        }
        if has(mutation, field) {
            let path = child(&child(path, field), "expression");
            let source = text(&mutation[field], "expression");
            if source.trim().is_empty() {
                self.errors.push(Error::required(path, "expression is not specified"));
            } else {
                self.compile(path, source, source, wanted, FULL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Each error's path and the first words after it.
    fn check(mutating: bool, spec: Value, want: &[&str]) {
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let errors = Policies { mutating }.policy(&policy, true);
        let found: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
        assert_eq!(found.len(), want.len(), "{found:#?}");
        for (found, want) in found.iter().zip(want) {
            assert!(found.starts_with(want), "{found}\nwanted {want}");
        }
    }

    fn constraints() -> Value {
        json!({"matchPolicy": "Exact", "namespaceSelector": {}, "objectSelector": {}, "resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]})
    }

    #[test]
    fn expressions_have_what_stands_before_them() {
        let spec = |more: Value| {
            let mut spec = json!({"failurePolicy": "Fail", "matchConstraints": constraints(),
                "validations": [{"expression": "true"}]});
            for (key, value) in more.as_object().unwrap() {
                spec[key] = value.clone();
            }
            spec
        };
        check(false, spec(json!({})), &[]);
        check(
            false,
            spec(json!({
                "variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}],
                "validations": [{"expression": "variables.b == 1", "messageExpression": "authorizer.path('/').check('get').reason()"}],
            })),
            &[
                "spec.variables[0].expression: Invalid value: \"variables.b\": compilation failed: ",
                "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/').check('get').reason()\": compilation failed: ",
            ],
        );
        check(
            false,
            spec(
                json!({"validations": [{"expression": "variables.x == 1"}, {"expression": "params == null"}]}),
            ),
            &[
                "spec.validations[0].expression: Invalid value: \"variables.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables'",
                "spec.validations[1].expression: Invalid value: \"params == null\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params'",
            ],
        );
        check(
            false,
            spec(json!({
                "paramKind": {"apiVersion": "a/b/c", "kind": "Limit"},
                "matchConditions": [{"name": "m", "expression": "params.x"}, {"name": "v", "expression": " variables.x "}],
                "auditAnnotations": [{"key": "k", "valueExpression": "params.x"}],
            })),
            &[
                "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
                "spec.matchConditions[0].expression: Invalid value: \"params.x\": must evaluate to bool but got dyn",
                "spec.matchConditions[1].expression: Invalid value: \"variables.x\": compilation failed: ",
                "spec.auditAnnotations[0].valueExpression: Invalid value: \"params.x\": must evaluate to one of [string null_type] but got dyn",
            ],
        );
    }

    #[test]
    fn warnings_name_their_field() {
        let entropy = homeostat_model::Entropy::seeded(1);
        let cx = Cx {
            now: homeostat_model::Timestamp::UNIX_EPOCH,
            entropy: &entropy,
            user: "",
            groups: &[],
            subresource: "status",
        };
        for (field, want) in
            [("spec.validations[0].expression", ""), ("", "Required value"), ("spec.[", "invalid JSONPath")]
        {
            let status =
                json!({"typeChecking": {"expressionWarnings": [{"fieldRef": field, "warning": "w"}]}});
            let policy = json!({"status": status});
            let errors = Policies { mutating: false }.validate_status(&cx, &policy, &policy);
            let found = errors.first().map(ToString::to_string).unwrap_or_default();
            assert!(found.contains(want) && found.is_empty() == want.is_empty(), "{field}: {found}");
        }
    }

    #[test]
    fn mutations_are_of_their_type() {
        let spec = json!({"failurePolicy": "Ignore", "reinvocationPolicy": "Never", "matchConstraints": constraints(),
        "mutations": [
            {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/a'}]"}},
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": " "}},
            {}]});
        check(
            true,
            spec,
            &[
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
                "spec.mutations[0].applyConfiguration: Invalid value: \"{applyConfiguration}\": must not be specified when patchType is JSONPatch",
                "spec.mutations[2].applyConfiguration.expression: Required value: expression is not specified",
                "spec.mutations[3].patchType: Required value",
            ],
        );
    }
}
