//! Which definitions are refused, with the reference's causes.
//!
//! Object metadata is checked by the API server as for every object; here stands what is special to CRDs. An update
//! may keep what an older server accepted: rules that the old object breaks are not asked of the new one.

use homeostat_model::field::{Error, child, index, verbatim};
use homeostat_model::validation;
use serde_json::Value;

use super::cel_rules::Budget;
use super::props::{MAX_DEPTH, Props, deeper_than, flag, object, schemas_deeper_than, some, text, texts};
use super::schema_rules::{self, Options};
use super::spec::{SpecView, VersionView};
use super::{approval, columns, conversion, gotext, structural};

/// Everything that the rules of one request depend on.
struct Rules {
    options: Options,
    immutable_names: bool,
    known_review_version: bool,
    any_bundle: bool,
    /// Versions, `""` for the shared fields, whose too many selectable fields stay.
    many_selectable: Vec<String>,
    /// Versions whose schema is what it was.
    unchanged: Vec<String>,
}

impl Rules {
    fn unchanged(&self, version: &str) -> bool {
        self.unchanged.iter().any(|v| v == version)
    }
}

/// Errors of a new CRD, defaulted and with its initial status.
pub fn validate_create(crd: &Value) -> Vec<Error> {
    validate(crd, None)
}

/// Errors of a changed CRD.
pub fn validate_update(crd: &Value, old: &Value) -> Vec<Error> {
    validate(crd, Some(old))
}

/// Errors of a status update: only names are looked at.
pub fn validate_status(crd: &Value, _old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(names) = crd["status"]["acceptedNames"].as_object() {
        self::names("status.acceptedNames", names, &mut errors);
    }
    errors
}

fn validate(crd: &Value, old: Option<&Value>) -> Vec<Error> {
    let empty = Props::new();
    let spec = SpecView::new(crd["spec"].as_object().unwrap_or(&empty));
    let old_spec = old.map(|o| SpecView::new(o["spec"].as_object().unwrap_or(&empty)));
    let mut errors = Vec::new();

    if old.is_none() {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let plural = object(spec.raw, "names").map(|n| text(n, "plural")).unwrap_or_default();
        if name != format!("{plural}.{}", text(spec.raw, "group")) {
            errors.push(Error::invalid("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
        }
    }
    let too_deep = |s: &Value| {
        deeper_than(s, 2 * MAX_DEPTH)
            || s.get("openAPIV3Schema").is_some_and(|s| schemas_deeper_than(s, MAX_DEPTH))
    };
    if spec.list().iter().any(|v| v.raw.get("schema").is_some_and(too_deep)) {
        let rule = format!("schemas may not be nested deeper than {MAX_DEPTH} levels");
        errors.push(Error::forbidden("spec.versions", rule));
        return errors;
    }
    let rules = rules(&spec, old, old_spec.as_ref());
    self::spec("spec", &spec, &rules, &mut errors);
    if let (Some(old), true) = (&old_spec, rules.immutable_names) {
        let (new_names, old_names) = (object(spec.raw, "names"), object(old.raw, "names"));
        let kind = |n: Option<&Props>| n.map(|n| text(n, "kind").to_owned()).unwrap_or_default();
        immutable("spec.scope", text(spec.raw, "scope"), text(old.raw, "scope"), &mut errors);
        immutable("spec.names.kind", &kind(new_names), &kind(old_names), &mut errors);
    }
    if let Some(old) = &old_spec {
        let plural = |s: &SpecView<'_>| {
            object(s.raw, "names").map(|n| text(n, "plural").to_owned()).unwrap_or_default()
        };
        immutable("spec.group", text(spec.raw, "group"), text(old.raw, "group"), &mut errors);
        immutable("spec.names.plural", &plural(&spec), &plural(old), &mut errors);
    }
    if let Some(accepted) = crd["status"]["acceptedNames"].as_object() {
        names("status.acceptedNames", accepted, &mut errors);
    }
    stored_versions(crd, &spec, &mut errors);
    approval::validate(crd, old, &mut errors);
    let preserved = old_spec.as_ref().is_some_and(|s| flag(s.raw, "preserveUnknownFields"));
    if !preserved && flag(spec.raw, "preserveUnknownFields") {
        let rule = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                    instead";
        errors.push(Error::invalid("spec.preserveUnknownFields", true, rule));
    }
    errors
}

fn immutable(path: &str, new: &str, old: &str, errors: &mut Vec<Error>) {
    if new != old {
        errors.push(Error::invalid(path, new, "field is immutable"));
    }
}

fn rules(spec: &SpecView<'_>, old: Option<&Value>, old_spec: Option<&SpecView<'_>>) -> Rules {
    let Some((old, old_spec)) = old.zip(old_spec) else {
        let options = Options {
            valid_types: true,
            atomic_sets: true,
            list_keys: true,
            structural: true,
            schemas: true,
            pruned_defaults: true,
        };
        return Rules {
            options,
            immutable_names: false,
            known_review_version: true,
            any_bundle: true,
            many_selectable: Vec::new(),
            unchanged: Vec::new(),
        };
    };
    let never = |broken: &dyn Fn(&Props) -> bool| !old_spec.schemas().any(broken);
    let is_structural =
        |s: &Props| structural::unsupported(s).is_none() && structural::validate("", s).is_empty();
    let old_conversion = object(old_spec.raw, "conversion");
    let established = super::is_established(old);
    let old_bundle = old_conversion
        .and_then(|c| object(c, "webhook"))
        .and_then(|w| object(w, "clientConfig"))
        .map(|c| text(c, "caBundle"))
        .unwrap_or_default();
    let bad_bundle = !old_bundle.is_empty() && !crate::webhook::validate_ca_bundle("", old_bundle).is_empty();
    let same = |v: &&str| spec.schema_of(v).is_some() && spec.schema_of(v) == old_spec.schema_of(v);
    let unchanged = spec.list().iter().map(VersionView::name).filter(same).map(str::to_owned).collect();
    let mut many_selectable = Vec::new();
    if old_spec.selectable.len() > 8 && old_spec.selectable == spec.selectable {
        many_selectable.push(String::new());
    }
    for v in spec.list() {
        let same = |o: &&VersionView<'_>| {
            o.name() == v.name() && o.selectable.len() > 8 && o.selectable == v.selectable
        };
        if old_spec.list().iter().any(|o| same(&o)) {
            many_selectable.push(v.name().to_owned());
        }
    }
    Rules {
        options: Options {
            valid_types: never(&schema_rules::has_bad_type),
            atomic_sets: never(&schema_rules::has_non_atomic_set),
            list_keys: never(&schema_rules::has_bad_list_keys),
            structural: never(&|s| !is_structural(s)),
            schemas: old_spec.schema().is_some() || old_spec.list().iter().all(|v| v.schema().is_some()),
            pruned_defaults: never(&super::default_values::has_unpruned),
        },
        immutable_names: established,
        known_review_version: conversion::has_known_review_version(old_conversion),
        any_bundle: !established || bad_bundle,
        many_selectable,
        unchanged,
    }
}

fn spec(path: &str, spec: &SpecView<'_>, rules: &Rules, errors: &mut Vec<Error>) {
    let mut options = rules.options.clone();
    let group = text(spec.raw, "group");
    let group_errors = validation::dns1123_subdomain(group, false);
    let at = child(path, "group");
    if group.is_empty() {
        errors.push(Error::required(at, ""));
    } else if !group_errors.is_empty() {
        errors.push(Error::invalid(at, group, group_errors.join(",")));
    } else if !group.contains('.') {
        errors.push(Error::invalid(at, group, "should be a domain with at least one dot"));
    }
    match text(spec.raw, "scope") {
        "" => errors.push(Error::required(child(path, "scope"), "")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(Error::not_supported(child(path, "scope"), other, &["Cluster", "Namespaced"])),
    }
    let preserve = flag(spec.raw, "preserveUnknownFields");
    let versions_path = child(path, "versions");
    if spec.schema().is_none() {
        for (i, v) in spec.list().iter().enumerate().filter(|(_, v)| v.schema().is_none()) {
            let at = child(&child(&index(&versions_path, i), "schema"), "openAPIV3Schema");
            if options.schemas {
                errors.push(Error::required(at, ""));
            } else if !preserve && flag(v.raw, "served") {
                errors.push(Error::required(at, "because otherwise all fields are pruned"));
            }
        }
    }
    let has = |found: &dyn Fn(&Props) -> bool| spec.schemas().any(|s| super::props::any(s, found));
    let defaults = has(&|s| some(s, "default").is_some());
    if defaults && preserve {
        let rule = "must be false in order to use defaults in the schema";
        errors.push(Error::invalid(child(path, "preserveUnknownFields"), true, rule));
    }
    let extended = has(&|s| s.keys().any(|k| k.starts_with("x-kubernetes-") && super::props::nonzero(s, k)));
    options.structural |= !preserve || defaults || extended;

    versions(&versions_path, spec, rules, &options, errors);
    top_level(path, spec, rules, &options, errors);
    let conversion_path = child(path, "conversion");
    let converts = object(spec.raw, "conversion");
    if preserve && let Some(strategy) = converts.map(|c| text(c, "strategy")).filter(|s| *s != "None") {
        let at = child(&conversion_path, "strategy");
        errors.push(Error::invalid(at, strategy, "must be None if spec.preserveUnknownFields is true"));
    }
    conversion::validate(&conversion_path, converts, rules.known_review_version, rules.any_bundle, errors);
}

/// What each version says for itself, and what they say together.
fn versions(path: &str, spec: &SpecView<'_>, rules: &Rules, options: &Options, errors: &mut Vec<Error>) {
    let list = spec.list();
    for (i, v) in list.iter().enumerate() {
        let at = index(path, i);
        let name_errors = validation::dns1035_label(v.name(), false);
        if !name_errors.is_empty() {
            errors.push(Error::invalid(child(&at, "name"), v.name(), name_errors.join(",")));
        }
        deprecation(&child(&at, "deprecationWarning"), v.raw, errors);
        let status = spec.subresources_of(v).is_some_and(|s| some(s, "status").is_some());
        schema(&child(&at, "schema"), v.validation, status, rules.unchanged(v.name()), options, errors);
        columns::subresources(&child(&at, "subresources"), v.subresources, errors);
        columns::columns(&child(&at, "additionalPrinterColumns"), v.columns, errors);
        if !v.selectable.is_empty() {
            let at = child(&at, "selectableFields");
            match v.schema().or_else(|| spec.schema()) {
                Some(schema) => {
                    let keep = rules.many_selectable.iter().any(|m| m == v.name());
                    columns::selectable(&at, v.selectable, Some(schema), keep, errors);
                }
                None => {
                    let rule = "may only be set when `version.schema.openAPIV3Schema` is not included";
                    errors.push(Error::invalid(at, "", rule));
                }
            }
        }
    }
    let mut names: Vec<&str> = list.iter().map(VersionView::name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    let mut all = |rule: &str| {
        let value = verbatim(gotext::versions(spec.versions.as_deref()));
        errors.push(Error::invalid(path, value, rule));
    };
    if names.len() != count {
        all("must contain unique version names");
    }
    if list.iter().filter(|v| flag(v.raw, "storage")).count() != 1 {
        all("must have exactly one version marked as storage version");
    }
}

/// What stands once at the top of the internal type.
fn top_level(path: &str, spec: &SpecView<'_>, rules: &Rules, options: &Options, errors: &mut Vec<Error>) {
    if !spec.first().is_empty() {
        let name_errors = validation::dns1035_label(spec.first(), false);
        if !name_errors.is_empty() {
            errors.push(Error::invalid(child(path, "version"), spec.first(), name_errors.join(",")));
        }
    }
    let empty = Props::new();
    let (requested, at) = (object(spec.raw, "names").unwrap_or(&empty), child(path, "names"));
    for name in ["plural", "singular", "kind", "listKind"] {
        if text(requested, name).is_empty() {
            errors.push(Error::required(child(&at, name), ""));
        }
    }
    names(&at, requested, errors);
    let enabled = |s: Option<&Props>| s.is_some_and(|s| some(s, "status").is_some());
    let status = enabled(spec.subresources) || spec.list().iter().any(|v| enabled(v.subresources));
    schema(
        &child(path, "validation"),
        spec.validation,
        status,
        rules.unchanged(spec.first()),
        options,
        errors,
    );
    columns::subresources(&child(path, "subresources"), spec.subresources, errors);
    columns::columns(&child(path, "additionalPrinterColumns"), spec.columns, errors);
    if !spec.selectable.is_empty() {
        let at = child(path, "selectableFields");
        if spec.validation.is_none() {
            errors.push(Error::invalid(at, "", "may only be set when validations.schema is included"));
        } else {
            let keep = rules.many_selectable.iter().any(String::is_empty);
            columns::selectable(&at, spec.selectable, spec.schema(), keep, errors);
        }
    }
}

/// Errors of `{openAPIV3Schema: …}`.
fn schema(
    path: &str,
    wrapper: Option<&Props>,
    status: bool,
    unchanged: bool,
    options: &Options,
    errors: &mut Vec<Error>,
) {
    let Some(schema) = wrapper.and_then(|w| object(w, "openAPIV3Schema")) else { return };
    let (path, before) = (child(path, "openAPIV3Schema"), errors.len());
    if status {
        schema_rules::root_with_status(&path, schema, errors);
    }
    if flag(schema, "nullable") {
        errors.push(Error::forbidden(child(&path, "nullable"), "nullable cannot be true at the root"));
    }
    let (mut no_structure, mut budget) = (None, None);
    if options.structural {
        no_structure = structural::unsupported(schema);
        if no_structure.is_none() {
            let mut found = structural::validate(&path, schema);
            if found.is_empty() {
                found = super::default_values::validate(&path, schema, options.pruned_defaults);
            }
            if found.is_empty() {
                budget = Some(Budget::new(unchanged));
            }
            errors.extend(found);
        }
    }
    errors.extend(schema_rules::validate(&path, schema, options, budget));
    if errors.len() == before
        && let Some(why) = no_structure
    {
        errors.push(Error::invalid(path, "", why));
    }
}

fn deprecation(path: &str, version: &Props, errors: &mut Vec<Error>) {
    let Some(warning) = some(version, "deprecationWarning").and_then(Value::as_str) else { return };
    if !flag(version, "deprecated") {
        errors.push(Error::invalid(path, warning, "can only be set for deprecated versions"));
        return;
    }
    if warning.len() > 256 {
        errors.push(Error::invalid(path, warning, "must be <= 256 characters long"));
    }
    if warning.is_empty() {
        errors.push(Error::invalid(path, warning, "must not be an empty string"));
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !is_print(*c)) {
        let rule = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        );
        errors.push(Error::invalid(path, warning, rule));
    }
}

/// Go's `unicode.IsPrint`, but for unassigned code points.
fn is_print(c: char) -> bool {
    c == ' '
        || !(c.is_control()
            || c.is_whitespace()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{feff}'))
}

/// Errors of names, requested or accepted.
fn names(path: &str, names: &Props, errors: &mut Vec<Error>) {
    let label = |v: &str| validation::dns1035_label(v, false).join(",");
    let mut check = |at: String, value: &str, why: String, prefix: &str| {
        if !value.is_empty() && !why.is_empty() {
            errors.push(Error::invalid(at, value, format!("{prefix}{why}")));
        }
    };
    for name in ["plural", "singular"] {
        check(child(path, name), text(names, name), label(text(names, name)), "");
    }
    for name in ["kind", "listKind"] {
        let prefix = "may have mixed case, but should otherwise match: ";
        check(child(path, name), text(names, name), label(&text(names, name).to_lowercase()), prefix);
    }
    let list = |name: &str, errors: &mut Vec<Error>| {
        for (i, value) in texts(names, name).into_iter().enumerate() {
            let why = label(value);
            if !why.is_empty() {
                errors.push(Error::invalid(index(&child(path, name), i), value, why));
            }
        }
    };
    list("shortNames", errors);
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let rule = "kind and listKind may not be the same";
        errors.push(Error::invalid(child(path, "listKind"), list_kind, rule));
    }
    list("categories", errors);
}

fn stored_versions(crd: &Value, spec: &SpecView<'_>, errors: &mut Vec<Error>) {
    let path = "status.storedVersions";
    let list = &crd["status"]["storedVersions"];
    let stored: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        errors.push(Error::invalid(path, list.clone(), "must have at least one stored version"));
        return;
    }
    for v in spec.list().iter().filter(|v| flag(v.raw, "storage") && !stored.contains(&v.name())) {
        errors.push(Error::invalid(
            path,
            stored.clone(),
            format!("must have the storage version {}", v.name()),
        ));
    }
    for (i, v) in stored.iter().enumerate().filter(|(_, s)| spec.list().iter().all(|v| v.name() != **s)) {
        let rule = format!(
            "missing from spec.versions; {v} was previously a storage version, and must remain in spec.versions until \
             a storage migration ensures no data remains persisted in {v} and removes {v} from status.storedVersions"
        );
        errors.push(Error::invalid(index(path, i), *v, rule));
    }
}
