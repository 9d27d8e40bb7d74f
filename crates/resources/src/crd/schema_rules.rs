//! Rules of each schema within a CRD beyond structurality: keywords that aren't supported, list and map types,
//! and the form of `x-kubernetes-validations`.

use homeostat_model::field::{Error, child, index, key};
use serde_json::Value;

use super::cel_rules::{Budget, Scope};
use super::field_path;
use super::gotext;
use super::props::{Props, array, flag, items, listed, named, nonzero, object, some, text, texts};

/// OpenAPI types, in the order in which errors list them.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Which rules apply; updates keep what was already broken.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Types must be OpenAPI's.
    pub(crate) valid_types: bool,
    /// Items of sets must be atomic.
    pub(crate) atomic_sets: bool,
    /// Keys of list maps are required or defaulted, and neither they nor items are nullable.
    pub(crate) list_keys: bool,
    /// Schemas must be structural.
    pub(crate) structural: bool,
    /// Every version needs a schema.
    pub(crate) schemas: bool,
    /// Defaults must not have fields that pruning would drop.
    pub(crate) pruned_defaults: bool,
}

/// What the place within the object means for the rules.
#[derive(Clone, Default)]
struct Place {
    /// Why defaults are forbidden here.
    no_defaults: Option<String>,
    /// Within `metadata`, `kind` or `apiVersion` of an object.
    inside_meta: bool,
    /// What CEL rules here may count on; `None` where there are none (within `anyOf` and the like).
    cel: Option<Scope>,
}

/// Errors of a schema and all schemas within it. With a `budget`, CEL rules are checked too; without, the schema is
/// too wrong for it.
pub(crate) fn validate(path: &str, schema: &Props, options: &Options, budget: Option<Budget>) -> Vec<Error> {
    let place = Place { cel: budget.is_some().then(Scope::root), ..Place::default() };
    let mut walk = Walk { options, errors: Vec::new(), budget: budget.unwrap_or_default() };
    walk.schema(path, schema, true, &place);
    let mut errors = walk.errors;
    errors.extend(walk.budget.close(path));
    errors
}

struct Walk<'a> {
    options: &'a Options,
    errors: Vec<Error>,
    budget: Budget,
}

impl Walk<'_> {
    fn schema(&mut self, path: &str, s: &Props, root: bool, place: &Place) {
        let (options, start) = (self.options, self.errors.len());
        let errors = &mut self.errors;
        keywords(path, s, place, options, errors);
        if flag(s, "uniqueItems") {
            let rule = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            errors.push(Error::forbidden(child(path, "uniqueItems"), rule));
        }
        let child_scope = |place: &Place| place.cel.as_ref().map(|c| c.child(s));
        if let Some(additional) = some(s, "additionalProperties") {
            let at = child(path, "additionalProperties");
            if nonzero(s, "properties") && additional != true {
                errors
                    .push(Error::forbidden(&at, "additionalProperties and properties are mutual exclusive"));
            }
            let mut inner = Place { cel: child_scope(place), ..place.clone() };
            if place.inside_meta {
                inner.no_defaults =
                    Some("inside additionalProperties applying to object metadata".to_owned());
            }
            if let Value::Object(additional) = additional {
                self.schema(&at, additional, false, &inner);
            }
        }
        for (name, property) in named(s, "properties") {
            let mut inner = Place { cel: child_scope(place), ..place.clone() };
            if text(s, "x-kubernetes-map-type") == "atomic" {
                inner.forbid_old_self(path);
            }
            let meta = matches!(name, "metadata" | "kind" | "apiVersion");
            if meta && (root || flag(s, "x-kubernetes-embedded-resource")) {
                inner.inside_meta = true;
                if root {
                    inner.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.schema(&key(&child(path, "properties"), name), property, false, &inner);
        }
        let nested = Place { cel: None, ..place.clone() };
        if let Some(not) = object(s, "not") {
            self.schema(&child(path, "not"), not, false, &nested);
        }
        for name in ["allOf", "oneOf", "anyOf", "items"] {
            for (i, inner) in listed(s, name) {
                self.schema(&index(&child(path, name), i), inner, false, &nested);
            }
        }
        for name in ["definitions", "dependencies"] {
            for (k, inner) in named(s, name) {
                self.schema(&key(&child(path, name), k), inner, false, &nested);
            }
        }
        if let Some(items) = items(s) {
            let mut inner = Place { cel: child_scope(place), ..place.clone() };
            // Items of other lists can't be told apart between two versions of an object.
            if text(s, "x-kubernetes-list-type") != "map" {
                inner.forbid_old_self(path);
            }
            self.schema(&child(path, "items"), items, false, &inner);
        }
        let errors = &mut self.errors;
        if s.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let at = child(path, "x-kubernetes-preserve-unknown-fields");
            errors.push(Error::invalid(at, false, "must be true or undefined"));
        }
        map_type(path, s, errors);
        list_type(path, s, options, errors);
        if options.list_keys {
            list_keys(path, s, errors);
        }
        validations(path, s, errors);
        // Of a schema that is wrong here or below, nothing can be said about rules.
        if errors.len() == start
            && let Some(scope) = &place.cel
        {
            self.budget.check(path, s, root, scope);
        }
    }
}

impl Place {
    /// The outermost place counts.
    fn forbid_old_self(&mut self, path: &str) {
        if let Some(cel) = &mut self.cel {
            cel.uncorrelated.get_or_insert_with(|| path.to_owned());
        }
    }
}

fn keywords(path: &str, s: &Props, place: &Place, options: &Options, errors: &mut Vec<Error>) {
    let kind = text(s, "type");
    if options.valid_types && !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(Error::not_supported(child(path, "type"), kind, &TYPES));
    }
    if let Some(reason) = &place.no_defaults
        && some(s, "default").is_some()
    {
        errors.push(Error::forbidden(child(path, "default"), format!("must not be set {reason}")));
    }
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let set = match name {
            "dependencies" => some(s, name).is_some(),
            _ => nonzero(s, name),
        };
        if set {
            errors.push(Error::forbidden(child(path, name), format!("{name} is not supported")));
        }
    }
    if kind == "null" {
        let rule = "type cannot be set to null, use nullable as an alternative";
        errors.push(Error::forbidden(child(path, "type"), rule));
    }
    if !array(s, "items").is_empty() {
        errors.push(Error::forbidden(child(path, "items"), "items must be a schema object and not an array"));
    }
    if place.inside_meta && flag(s, "x-kubernetes-embedded-resource") {
        let at = child(path, "x-kubernetes-embedded-resource");
        errors.push(Error::forbidden(at, "must not be used inside of resource meta"));
    }
}

/// The error of a missing or another type.
fn wrong_type(path: &str, s: &Props, rule: &str) -> Error {
    let at = child(path, "type");
    match text(s, "type") {
        "" => Error::required(at, rule),
        kind => Error::invalid(at, kind, rule),
    }
}

fn map_type(path: &str, s: &Props, errors: &mut Vec<Error>) {
    let Some(map_type) = some(s, "x-kubernetes-map-type").and_then(Value::as_str) else { return };
    if text(s, "type") != "object" {
        errors.push(wrong_type(path, s, "must be object if x-kubernetes-map-type is specified"));
    }
    if !matches!(map_type, "atomic" | "granular") {
        errors.push(Error::not_supported(
            child(path, "x-kubernetes-map-type"),
            map_type,
            &["atomic", "granular"],
        ));
    }
}

fn list_type(path: &str, s: &Props, options: &Options, errors: &mut Vec<Error>) {
    let list_type = some(s, "x-kubernetes-list-type").and_then(Value::as_str);
    let at = child(path, "x-kubernetes-list-type");
    let items_path = child(path, "items");
    if list_type.is_some() && text(s, "type") != "array" {
        errors.push(wrong_type(path, s, "must be array if x-kubernetes-list-type is specified"));
    } else if options.atomic_sets
        && list_type == Some("set")
        && let Some(name) = items(s).and_then(non_atomic)
    {
        // The reference prints the items' list type here, also where it means their map type.
        let value = items(s).and_then(|i| some(i, "x-kubernetes-list-type")).cloned().unwrap_or_default();
        let rule = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(Error::invalid(child(&items_path, name), value, rule));
    }
    if let Some(list_type) = list_type
        && !matches!(list_type, "atomic" | "set" | "map")
    {
        errors.push(Error::not_supported(&at, list_type, &["atomic", "set", "map"]));
    }
    let keys = texts(s, "x-kubernetes-list-map-keys");
    if !keys.is_empty() && list_type != Some("map") {
        let rule = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(match list_type {
            None => Error::required(&at, rule),
            Some(other) => Error::invalid(&at, other, rule),
        });
    }
    if list_type == Some("map") {
        list_map(path, s, &keys, errors);
    }
}

fn list_map(path: &str, s: &Props, keys: &[&str], errors: &mut Vec<Error>) {
    let keys_path = child(path, "x-kubernetes-list-map-keys");
    let items_path = child(path, "items");
    if keys.is_empty() {
        errors.push(Error::required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
    }
    let Some(items) = items(s) else {
        if some(s, "items").is_none() {
            errors.push(Error::required(items_path, "must have a schema if x-kubernetes-list-type is map"));
        }
        return;
    };
    if text(items, "type") != "object" {
        let rule = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(Error::invalid(child(&items_path, "type"), text(items, "type"), rule));
        return;
    }
    for (i, k) in keys.iter().enumerate() {
        match object(items, "properties").and_then(|p| object(p, k)) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let rule = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let at = child(&key(&child(&items_path, "properties"), k), "type");
                errors.push(Error::invalid(at, text(items, "type"), rule));
            }
            Some(_) => {}
            None => {
                errors.push(Error::invalid(
                    &keys_path,
                    keys.to_vec(),
                    "entries must all be names of item properties",
                ));
            }
        }
        if keys[..i].contains(k) {
            errors.push(Error::invalid(&keys_path, keys.to_vec(), "must not contain duplicate entries"));
        }
    }
}

/// The field that should be atomic but isn't, of the items of a set.
fn non_atomic(items: &Props) -> Option<&'static str> {
    let value = |k: &str| some(items, k).and_then(Value::as_str);
    match text(items, "type") {
        "array" => {
            value("x-kubernetes-list-type").is_some_and(|t| t != "atomic").then_some("x-kubernetes-list-type")
        }
        "object" => (value("x-kubernetes-map-type") != Some("atomic")).then_some("x-kubernetes-map-type"),
        _ => None,
    }
}

/// Whether a schema has a set of items that aren't atomic.
pub(crate) fn has_non_atomic_set(s: &Props) -> bool {
    super::props::any(s, &|s| {
        text(s, "x-kubernetes-list-type") == "set" && items(s).and_then(non_atomic).is_some()
    })
}

/// Whether a schema breaks the rules of list keys somewhere.
pub(crate) fn has_bad_list_keys(s: &Props) -> bool {
    super::props::any(s, &|s| {
        let mut errors = Vec::new();
        list_keys("", s, &mut errors);
        !errors.is_empty()
    })
}

/// Whether a schema has a type that isn't OpenAPI's.
pub(crate) fn has_bad_type(s: &Props) -> bool {
    super::props::any(s, &|s| !matches!(text(s, "type"), "") && !TYPES.contains(&text(s, "type")))
}

fn list_keys(path: &str, s: &Props, errors: &mut Vec<Error>) {
    let list_type = text(s, "x-kubernetes-list-type");
    let Some(items) = items(s).filter(|_| matches!(list_type, "set" | "map")) else { return };
    let items_path = child(path, "items");
    if flag(items, "nullable") {
        let rule = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(Error::forbidden(child(&items_path, "nullable"), rule));
    }
    if list_type != "map" {
        return;
    }
    let required = texts(items, "required");
    for k in texts(s, "x-kubernetes-list-map-keys") {
        let Some(property) = object(items, "properties").and_then(|p| object(p, k)) else { continue };
        let at = key(&child(&items_path, "properties"), k);
        if !required.contains(&k) && some(property, "default").is_none() {
            let rule = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                        property";
            errors.push(Error::required(child(&at, "default"), rule));
        }
        if flag(property, "nullable") {
            let rule = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(Error::forbidden(child(&at, "nullable"), rule));
        }
    }
}

/// The form of CEL rules; what they mean is checked where they are compiled.
fn validations(path: &str, s: &Props, errors: &mut Vec<Error>) {
    let newline = |t: &str| t.contains(['\n', '\r']);
    for (i, rule) in listed(s, "x-kubernetes-validations") {
        let at = index(&child(path, "x-kubernetes-validations"), i);
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
        let message_path = child(&at, "message");
        if expression.is_empty() {
            errors.push(Error::required(child(&at, "rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(Error::invalid(message_path, message, "must be non-empty if specified"));
        } else if newline(message.trim()) {
            errors.push(Error::invalid(message_path, message, "must not contain line breaks"));
        } else if newline(expression) && message.trim().is_empty() {
            errors.push(Error::required(
                message_path,
                "message must be specified if rule contains line breaks",
            ));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let hint = "messageExpression must be non-empty if specified";
            errors.push(Error::required(child(&at, "messageExpression"), hint));
        }
        if let Some(reason) = some(rule, "reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            errors.push(Error::not_supported(child(&at, "reason"), reason, &REASONS));
        }
        let field = text(rule, "fieldPath");
        let at = child(&at, "fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            errors.push(Error::invalid(&at, field, "must be non-empty if specified"));
        }
        if newline(field) {
            errors.push(Error::invalid(&at, field, "must not contain line breaks"));
        }
        if !field.is_empty()
            && super::structural::unsupported(s).is_none()
            && field_path::resolve(field, s, true).is_err()
        {
            errors.push(Error::invalid(&at, field, "must be a valid path"));
        }
    }
}

/// With a status subresource, the root may only have fields that don't judge spec and status together.
pub(crate) fn root_with_status(path: &str, schema: &Props, errors: &mut Vec<Error>) {
    const ALLOWED: [&str; 22] = [
        "Description",
        "Type",
        "Format",
        "Title",
        "Maximum",
        "ExclusiveMaximum",
        "Minimum",
        "ExclusiveMinimum",
        "MaxLength",
        "MinLength",
        "Pattern",
        "MaxItems",
        "MinItems",
        "UniqueItems",
        "MultipleOf",
        "Required",
        "Items",
        "Properties",
        "ExternalDocs",
        "Example",
        "XPreserveUnknownFields",
        "XValidations",
    ];
    for (_, name) in gotext::set_fields(schema) {
        if name == "Type" {
            let kind = text(schema, "type");
            if kind != "object" {
                let rule = "only \"object\" is allowed as the type at the root of the schema if the status \
                            subresource is enabled";
                errors.push(Error::invalid(child(path, "type"), kind, rule));
                return;
            }
        } else if !ALLOWED.contains(&name) {
            let rule = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ALLOWED.join(" ")
            );
            let value = homeostat_model::field::verbatim(gotext::schema(schema));
            errors.push(Error::invalid(path, value, rule));
            return;
        }
    }
}
