//! Warnings about definitions that are accepted all the same.

use std::collections::BTreeSet;

use homeostat_model::field;
use serde_json::Value;

use super::props::{Props, items, text};
use super::spec::SpecView;

/// Formats of strings that the server checks.
const FORMATS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Warnings about a CRD: formats that nobody checks, sets of items that aren't scalars. Those that `old` already
/// deserved are not repeated.
pub fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = notes(crd);
    if let Some(old) = old {
        let known = notes(old);
        found.retain(|w| !known.contains(w));
    }
    found
}

fn notes(crd: &Value) -> Vec<String> {
    let empty = Props::new();
    let spec = SpecView::new(crd["spec"].as_object().unwrap_or(&empty));
    let (mut formats, mut sets) = (Vec::new(), BTreeSet::new());
    for schema in spec.schemas() {
        super::props::each(schema, &mut |s| {
            let format = text(s, "format");
            if !format.is_empty() && !is_known(text(s, "type"), format) {
                formats.push(format!("unrecognized format {}", field::quote(format)));
            }
            let kind = items(s).map(|i| text(i, "type")).unwrap_or_default();
            if text(s, "x-kubernetes-list-type") == "set" && matches!(kind, "object" | "array") {
                sets.insert(format!(
                    "x-kubernetes-list-type: set for items of type \"{kind}\" is not supported by server-side apply or \
                     CEL validation rules"
                ));
            }
        });
    }
    formats.extend(sets);
    formats
}

fn is_known(kind: &str, format: &str) -> bool {
    match kind {
        "" | "string" => FORMATS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: Value, old: Option<Value>, want: &[&str]) {
        let crd = |spec: Value| {
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
        };
        assert_eq!(warnings(&crd(spec), old.map(crd).as_ref()), want);
    }

    #[test]
    fn formats_that_nobody_checks_and_odd_sets_are_told_once() {
        check(json!({"type": "string", "format": "date-time"}), None, &[]);
        check(json!({"type": "string", "format": "k8s-short-name"}), None, &[]);
        check(json!({"type": "integer", "format": "int16"}), None, &["unrecognized format \"int16\""]);
        let port = json!({"type": "string", "format": "port"});
        check(port.clone(), None, &["unrecognized format \"port\""]);
        check(port.clone(), Some(port), &[]);
        check(
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "array"}}),
            None,
            &[
                "x-kubernetes-list-type: set for items of type \"array\" is not supported by server-side apply or CEL \
               validation rules",
            ],
        );
    }
}
