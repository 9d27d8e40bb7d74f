//! Schemas that mean harm: too deep, too large, patterns and unions that would take for ever, rules without bounds. Each
//! is refused with the reference's error, or served in bounded time.

use std::sync::mpsc;
use std::time::Duration;

use homeostat_resources::crd;
use serde_json::{Value, json};

/// Runs `work` on a thread of its own, with a stack as small as a server's; it must end soon.
#[track_caller]
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    thread.spawn(move || done.send(work())).unwrap();
    result.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|e| panic!("{what}: {e}"))
}

/// Registers a CRD whose `spec` has this schema, and validates objects with these specs; the errors of each.
fn serve(what: &'static str, spec: Value, objects: Vec<Value>) -> Result<Vec<Vec<String>>, Vec<String>> {
    ends(what, move || {
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]},
        });
        crd::default(&mut definition);
        crd::prepare_create(&mut definition);
        let errors = crd::validate_create(&definition);
        if !errors.is_empty() {
            return Err(errors.iter().map(ToString::to_string).collect());
        }
        let resource = crd::to_resource(&definition, 1).expect("what is accepted can be served");
        let schema = &resource.storage_version().schema;
        let judge = |spec: &Value| {
            let object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
            schema.validate(&object, None).iter().map(ToString::to_string).collect()
        };
        Ok(objects.iter().map(judge).collect())
    })
}

#[track_caller]
fn check_refused(what: &'static str, spec: Value, why: &str) {
    let errors = serve(what, spec, Vec::new()).expect_err(what);
    assert!(errors.iter().any(|e| e.contains(why)), "{what}: {errors:?}");
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "string"}), |inner, _| wrap(inner))
}

#[test]
fn deep_nesting() {
    for levels in [130, 240] {
        let properties = nested(levels, |s| json!({"type": "object", "properties": {"a": s}}));
        assert!(serve("properties", properties, Vec::new()).is_err());
        let items = nested(levels, |s| json!({"type": "array", "items": s}));
        assert!(serve("items", items, Vec::new()).is_err());
        let maps = nested(levels, |s| json!({"type": "object", "additionalProperties": s}));
        assert!(serve("additionalProperties", maps, Vec::new()).is_err());
    }
    // What is deep and yet allowed is walked without trouble.
    let deep = nested(60, |s| json!({"type": "object", "properties": {"a": s}}));
    let object = (0..60).fold(json!("x"), |inner, _| json!({"a": inner}));
    assert_eq!(serve("sixty levels", deep, vec![object]), Ok(vec![vec![]]));
}

#[test]
fn huge_enums() {
    let values: Vec<String> = (0..100_000).map(|i| format!("value-{i:06}")).collect();
    let schema = json!({"type": "object", "properties": {
        "one": {"type": "string", "enum": values}, "all": {"type": "array", "items": {"type": "string", "enum": values}}}});
    let last = "value-099999";
    let objects = vec![json!({"one": last, "all": vec![last; 100]}), json!({"one": "other"})];
    let judged = serve("enums", schema, objects).expect("an enum may be long");
    assert!(judged[0].is_empty(), "{:?}", judged[0]);
    assert!(judged[1][0].starts_with("spec.one: Unsupported value: \"other\""));
}

#[test]
fn patterns() {
    let of = |pattern: &str| json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}});
    for (pattern, why) in [
        ("(a{1000}){1000}", "error parsing regexp: invalid repeat count: `{1000}`"),
        ("((a{100}){10}){100}", "error parsing regexp: invalid repeat count: `{100}`"),
        ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
        (&"(".repeat(2_000), "error parsing regexp: missing closing )"),
        ("(?P<n", "error parsing regexp: "),
        ("\\", "error parsing regexp: trailing backslash"),
    ] {
        check_refused("pattern", of(pattern), why);
    }
    // Backtracking would need exponential time for these.
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "^([a-z]+)*[A-Z]$", "(.*)(.*)(.*)(.*)(.*)[0-9]$"] {
        let text = "a".repeat(50_000) + "!";
        let judged = serve("backtracking", of(pattern), vec![json!({"a": text})]).expect(pattern);
        assert!(judged[0][0].contains("spec.a"), "{pattern}");
    }
}

#[test]
fn unions() {
    // Each level doubles the ways, not the work.
    let exploding = (0..12).fold(json!({"required": ["a"]}), |inner, _| json!({"anyOf": [inner, inner]}));
    let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    schema["anyOf"] = exploding["anyOf"].clone();
    let judged = serve("anyOf", schema, vec![json!({"a": "x"}), json!({})]).expect("anyOf may nest");
    assert!(judged[0].is_empty());
    assert!(!judged[1].is_empty());

    let branches: Vec<Value> = (0..2_000).map(|i| json!({"required": [format!("k{i}")]})).collect();
    let mut item = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    item["oneOf"] = branches.into();
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": item}}});
    let items: Vec<Value> = (0..200).map(|i| json!({format!("k{i}"): 1})).collect();
    let judged = serve("oneOf", schema, vec![json!({"l": items}), json!({"l": vec![json!({}); 200]})])
        .expect("oneOf may be long");
    assert!(judged[0].is_empty(), "{:?}", judged[0].first());
    assert!(!judged[1].is_empty());
}

#[test]
fn rules_without_bounds() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let with = |rule: &str| json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": [{"rule": rule}]});
    let over = "exceeds budget";
    check_refused("a square", with("self.l.all(a, self.l.all(b, a == b || a != b))"), over);
    check_refused("a search in texts", with("self.l.all(a, self.l.exists(b, a.contains(b)))"), over);
    // A rule that is cheap once may stand at too many places.
    let mut everywhere = json!({"type": "object", "properties": {"s": {"type": "string"}}});
    everywhere["x-kubernetes-validations"] = json!([{"rule": "self.s.matches('^a+b+c+$')"}]);
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": everywhere}}});
    check_refused("everywhere", schema, over);
    // With limits it is accepted.
    let mut bounded = with("self.l.all(a, self.l.all(b, a == b || a != b))");
    bounded["properties"]["l"] =
        json!({"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}});
    assert!(serve("bounded", bounded, vec![json!({"l": ["a", "b"]})]).is_ok());
}

#[test]
fn many_fields() {
    let fields = |n: usize| -> serde_json::Map<String, Value> {
        (0..n).map(|i| (format!("field{i}"), json!({"type": "integer", "minimum": 0}))).collect()
    };
    let schema = json!({"type": "object", "properties": fields(20_000)});
    let object: serde_json::Map<String, Value> =
        (0..20_000).map(|i| (format!("field{i}"), json!(i))).collect();
    assert_eq!(serve("fields", schema, vec![object.into()]), Ok(vec![vec![]]));
}
