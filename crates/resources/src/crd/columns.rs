//! Rules of printer columns, the scale subresource's paths and selectable fields.

use homeostat_model::field::{Error, child, index};
use serde_json::Value;

use super::field_path;
use super::props::{Props, object, text};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE: usize = 8;

/// Errors of `additionalPrinterColumns`.
pub(crate) fn columns(path: &str, columns: &[Value], errors: &mut Vec<Error>) {
    for (i, column) in columns.iter().enumerate() {
        if let Value::Object(column) = column {
            self::column(&index(path, i), column, errors);
        }
    }
}

fn column(path: &str, c: &Props, errors: &mut Vec<Error>) {
    if text(c, "name").is_empty() {
        errors.push(Error::required(child(path, "name"), ""));
    }
    let (kind, rule) = (text(c, "type"), format!("must be one of {}", COLUMN_TYPES.join(",")));
    if kind.is_empty() {
        errors.push(Error::required(child(path, "type"), rule));
    } else if !COLUMN_TYPES.contains(&kind) {
        errors.push(Error::invalid(child(path, "type"), kind, rule));
    }
    let format = text(c, "format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let rule = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(Error::invalid(child(path, "format"), format, rule));
    }
    let at = child(path, "JSONPath");
    match text(c, "jsonPath") {
        "" => errors.push(Error::required(at, "")),
        p => {
            simple_path(&at, p, errors);
        }
    }
}

/// Whether a path is simple: it starts with a dot, and that is all the reference asks.
fn simple_path(at: &str, path: &str, errors: &mut Vec<Error>) -> bool {
    if path.starts_with('.') {
        return true;
    }
    errors.push(Error::invalid(at, path, "must be a simple json path starting with ."));
    false
}

/// Errors of `subresources`.
pub(crate) fn subresources(path: &str, s: Option<&Props>, errors: &mut Vec<Error>) {
    let Some(scale) = s.and_then(|s| object(s, "scale")) else { return };
    for (name, prefix) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (at, value) = (format!("{path}.scale.{name}"), text(scale, name));
        if value.is_empty() {
            errors.push(Error::required(at, ""));
        } else if simple_path(&at, value, errors) && !value.starts_with(&format!("{prefix}.")) {
            errors.push(Error::invalid(at, value, format!("should be a json path under {prefix}")));
        }
    }
    let (at, value) = (format!("{path}.scale.labelSelectorPath"), text(scale, "labelSelectorPath"));
    if !value.is_empty()
        && simple_path(&at, value, errors)
        && !value.starts_with(".spec.")
        && !value.starts_with(".status.")
    {
        errors.push(Error::invalid(at, value, "should be a json path under either .spec or .status"));
    }
}

/// Errors of `selectableFields`; `keep_many` where an older definition already had too many, unchanged.
pub(crate) fn selectable(
    path: &str,
    fields: &[Value],
    schema: Option<&Props>,
    keep_many: bool,
    errors: &mut Vec<Error>,
) {
    let empty = Props::new();
    let schema = schema.unwrap_or(&empty);
    let mut seen: Vec<String> = Vec::new();
    for (i, f) in fields.iter().enumerate() {
        let at = child(&index(path, i), "jsonPath");
        let value = f["jsonPath"].as_str().unwrap_or_default();
        if value.is_empty() {
            errors.push(Error::required(at, ""));
            continue;
        }
        let (canonical, first, found) = match field_path::resolve(value, schema, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(Error::invalid(at, value, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if first == "metadata" {
            errors.push(Error::invalid(&at, value, "must not point to fields in metadata"));
        }
        if !found.is_some_and(|s| matches!(text(s, "type"), "string" | "boolean" | "integer")) {
            let rule = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                        formats are allowed.";
            errors.push(Error::invalid(&at, value, rule));
        }
        if seen.contains(&canonical) {
            errors.push(Error::duplicate(&at, value));
        } else {
            seen.push(canonical);
        }
    }
    if seen.len() > MAX_SELECTABLE && !keep_many {
        errors.push(Error::too_many(path, seen.len(), MAX_SELECTABLE));
    }
}
