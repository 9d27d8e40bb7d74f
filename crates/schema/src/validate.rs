//! Validation of custom resources against their schema: kinds, paths and texts of kube-openapi's validator as
//! apiextensions reports them, with ratcheting.
//!
//! Nothing is coerced here; decoding, pruning and defaulting came before. Invariants: an unchanged value never
//! fails an update (where the reference correlates it), and the walk builds no path before something is wrong.

mod composition;
mod embedded;
mod lists;
mod number;

use homeostat_model::field::{Error, Kind as Wrong};
use serde_json::{Map, Value};

pub(crate) use lists::find as find_item;

use crate::cel;
use crate::golang::NIL;
use crate::node::{Kind, ListType, Node};
use crate::path::Path;
use crate::rules::Rules;

/// Errors of one object; more are not collected.
const MAX_ERRORS: usize = 1000;

/// What validation found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Why the object is refused; empty when it is good.
    pub errors: Vec<Error>,
    /// Texts of Warning headers: rules that an unchanged value breaks.
    pub warnings: Vec<String>,
}

/// Validates a whole custom resource; `old` is what it replaces.
pub(crate) fn object(root: &Node, new: &Value, old: Option<&Value>) -> Report {
    let mut report = Report::default();
    let mut out = Out::default();
    validate(root, new, old, &Path::Root, &mut out);
    report.errors = out.errors;
    embedded::validate(root, new, &Path::Root, true, &mut report.errors);
    // A list that had duplicates before may keep them, and others.
    let mut before = Vec::new();
    if let Some(old) = old {
        lists::validate(root, old, &Path::Root, &mut before);
    }
    if before.is_empty() {
        lists::validate(root, new, &Path::Root, &mut report.errors);
    }
    if !root.rules_below {
        return report;
    }
    if report.errors.iter().any(|e| is_blocking(e.kind)) {
        report.errors.push(Error::invalid(
            NIL,
            Value::Null,
            "some validation rules were not checked because the object was invalid; correct the existing errors \
             to complete validation",
        ));
        return report;
    }
    cel::evaluate(root, new, old, &mut report);
    report
}

/// Errors that tell of an object too wrong for rules to make sense of.
fn is_blocking(kind: Wrong) -> bool {
    matches!(
        kind,
        Wrong::NotSupported | Wrong::Required | Wrong::TooLong | Wrong::TooMany | Wrong::TypeInvalid
    )
}

/// Errors, and how many checks were passed: compositions report the branch that came furthest.
#[derive(Default)]
pub(crate) struct Out {
    errors: Vec<Error>,
    matches: u32,
}

impl Out {
    fn push(&mut self, error: Error) {
        self.errors.push(error);
    }

    fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    /// Drops errors after `start` that were there before, as the reference keeps texts unique.
    fn unique_from(&mut self, start: usize) {
        let mut at = start;
        while at < self.errors.len() {
            if self.errors[..at].contains(&self.errors[at]) {
                self.errors.remove(at);
            } else {
                at += 1;
            }
        }
    }
}

/// Validates `value`; errors are dropped if it is what it was.
fn validate(node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>, out: &mut Out) {
    if out.is_full() {
        return;
    }
    let start = out.errors.len();
    check(node, value, old, path, out);
    if out.errors.len() > start && old == Some(value) {
        out.errors.truncate(start);
    }
}

fn check(node: &Node, value: &Value, old: Option<&Value>, path: &Path<'_>, out: &mut Out) {
    if value.is_null() {
        out.matches += u32::from(type_check(node, value, path, out));
        if let Some(rules) = &node.rules {
            enumeration(rules, value, path, out);
        }
        return;
    }
    if node.kind != Kind::Any || node.format.is_some() {
        out.matches += 1 + u32::from(type_check(node, value, path, out));
    }
    // The composition and the enumeration are always looked at, and the whole counts once.
    out.matches += 4;
    let rules = node.rules.as_deref();
    if let Some(rules) = rules {
        composition::check(rules, value, old, path, out);
    }
    match value {
        Value::String(s) => {
            out.matches += 1;
            if let Some(rules) = rules {
                text(rules, s, path, out);
            }
            if let Some(format) = node.checked_format {
                out.matches += 1;
                if !format.accepts(s) {
                    let name = node.format.as_deref().unwrap_or_default();
                    type_invalid(path, s, &format!("{name}: {}", homeostat_model::field::quote(s)), out);
                }
            }
        }
        Value::Number(n) => {
            out.matches += 2;
            number::check(node, rules, n, path, out);
        }
        Value::Array(items) => {
            out.matches += 2;
            array(node, rules, items, old, path, out);
        }
        _ => {}
    }
    if let Some(rules) = rules {
        enumeration(rules, value, path, out);
    }
    if let Value::Object(map) = value {
        out.matches += 1;
        object_fields(node, rules, map, old, path, out);
    }
}

/// `P in body must be of type …`.
fn type_invalid(path: &Path<'_>, shown: &str, expected: &str, out: &mut Out) {
    out.push(Error::type_invalid(
        path.to_string(),
        shown,
        format!("{path} in body must be of type {expected}"),
    ));
}

/// JSON type and the format that go-openapi gives a value.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(n) if n.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
    }
}

/// Whether the value has the type that is asked for.
fn type_check(node: &Node, value: &Value, path: &Path<'_>, out: &mut Out) -> bool {
    let names = match node.kind {
        Kind::Any => "",
        Kind::IntOrString => "integer,string",
        kind => kind.name(),
    };
    let (actual, actual_format) = type_of(value);
    let fail = |expected: &str, shown: &str, out: &mut Out| {
        type_invalid(path, shown, &format!("{expected}: \"{shown}\""), out);
        false
    };
    if value.is_null() {
        return names.is_empty() || node.nullable || fail(names, "null", out);
    }
    let is_whole = || value.as_f64().is_some_and(number::is_integer);
    let matches = match node.kind {
        Kind::Any => false,
        Kind::IntOrString => actual == "integer" || actual == "string" || (actual == "number" && is_whole()),
        Kind::Integer => actual == "integer" || (actual == "number" && is_whole()),
        Kind::Number => value.is_number(),
        kind => kind.name() == actual,
    };
    if matches {
        return true;
    }
    let format = node.format.as_deref().unwrap_or_default();
    if !format.is_empty() {
        // A quirk that is kept: a format lets lists through where a text is expected.
        if !(value.is_string() || value.is_array()) {
            return format == actual_format || fail(format, actual_format, out);
        }
        if !matches!(node.kind, Kind::Integer | Kind::Number | Kind::IntOrString) {
            return true;
        }
    }
    fail(names, actual, out)
}

fn text(rules: &Rules, s: &str, path: &Path<'_>, out: &mut Out) {
    if let Some(max) = rules.max_length
        // Fewer bytes are fewer characters.
        && s.len() as u64 > max
        && s.chars().count() as u64 > max
    {
        return out.push(Error::too_long(path.to_string(), max as usize));
    }
    if let Some(min) = rules.min_length
        && (s.len() as u64) < min.saturating_mul(4)
        && (s.chars().count() as u64) < min
    {
        let detail = format!("{path} in body should be at least {min} chars long");
        return out.push(Error::invalid(path.to_string(), s, detail));
    }
    if let Some(pattern) = &rules.pattern
        && !pattern.regex.is_match(s)
    {
        let detail = format!("{path} in body should match '{}'", pattern.source);
        out.push(Error::invalid(path.to_string(), s, detail));
    }
}

/// Equality of enum values: numbers by value, so that 1.0 is 1.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}

fn enumeration(rules: &Rules, value: &Value, path: &Path<'_>, out: &mut Out) {
    if rules.r#enum.is_empty() || rules.r#enum.iter().any(|e| same(e, value)) {
        return;
    }
    let allowed: Vec<String> =
        rules.r#enum.iter().map(|e| e.as_str().map_or_else(|| e.to_string(), str::to_owned)).collect();
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
    out.push(Error::not_supported(path.to_string(), value.clone(), &allowed));
}

fn array(
    node: &Node,
    rules: Option<&Rules>,
    items: &[Value],
    old: Option<&Value>,
    path: &Path<'_>,
    out: &mut Out,
) {
    if let Some(item) = node.items() {
        let old = old.and_then(Value::as_array).filter(|_| node.list_type == ListType::Map);
        for (i, value) in items.iter().enumerate() {
            let old = old.and_then(|old| lists::find(&node.list_keys, old, value));
            validate(item, value, old, &path.index(i), out);
        }
    }
    let Some(rules) = rules else { return };
    let count = items.len() as u64;
    if let Some(min) = rules.min_items
        && count < min
    {
        let detail = format!("{path} in body should have at least {min} items");
        out.push(Error::invalid(path.to_string(), count, detail));
    }
    if let Some(max) = rules.max_items
        && count > max
    {
        out.push(Error::too_many(path.to_string(), items.len(), max as usize));
    }
    if rules.unique_items && lists::has_duplicates(items) {
        out.push(Error::invalid(
            path.to_string(),
            "",
            format!("{path} in body shouldn't contain duplicates"),
        ));
    }
}

fn object_fields(
    node: &Node,
    rules: Option<&Rules>,
    map: &Map<String, Value>,
    old: Option<&Value>,
    path: &Path<'_>,
    out: &mut Out,
) {
    let count = map.len() as u64;
    if let Some(min) = rules.and_then(|r| r.min_properties)
        && count < min
    {
        let detail = format!("{path} in body should have at least {min} properties");
        out.push(Error::invalid(path.to_string(), count, detail));
    }
    if let Some(max) = rules.and_then(|r| r.max_properties)
        && count > max
    {
        out.push(Error::too_many(path.to_string(), map.len(), max as usize));
    }
    let old = old.and_then(Value::as_object);
    for (name, value) in map {
        let child = match node.property(name) {
            // Metadata has been decoded; what a schema says of it are only rules.
            Some(_) if name == "metadata" && node.is_resource => node.metadata_rules.as_deref(),
            Some(child) => Some(child),
            None => node.additional(),
        };
        let Some(child) = child else { continue };
        // Conversion hides changes of these two, so they never count as unchanged.
        let hidden = path.is_root() && matches!(name.as_str(), "apiVersion" | "kind");
        let old = old.and_then(|old| old.get(name)).filter(|_| !hidden);
        validate(child, value, old, &path.field(name), out);
    }
    for name in rules.map_or(&[][..], |r| &r.required) {
        if !map.contains_key(name) {
            out.push(Error::required(path.field(name).to_string(), ""));
        }
    }
}
