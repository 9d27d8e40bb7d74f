//! Whether a schema is structural: types everywhere, and what value validations (`anyOf` …) may mention.
//!
//! Invariant: errors come sorted by their text, as the reference sorts them.

use homeostat_model::field::{Error, child, index, key};
use serde_json::Value;

use super::pattern;
use super::props::{Props, array, flag, items, listed, named, nonzero, object, some, text};

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why no structural schema can be made of this one: keywords that it has no place for.
pub(crate) fn unsupported(s: &Props) -> Option<String> {
    const KEYWORDS: [(&str, &str); 7] = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    let set = |k: &str| if k == "additionalItems" { some(s, k).is_some() } else { nonzero(s, k) };
    if let Some((_, name)) = KEYWORDS.iter().find(|(k, _)| set(k)) {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if let Some(found) = object(s, "not").and_then(unsupported) {
        return Some(found);
    }
    if let Some(found) =
        ["allOf", "anyOf", "oneOf"].iter().find_map(|k| listed(s, k).find_map(|(_, s)| unsupported(s)))
    {
        return Some(found);
    }
    if s.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
        );
    }
    if !array(s, "items").is_empty() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    items(s)
        .and_then(unsupported)
        .or_else(|| named(s, "properties").find_map(|(_, s)| unsupported(s)))
        .or_else(|| object(s, "additionalProperties").and_then(unsupported))
}

/// What keeps a schema from being structural.
pub(crate) fn validate(path: &str, s: &Props) -> Vec<Error> {
    let mut errors = Vec::new();
    invariants(s, Level::Root, path, &mut errors);
    junctors(s, &mut |name, nested| complete(nested, s, path, &format!("{path}.{name}"), &mut errors));
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn invariants(s: &Props, level: Level, path: &str, errors: &mut Vec<Error>) {
    let kind = text(s, "type");
    if kind == "array" && items(s).is_none() {
        errors.push(Error::required(child(path, "items"), "must be specified"));
    }
    if let Some(items) = items(s) {
        invariants(items, Level::Item, &child(path, "items"), errors);
    }
    for (k, property) in named(s, "properties") {
        invariants(property, Level::Field, &key(&child(path, "properties"), k), errors);
    }
    if let Some(additional) = some(s, "additionalProperties") {
        if level == Level::Root {
            errors
                .push(Error::forbidden(child(path, "additionalProperties"), "must not be used at the root"));
        }
        if let Value::Object(additional) = additional {
            invariants(additional, Level::Field, &child(path, "additionalProperties"), errors);
        }
    }

    let int_or_string = flag(s, "x-kubernetes-int-or-string");
    let preserve = flag(s, "x-kubernetes-preserve-unknown-fields");
    let embedded = flag(s, "x-kubernetes-embedded-resource");
    for (set, name) in
        [(preserve, "x-kubernetes-preserve-unknown-fields"), (embedded, "x-kubernetes-embedded-resource")]
    {
        if int_or_string && set {
            let rule = "must be false if x-kubernetes-int-or-string is true";
            errors.push(Error::invalid(child(path, name), true, rule));
        }
    }

    let skip_any_of = is_int_or_string(s);
    let skip_first = listed(s, "allOf").next().is_some_and(|(i, first)| i == 0 && is_int_or_string(first));
    value_validation(s, skip_any_of, skip_first, path, errors);

    if embedded && kind != "object" {
        let (at, rule) = (child(path, "type"), "must be object if x-kubernetes-embedded-resource is true");
        errors.push(if kind.is_empty() { Error::required(at, rule) } else { Error::invalid(at, kind, rule) });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let rule = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(Error::required(child(path, "type"), rule));
    }
    if embedded && some(s, "additionalProperties").is_some() {
        let rule = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(Error::forbidden(child(path, "additionalProperties"), rule));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(Error::invalid(child(path, "type"), kind, "must be object at the root"));
    }
    metadata(s, level, level == Level::Root || embedded, path, errors);
    if embedded && !preserve && object(s, "properties").is_none_or(Props::is_empty) {
        let rule = "must not be empty if x-kubernetes-embedded-resource is true without \
                    x-kubernetes-preserve-unknown-fields";
        errors.push(Error::required(child(path, "properties"), rule));
    }
}

/// `apiVersion`, `kind` and `metadata` are implied; a schema may restrict names only.
fn metadata(s: &Props, level: Level, check: bool, path: &str, errors: &mut Vec<Error>) {
    let Some(properties) = object(s, "properties") else { return };
    let properties_path = child(path, "properties");
    for name in ["kind", "apiVersion"] {
        if let Some(p) = object(properties, name)
            && check
            && text(p, "type") != "string"
        {
            let at = child(&key(&properties_path, name), "type");
            errors.push(Error::invalid(at, text(p, "type"), "must be string"));
        }
    }
    let Some(meta) = object(properties, "metadata") else { return };
    let at = key(&properties_path, "metadata");
    if check && text(meta, "type") != "object" {
        errors.push(Error::invalid(child(&at, "type"), text(meta, "type"), "must be object"));
    }
    if level == Level::Root {
        let names_only = |p: &Props| p.keys().all(|k| k == "name" || k == "generateName");
        let other = super::gotext::set_fields(meta).any(|(field, _)| match field {
            "type" | "default" => false,
            "properties" => object(meta, "properties").is_some_and(|p| !names_only(p)),
            _ => true,
        });
        if other {
            let rule = "must not specify anything other than name and generateName, but metadata is implicitly \
                        specified";
            errors.push(Error::forbidden(at, rule));
        }
    }
}

/// Exactly `anyOf: [{type: integer}, {type: string}]`, which may stand beside x-kubernetes-int-or-string.
fn is_int_or_string(s: &Props) -> bool {
    let any_of = array(s, "anyOf");
    any_of.len() == 2
        && any_of.iter().zip(["integer", "string"]).all(|(v, kind)| {
            v.as_object().is_some_and(|o| {
                super::gotext::set_fields(o).eq([("type", "Type")]) && text(o, "type") == kind
            })
        })
}

fn value_validation(s: &Props, skip_any_of: bool, skip_first: bool, path: &str, errors: &mut Vec<Error>) {
    if !skip_any_of {
        for (i, nested) in listed(s, "anyOf") {
            nested_validation(nested, false, &index(&child(path, "anyOf"), i), errors);
        }
    }
    for (i, nested) in listed(s, "allOf") {
        nested_validation(nested, skip_first && i == 0, &index(&child(path, "allOf"), i), errors);
    }
    for (i, nested) in listed(s, "oneOf") {
        nested_validation(nested, false, &index(&child(path, "oneOf"), i), errors);
    }
    if let Some(nested) = object(s, "not") {
        nested_validation(nested, false, &child(path, "not"), errors);
    }
    let expression = text(s, "pattern");
    if let Some(why) = pattern::error(expression) {
        let rule = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(Error::invalid(child(path, "pattern"), expression, rule));
    }
}

fn nested_validation(s: &Props, skip_any_of: bool, path: &str, errors: &mut Vec<Error>) {
    value_validation(s, skip_any_of, false, path, errors);
    if let Some(items) = items(s) {
        nested_validation(items, false, &child(path, "items"), errors);
    }
    for (k, property) in named(s, "properties") {
        nested_validation(property, false, &key(&child(path, "properties"), k), errors);
    }
    let mut forbid = |name: &str, rule: &str| {
        errors.push(Error::forbidden(child(path, name), format!("must be {rule} to be structural")));
    };
    for (name, rule) in [
        ("type", "empty"),
        ("title", "empty"),
        ("description", "empty"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-validations", "empty"),
        ("default", "undefined"),
        ("x-kubernetes-list-type", "undefined"),
        ("x-kubernetes-map-type", "undefined"),
    ] {
        if nonzero(s, name) {
            forbid(name, rule);
        }
    }
    for name in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(s, name) {
            forbid(name, "false");
        }
    }
    if some(s, "additionalProperties").is_some_and(|v| v != false) {
        forbid("additionalProperties", "undefined");
    }
    if object(s, "properties").is_some_and(|p| p.contains_key("metadata")) {
        let at = key(&child(path, "properties"), "metadata");
        errors.push(Error::forbidden(at, "must not be specified in a nested context"));
    }
}

/// Calls `visit` with each schema under `not`, `allOf`, `anyOf` and `oneOf`, and its path from here.
fn junctors<'a>(s: &'a Props, visit: &mut dyn FnMut(&str, &'a Props)) {
    if let Some(nested) = object(s, "not") {
        visit("not", nested);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (i, nested) in listed(s, name) {
            visit(&index(name, i), nested);
        }
    }
}

/// Every field that a value validation names must be named by the structure as well.
fn complete(nested: &Props, s: &Props, s_path: &str, v_path: &str, errors: &mut Vec<Error>) {
    junctors(nested, &mut |name, inner| complete(inner, s, s_path, &format!("{v_path}.{name}"), errors));
    if let Some(nested_items) = items(nested) {
        let (at, from) = (child(s_path, "items"), child(v_path, "items"));
        match items(s) {
            Some(items) => complete(nested_items, items, &at, &from, errors),
            None => errors.push(Error::required(at, format!("because it is defined in {from}"))),
        }
    }
    for (k, property) in named(nested, "properties") {
        let at = key(&child(s_path, "properties"), k);
        let from = key(&child(v_path, "properties"), k);
        match object(s, "properties").and_then(|p| object(p, k)) {
            Some(counterpart) => complete(property, counterpart, &at, &from, errors),
            None => errors.push(Error::required(at, format!("because it is defined in {from}"))),
        }
    }
}
