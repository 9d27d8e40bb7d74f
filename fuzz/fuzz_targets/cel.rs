//! The CEL checker and evaluator: any text as a rule.
//!
//! Nothing may panic or run for ever, and a rule and its contrary never both let an object through.
#![no_main]

use std::sync::LazyLock;

use homeostat_schema::Schema;
use homeostat_schema::cel::check::{self, Declared};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

/// Something of every type.
static PROPERTIES: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "i": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"},
        "s": {"type": "string", "maxLength": 20}, "d": {"type": "string", "format": "date-time"},
        "l": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 20}},
        "o": {"type": "object", "properties": {"a": {"type": "string"}}},
        "x": {"x-kubernetes-int-or-string": true},
        "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    })
});

static OBJECT: LazyLock<Value> = LazyLock::new(|| {
    json!({"i": 3, "f": 1.5, "b": true, "s": "a1é", "d": "2024-01-02T03:04:05Z", "l": [1, 2, 3],
        "m": {"a": "b"}, "o": {"a": "x"}, "x": "50%", "p": {"any": [1, "x"]}})
});

fn holds(rule: &str) -> bool {
    let schema =
        json!({"type": "object", "properties": &*PROPERTIES, "x-kubernetes-validations": [{"rule": rule}]});
    Schema::compile(&schema).expect("only the rule is odd").validate(&OBJECT, None).is_empty()
}

fuzz_target!(|rule: &str| {
    let schema = json!({"type": "object", "properties": &*PROPERTIES});
    let declared = schema.as_object().and_then(|s| Declared::of(s, false)).expect("a declared type");
    let of = json!({"rule": rule, "messageExpression": rule});
    let checked = check::rule(of.as_object().expect("a rule"), &declared);
    // A comment or a newline could swallow the bracket.
    if checked.error.is_none() && !rule.contains(['/', '\n']) {
        assert!(!(holds(rule) && holds(&format!("!({rule})"))), "{rule} and its contrary");
    }
});
