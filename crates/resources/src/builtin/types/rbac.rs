//! Roles and bindings: their rules. Whether a user may grant them is the API server's business.

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{self, path_segment_name};
use serde_json::Value;

use crate::builtin::value::{Errors, ShownAs as _, at, each, empty, items, set, text, wrong};
use crate::strategy::{Cx, Strategy};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Roles and ClusterRoles.
pub(super) struct Roles {
    pub(super) namespaced: bool,
}

impl Strategy for Roles {
    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        path_segment_name(name, prefix)
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        for (i, rule) in items(new, "rules").iter().enumerate() {
            self.rule(&mut errors, &index("rules", i), rule);
        }
        let selectors = items(new, "aggregationRule.clusterRoleSelectors");
        if !at(new, "aggregationRule").is_null() && selectors.is_empty() {
            let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.push(Error::required("aggregationRule.clusterRoleSelectors", why));
        }
        for (i, selector) in selectors.iter().enumerate() {
            let path = index("aggregationRule.clusterRoleSelectors", i);
            errors.extend(validation::label_selector(selector, &path));
        }
        errors
    }
}

impl Roles {
    fn rule(&self, errors: &mut Errors, path: &str, rule: &Value) {
        if empty(rule, "verbs") {
            errors.push(Error::required(child(path, "verbs"), "verbs must contain at least one value"));
        }
        if !empty(rule, "nonResourceURLs") {
            let urls = at(rule, "nonResourceURLs").clone();
            if self.namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                errors.push(Error::invalid(child(path, "nonResourceURLs"), urls.clone(), why));
            }
            if !empty(rule, "apiGroups") || !empty(rule, "resources") || !empty(rule, "resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(Error::invalid(child(path, "nonResourceURLs"), urls, why));
            }
            return;
        }
        if empty(rule, "apiGroups") {
            errors.push(Error::required(
                child(path, "apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if empty(rule, "resources") {
            errors.push(Error::required(
                child(path, "resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
}

/// RoleBindings and ClusterRoleBindings.
pub(super) struct Bindings {
    pub(super) namespaced: bool,
}

impl Strategy for Bindings {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        if empty(object, "roleRef.apiGroup") {
            set(object, "roleRef.apiGroup", GROUP);
        }
        each(object, "subjects", |subject| {
            if matches!(text(subject, "kind"), "User" | "Group") && empty(subject, "apiGroup") {
                set(subject, "apiGroup", GROUP);
            }
        });
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        path_segment_name(name, prefix)
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let group = text(new, "roleRef.apiGroup");
        if group != GROUP {
            errors.push(Error::not_supported("roleRef.apiGroup", group, &[GROUP]));
        }
        let kind = text(new, "roleRef.kind");
        let kinds: &[&str] = if self.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
        if !kinds.contains(&kind) {
            errors.push(Error::not_supported("roleRef.kind", kind, kinds));
        }
        let name = text(new, "roleRef.name");
        if name.is_empty() {
            errors.push(Error::required("roleRef.name", ""));
        } else {
            wrong(&mut errors, "roleRef.name", name, path_segment_name(name, false));
        }
        for (i, subject) in items(new, "subjects").iter().enumerate() {
            self.subject(&mut errors, &index("subjects", i), subject);
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        let reference = at(new, "roleRef");
        if reference != at(old, "roleRef") {
            let shown = format!(
                "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
                at(reference, "apiGroup"),
                at(reference, "kind"),
                at(reference, "name")
            );
            errors
                .push(Error::invalid("roleRef", reference.clone(), "cannot change roleRef").shown_as(shown));
        }
        errors
    }
}

impl Bindings {
    fn subject(&self, errors: &mut Errors, path: &str, subject: &Value) {
        let name = text(subject, "name");
        if name.is_empty() {
            errors.push(Error::required(child(path, "name"), ""));
        }
        let group = text(subject, "apiGroup");
        match text(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    let bad = validation::dns1123_subdomain_value(name);
                    wrong(errors, &child(path, "name"), name, bad);
                }
                if !group.is_empty() {
                    errors.push(Error::not_supported(child(path, "apiGroup"), group, &[""]));
                }
                if !self.namespaced && empty(subject, "namespace") {
                    errors.push(Error::required(child(path, "namespace"), ""));
                }
            }
            "User" | "Group" => {
                if group != GROUP {
                    errors.push(Error::not_supported(child(path, "apiGroup"), group, &[GROUP]));
                }
            }
            kind => {
                let kinds = ["ServiceAccount", "User", "Group"];
                errors.push(Error::not_supported(child(path, "kind"), kind, &kinds));
            }
        }
    }
}
