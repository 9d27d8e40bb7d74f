//! Laws of rules in CEL, on random expressions and objects: nothing panics or runs for ever, what the checker takes does
//! not fail for its types, and a rule that cannot be evaluated never lets an object through.

use std::sync::mpsc;
use std::time::Duration;

use homeostat_schema::Schema;
use homeostat_schema::cel::check::{self, Declared};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The schema of what rules are evaluated on; every size is bounded.
fn properties() -> Value {
    json!({
        "i": {"type": "integer"}, "j": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"},
        "s": {"type": "string", "maxLength": 8}, "t": {"type": "string", "maxLength": 8},
        "d": {"type": "string", "format": "duration", "maxLength": 8},
        "l": {"type": "array", "maxItems": 4, "items": {"type": "integer"}},
        "w": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 8}},
        "m": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"i": {"type": "integer"}, "s": {"type": "string", "maxLength": 8}}},
        "n": {"type": "array", "maxItems": 3, "items": {"type": "object", "properties": {"i": {"type": "integer"}}}},
    })
}

fn with_rule(rule: &str) -> Value {
    json!({"type": "object", "properties": properties(), "x-kubernetes-validations": [{"rule": rule}]})
}

fn object() -> impl Strategy<Value = Value> {
    let int = || prop_oneof![-3_i64..4, Just(i64::MAX), Just(i64::MIN)];
    let text = || prop::sample::select(&["", "a", "b", "aé", "1", "1h", "x.y", "10.0.0.1"][..]);
    let optional = |v: Value, there: bool| if there { v } else { Value::Null };
    (
        (int(), int(), any::<f64>(), any::<bool>(), text(), text(), any::<[bool; 6]>()),
        prop::collection::vec(int(), 0..4),
        prop::collection::vec(text(), 0..4),
        prop::collection::btree_map("[ab]", int(), 0..3),
        prop::collection::vec(int(), 0..3),
    )
        .prop_map(move |((i, j, f, b, s, t, has), l, w, m, n)| {
            let f = if f.is_finite() { f } else { 0.5 };
            let n: Vec<Value> = n.into_iter().map(|i| json!({"i": i})).collect();
            let mut out = json!({"i": i, "f": f, "b": b, "s": s, "l": l, "m": m});
            for (key, value, there) in [
                ("j", json!(j), has[0]),
                ("t", json!(t), has[1]),
                ("w", json!(w), has[2]),
                ("o", json!({"i": j, "s": t}), has[3]),
                ("n", json!(n), has[4]),
                ("d", json!("1h"), has[5]),
            ] {
                let value = optional(value, there);
                if !value.is_null() {
                    out[key] = value;
                }
            }
            out
        })
}

#[derive(Clone, Debug)]
enum Ty {
    Int,
    Text,
    Bool,
    Ints,
    Texts,
}

/// An expression of a type, most of the time.
fn expression(ty: Ty, depth: u32) -> BoxedStrategy<String> {
    let leaf: &[&str] = match ty {
        Ty::Int => &[
            "self.i",
            "self.j",
            "self.o.i",
            "0",
            "1",
            "-1",
            "9223372036854775807",
            "self.m['a']",
            "self.l[0]",
            "int(self.s)",
            "int(self.f)",
        ],
        Ty::Text => &[
            "self.s",
            "self.t",
            "''",
            "'a'",
            "'é'",
            "self.o.s",
            "self.w[0]",
            "string(self.i)",
            "self.?t.orValue('z')",
        ],
        Ty::Bool => &[
            "self.b",
            "true",
            "has(self.j)",
            "has(self.o.i)",
            "'a' in self.m",
            "self.f > 0.5",
            "duration(self.s) > duration('1m')",
            "self.d == duration('1h')",
        ],
        Ty::Ints => {
            &["self.l", "[]", "[1, 2]", "self.n.map(x, x.i)", "self.w.map(x, x.size())", "lists.range(3)"]
        }
        Ty::Texts => &["self.w", "['a']", "self.s.split('')", "self.l.map(x, string(x))"],
    };
    let leaf = prop::sample::select(leaf).prop_map(str::to_owned);
    if depth == 0 {
        return leaf.boxed();
    }
    let e = move |ty: Ty| expression(ty, depth - 1);
    let deep = match ty {
        Ty::Int => prop_oneof![
            (e(Ty::Int), prop::sample::select(&["+", "-", "*", "/", "%"][..]), e(Ty::Int))
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            e(Ty::Text).prop_map(|a| format!("({a}).size()")),
            e(Ty::Ints).prop_map(|a| format!("({a}).sum()")),
            e(Ty::Ints).prop_map(|a| format!("({a}).max()")),
            (e(Ty::Bool), e(Ty::Int), e(Ty::Int)).prop_map(|(c, a, b)| format!("({c} ? {a} : {b})")),
            (e(Ty::Text), e(Ty::Text)).prop_map(|(a, b)| format!("({a}).indexOf({b})")),
        ]
        .boxed(),
        Ty::Text => prop_oneof![
            (e(Ty::Text), e(Ty::Text)).prop_map(|(a, b)| format!("({a} + {b})")),
            (e(Ty::Text), e(Ty::Int)).prop_map(|(a, b)| format!("({a}).substring({b})")),
            (e(Ty::Text), e(Ty::Text), e(Ty::Text)).prop_map(|(a, b, c)| format!("({a}).replace({b}, {c})")),
            e(Ty::Texts).prop_map(|a| format!("({a}).join('-')")),
            (e(Ty::Text), e(Ty::Int)).prop_map(|(a, b)| format!("'%s %d'.format([{a}, {b}])")),
        ]
        .boxed(),
        Ty::Bool => prop_oneof![
            (e(Ty::Bool), prop::sample::select(&["&&", "||", "==", "!="][..]), e(Ty::Bool))
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (e(Ty::Int), prop::sample::select(&["<", "<=", "==", ">"][..]), e(Ty::Int))
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (e(Ty::Text), prop::sample::select(&["<", "==", "!="][..]), e(Ty::Text))
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            e(Ty::Bool).prop_map(|a| format!("!({a})")),
            (e(Ty::Ints), prop::sample::select(&["all", "exists", "exists_one"][..]), e(Ty::Int))
                .prop_map(|(l, m, b)| format!("({l}).{m}(x, x > {b})")),
            (e(Ty::Text), e(Ty::Text)).prop_map(|(a, b)| format!("({a}).contains({b})")),
            (e(Ty::Text), e(Ty::Text)).prop_map(|(a, b)| format!("({a}).matches({b})")),
            (e(Ty::Int), e(Ty::Ints)).prop_map(|(a, l)| format!("({a} in {l})")),
            (e(Ty::Ints), e(Ty::Ints)).prop_map(|(a, b)| format!("sets.intersects({a}, {b})")),
        ]
        .boxed(),
        Ty::Ints => prop_oneof![
            (e(Ty::Ints), e(Ty::Ints)).prop_map(|(a, b)| format!("({a} + {b})")),
            (e(Ty::Ints), e(Ty::Int)).prop_map(|(l, b)| format!("({l}).filter(x, x != {b})")),
            (e(Ty::Ints), e(Ty::Int)).prop_map(|(l, b)| format!("({l}).map(x, x + {b})")),
            (e(Ty::Int), e(Ty::Int)).prop_map(|(a, b)| format!("[{a}, {b}]")),
            e(Ty::Ints).prop_map(|l| format!("({l}).sort()")),
        ]
        .boxed(),
        Ty::Texts => prop_oneof![
            (e(Ty::Text), e(Ty::Text)).prop_map(|(a, b)| format!("({a}).split({b})")),
            (e(Ty::Texts), e(Ty::Texts)).prop_map(|(a, b)| format!("({a} + {b})")),
            e(Ty::Texts).prop_map(|l| format!("({l}).distinct()")),
        ]
        .boxed(),
    };
    // Now and then a part of another type, which the checker must find.
    let stray = e(Ty::Text).boxed();
    prop_oneof![3 => leaf, 12 => deep, 1 => stray].boxed()
}

/// Texts that are hardly CEL.
fn noise() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        "[a-z0-9.()\\[\\]{}?:!&|<>=+*/%'\" \\\\-]{0,60}",
        prop::collection::vec(
            prop::sample::select(
                &[
                    "self", ".i", "[", "]", "(", ")", "{", "}", "?", ":", "'", "\\u", "0x", "1e999", "b'",
                    "r'\\", "&&", "in", ".all(x,", "x", "null", "\u{0}", "é", "//", "\n"
                ][..]
            ),
            0..24
        )
        .prop_map(|t| t.concat()),
    ]
}

fn judge(rule: &str) -> check::Checked {
    let schema = with_rule(rule);
    let declared = Declared::of(schema.as_object().unwrap(), false).unwrap();
    check::rule(json!({"rule": rule, "messageExpression": rule}).as_object().unwrap(), &declared)
}

/// What the rule alone says of an object.
fn errors(rule: &str, object: &Value) -> Vec<String> {
    let schema = Schema::compile(&with_rule(rule)).unwrap();
    schema.validate(object, None).iter().map(ToString::to_string).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_and_its_contrary_never_both_hold(rule in expression(Ty::Bool, 3), object in object()) {
        let (yes, no) = (errors(&rule, &object), errors(&format!("!({rule})"), &object));
        prop_assert!(!(yes.is_empty() && no.is_empty()), "{}", rule);
    }

    #[test]
    fn what_the_checker_refuses_lets_nothing_through(rule in expression(Ty::Bool, 3), object in object()) {
        let checked = judge(&rule);
        if checked.error.is_some() && homeostat_schema::cel::check(&rule).is_err() {
            prop_assert!(!errors(&rule, &object).is_empty(), "{}", rule);
        }
        // What it takes never fails for its types, save that of an empty list's elements, which nothing tells.
        if checked.error.is_none() && !rule.contains("([])") {
            for why in errors(&rule, &object) {
                prop_assert!(!why.contains("no such overload"), "{}: {}", rule, why);
            }
        }
    }

    #[test]
    fn any_text_is_judged_and_evaluated(rule in noise(), object in object()) {
        judge(&rule);
        let refused = homeostat_schema::cel::check(&rule).is_err();
        let errors = errors(&rule, &object);
        if refused && !rule.trim().is_empty() {
            prop_assert!(!errors.is_empty(), "{}", rule);
        }
    }
}

/// Runs `work` on a thread of its own; it must end soon.
#[track_caller]
fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|e| panic!("{what}: {e}"))
}

#[test]
fn rules_that_would_run_for_ever_are_ended() {
    let long: Vec<i64> = (0..5_000).collect();
    let object = json!({"l": long, "s": "a".repeat(100_000), "i": 1, "m": {}, "f": 0.5, "b": true});
    let nested = |n: usize| (0..n).fold("true".to_owned(), |inner, i| format!("self.l.all(x{i}, {inner})"));
    let grown = |n: usize| (0..n).fold("self.s".to_owned(), |inner, _| format!("({inner} + {inner})"));
    for rule in [
        nested(6),
        format!("{}.size() > 0", grown(12)),
        "self.l.map(a, self.l.map(b, self.l)).size() > 0".to_owned(),
        "lists.range(1000000000).size() > 0".to_owned(),
        "'%1000000000d'.format([1]).size() > 0".to_owned(),
        "self.s.matches('(a*)*b')".to_owned(),
        "self.s.matches('(((a{100}){100}){100}){100}')".to_owned(),
        "self.s.split('').map(x, self.s).size() > 0".to_owned(),
        "self.s.replace('', self.s).size() > 0".to_owned(),
    ] {
        let (shown, object) = (rule.chars().take(60).collect::<String>(), object.clone());
        let unbounded = json!({"type": "object", "properties": {
            "l": {"type": "array", "items": {"type": "integer"}}, "s": {"type": "string"}, "i": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": rule}]});
        let found = ends(&shown, move || {
            let declared = Declared::of(unbounded.as_object().unwrap(), false).unwrap();
            let of = unbounded["x-kubernetes-validations"][0].as_object().unwrap();
            let checked = check::rule(of, &declared);
            let errors = Schema::compile(&unbounded).unwrap().validate(&object, None);
            (checked, errors.iter().map(ToString::to_string).collect::<Vec<_>>())
        });
        // Whoever can be as dear as this is refused when it is registered, or ended when it is evaluated.
        let (checked, errors) = found;
        let dear = checked.error.is_some() || checked.cost > 10_000_000;
        assert!(dear || !errors.is_empty() || shown.contains("matches"), "{shown}: {checked:?}");
    }
}
