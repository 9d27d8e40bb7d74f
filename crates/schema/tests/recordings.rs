//! What the real API server said of objects, against what this crate says: tables taken from recorded conversations.
//!
//! A case is decoded, defaulted and validated as a request is. `result` is what was stored, `causes` are those of a
//! 422, `error` is the message of a 400, `warnings` are those of the answer. Texts that end in `…` were cut.

use std::collections::BTreeMap;

use homeostat_schema::Schema;
use homeostat_schema::decode::{MAX_DEPTH, parse_json};
use serde_json::Value;

type Cause = (String, String, String);

/// Times are not recorded.
fn timeless(text: &str) -> String {
    let times = regex::Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)").unwrap();
    times.replace_all(text, "<time>").into_owned()
}

fn matches(want: &str, got: &str) -> bool {
    if want.contains("<time>") {
        return want == timeless(got);
    }
    match want.strip_suffix(" …") {
        Some(start) => got.starts_with(start),
        None => want == got,
    }
}

/// What is wrong with a case; empty if nothing is.
fn run(case: &Value, schemas: &BTreeMap<String, Schema>) -> Vec<String> {
    let mut wrong = Vec::new();
    let schema = &schemas[case["schema"].as_str().unwrap()];
    let (mut object, _) = parse_json(case["object"].to_string().as_bytes(), MAX_DEPTH).unwrap();
    let mut warnings = Vec::new();
    match schema.decode(&mut object) {
        Ok(unknown) => warnings.extend(unknown.iter().map(|path| format!("unknown field \"{path}\""))),
        Err(error) => {
            let want = case["error"].as_str().unwrap_or_default();
            let want = want.split_once(" cannot be handled as a ").map_or(want, |(_, rest)| rest);
            let want = want.split_once(": ").map_or(want, |(_, rest)| rest);
            if !matches(want, &error.to_string()) {
                wrong.push(format!("error {error:?}, wanted {want:?}"));
            }
            return wrong;
        }
    }
    if let Some(error) = case["error"].as_str() {
        wrong.push(format!("decoded, although {error}"));
    }
    schema.default(&mut object);
    let report = schema.report(&object, case.get("old"));
    warnings.extend(report.warnings);
    let mut got: Vec<Cause> =
        report.errors.iter().map(|e| (e.kind.reason().into(), e.body(), e.path.clone())).collect();
    let mut want: Vec<Cause> = serde_json::from_value(case["causes"].clone()).unwrap_or_default();
    want.retain(|w| match got.iter().position(|g| g.0 == w.0 && g.2 == w.2 && matches(&w.1, &g.1)) {
        Some(at) => {
            got.remove(at);
            false
        }
        None => true,
    });
    wrong.extend(want.iter().map(|w| format!("missing cause {w:?}")));
    wrong.extend(got.iter().map(|g| format!("cause too much {g:?}")));
    let want: Vec<String> = serde_json::from_value(case["warnings"].clone()).unwrap_or_default();
    if warnings != want {
        wrong.push(format!("warnings {warnings:?}, wanted {want:?}"));
    }
    if let Some(result) = case.get("result") {
        let written: Value = serde_json::from_str(&object.to_string()).unwrap();
        if timeless(&written.to_string()) != timeless(&result.to_string()) {
            wrong.push(format!("result {written}\n   wanted {result}"));
        }
        let mut again = object.clone();
        assert_eq!(schema.decode(&mut again), Ok(Vec::new()));
        schema.default(&mut again);
        assert_eq!(again, object, "decoding and defaulting again changes nothing");
    }
    wrong
}

fn check(table: &str) {
    let table: Value = serde_json::from_str(table).unwrap();
    let schemas: BTreeMap<String, Schema> = table["schemas"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, schema)| (name.clone(), Schema::compile(schema).unwrap()))
        .collect();
    let mut failures = Vec::new();
    for case in table["cases"].as_array().unwrap() {
        let wrong = run(case, &schemas);
        if !wrong.is_empty() {
            failures.push(format!(
                "{} {}\n   {}",
                case["note"].as_str().unwrap_or_default(),
                case["object"],
                wrong.join("\n   ")
            ));
        }
    }
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn functions_exist_as_on_the_reference() {
    let table: Value = serde_json::from_str(include_str!("data/cel-functions.json")).unwrap();
    let rules = |which: &str| -> Vec<String> { serde_json::from_value(table[which].clone()).unwrap() };
    for rule in rules("accepted") {
        assert_eq!(homeostat_schema::cel::check(&rule), Ok(()), "{rule}");
    }
    for rule in rules("refused") {
        assert!(homeostat_schema::cel::check(&rule).is_err(), "{rule}");
    }
}

macro_rules! recordings {
    ($($test:ident = $file:literal;)*) => {
        $(#[test]
        fn $test() {
            check(include_str!(concat!("data/", $file, ".json")));
        })*
    };
}

recordings! {
    keywords = "cr-validation-keywords";
    composition = "cr-validation-composition";
    embedded_and_preserved = "cr-embedded-and-preserved";
    pruning = "cr-pruning";
    defaulting = "cr-defaulting";
    ratcheting = "cr-cel-ratcheting";
    rules = "cr-cel-rules";
    libraries = "cr-cel-libraries";
    lists_and_optionals = "cr-cel-lists-and-optionals";
    widget_lifecycle = "crd-widget-lifecycle";
    field_validation = "cr-field-validation";
}
