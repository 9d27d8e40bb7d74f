//! The checker as tables: a rule and a schema in, its error, type or cost out.

use serde_json::json;

use super::*;

fn declared() -> Declared {
    let schema = json!({"type": "object", "properties": {
        "s": {"type": "string", "maxLength": 20}, "t": {"type": "string", "maxLength": 20},
        "i": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"},
        "l": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 64}},
        "n": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        "ll": {"type": "array", "maxItems": 3, "items": {"type": "array", "maxItems": 5, "items": {"type": "integer"}}},
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 20}},
        "o": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}},
        "d": {"type": "string", "format": "date-time"}, "x-y": {"type": "string"},
        "u": {"type": "string"}, "any": {"x-kubernetes-int-or-string": true},
        "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    Declared::of(schema.as_object().unwrap(), false).unwrap()
}

fn judge(rule: &str) -> Result<u64, String> {
    let checked = super::rule(json!({"rule": rule}).as_object().unwrap(), &declared());
    checked.error.map_or(Ok(checked.cost), Err)
}

#[test]
fn rules_of_every_library_have_types() {
    for rule in [
        "self.l.reverse()[0] == 'a' && self.l.distinct().size() == 1 && self.l.sort()[0] == 'a'",
        "self.l.sortBy(x, x.size())[0] == 'a' && self.ll.flatten().size() == 1",
        "lists.range(3).size() == 3 && self.l.slice(0, 1).size() == 1",
        "self.l.first().hasValue() && self.l.last().hasValue()",
        "self.l.all(i, v, v != '' || i > 3) && self.m.all(k, v, k != v) && self.m.existsOne(k, v, k == v)",
        "self.l.transformList(i, v, v + 'x').size() == 1 && self.m.transformMapEntry(k, v, {v: k}).size() == 1",
        "format.named('dns1123Label').hasValue() && !format.uri().validate(self.s).hasValue()",
        "self.?s.orValue('x') == 'x' && self.?o.?a.or(self.?t).hasValue()",
        "optional.of(1).hasValue() && !optional.none().hasValue() && self.l[?0].hasValue() && self.m[?'a'].hasValue()",
        "[?self.?s].size() == 1 && {?'a': self.?s}.size() == 1 && optional.unwrap([optional.of(1)]).size() == 1",
        "self.?s.optFlatMap(v, optional.of(v)).hasValue()",
        "isSemver(self.s, true) && semver(self.s, true).patch() == 1",
        "quantity(self.s).asApproximateFloat() > 1.0 && quantity(self.s).add(1).isLessThan(quantity('1k'))",
        "ip(self.s).isUnspecified() || cidr(self.s).masked() == cidr(self.s) && cidr(self.s).ip().family() == 4",
        "url(self.s).getEscapedPath() == '/' && strings.quote(self.s) == 'a'",
        "self.s.replace('a', 'b', 2).indexOf('b', 1) == 1 && self.s.findAll('a', 1).size() == 1",
        "self.s.matches(self.t) && '%s'.format([self.s]) == self.s",
        "self.d > timestamp('2024-01-01T00:00:00Z') && self.d.getHours('America/New_York') == 19",
        "duration('1h').getHours() == 1 && self.d + duration('1s') > self.d",
        "sets.contains(self.l, ['a']) && self.n.sum() > 1 && self.n.max() > self.n.min() && self.n.isSorted()",
        "self.l.indexOf('a') < self.l.lastIndexOf('a') && self.i < 1.5 && self.any == 'x' && self.any == 1",
        "self.x__dash__y == '' && self == oldSelf && has(self.o.a) && self.l.map(x, x.size()).sum() > 0",
        "self.l.exists_one(x, x == self.s) && 'a' in self.l && 'a' in self.m && (self.b ? 1 : 2) == 1",
    ] {
        assert!(judge(rule).is_ok(), "{rule}: {:?}", judge(rule));
    }
}

#[test]
fn what_does_not_fit_is_refused_in_cel_gos_words() {
    let cases = [
        ("self.sizes > 1", "undefined field 'sizes'"),
        ("other > 1", "undeclared reference to 'other' (in container '')"),
        ("self.s.shout() == 'A'", "undeclared reference to 'shout' (in container '')"),
        ("self.i == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.i == 1.0", "found no matching overload for '_==_' applied to '(int, double)'"),
        ("self.i + 1.0 > 2", "found no matching overload for '_+_' applied to '(int, double)'"),
        ("self.s > 1", "found no matching overload for '_>_' applied to '(string, int)'"),
        ("self.s.reverse() == 'a'", "found no matching overload for 'reverse' applied to 'string.()'"),
        ("self.p.anything == 1", "undefined field 'anything'"),
        ("self.i.a == 1", "type 'int' does not support field selection"),
        ("self.i.all(x, true)", "expression of type 'int' cannot be range of a comprehension"),
        ("self.l.all(x, x)", "expected type 'bool' but found 'string'"),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
        ("self.i == null", "found no matching overload for '_==_' applied to '(int, null)'"),
        ("quantity(self.s).sign() == 1", "undeclared reference to 'sign' (in container '')"),
        ("self.s.matches('(a')", "invalid matches argument"),
        ("self.i + 1", "cel expression must evaluate to a bool"),
    ];
    for (rule, want) in cases {
        let why = judge(rule).unwrap_err();
        assert!(why.contains(want), "{rule}: {why}");
    }
}

#[test]
fn costs_grow_with_what_the_schema_allows() {
    // The shape of the reference's arithmetic: identifiers and selections cost one, characters a tenth.
    for (rule, want) in [
        ("self.b", 2),
        ("self.i > 3", 3),
        ("self.s == 'abc'", 3),
        ("self.s == self.t", 12),
        ("self.l.all(x, x == self.s)", 73),
    ] {
        assert_eq!(judge(rule), Ok(want), "{rule}");
    }
    assert!(judge("('x' + string(self.i)) == 'x1'").unwrap() > 10_000_000);
    assert!(judge("'x%d'.format([self.i]) == 'x1'").unwrap() < 100);
    assert!(judge("self.u.matches('^[a-z]+$')").unwrap() > 300_000);
}

#[test]
fn old_values_may_be_optional() {
    let check = |rule: serde_json::Value| super::rule(rule.as_object().unwrap(), &declared());
    let bare = check(json!({"rule": "self.i >= oldSelf.i", "optionalOldSelf": true}));
    assert!(bare.error.is_some() && !bare.uses_old_self);
    let asked =
        check(json!({"rule": "!oldSelf.hasValue() || self.i >= oldSelf.value().i", "optionalOldSelf": true}));
    assert_eq!((asked.error, asked.uses_old_self), (None, true));
}

#[test]
fn messages_are_texts() {
    let check = |m: &str| {
        let rule = json!({"rule": "self.b", "messageExpression": m});
        super::rule(rule.as_object().unwrap(), &declared()).message
    };
    assert_eq!(check("self.i"), Some(Err("messageExpression must evaluate to a string".to_owned())));
    assert!(
        check("self.none").unwrap().unwrap_err().starts_with("messageExpression compilation failed: ERROR: ")
    );
    assert!(check("'was %d'.format([oldSelf.i])").unwrap().is_ok());
}

mod random {
    use proptest::prelude::*;

    fn token() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "self",
            "oldSelf",
            ".s",
            ".i",
            ".l",
            ".m",
            ".?s",
            "[0]",
            "[?0]",
            "['a']",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "?",
            "1",
            "1.5",
            "'x'",
            "b'x'",
            "null",
            "true",
            " + ",
            " == ",
            " && ",
            " || ",
            " in ",
            " < ",
            "!",
            "-",
            ".all(x, ",
            ".map(x, x",
            ".exists_one(y, ",
            "has(self.s)",
            ".size()",
            ".split(',')",
            ".replace('', 'x')",
            "string(",
            "optional.of(",
            ".orValue(",
            "quantity(",
            "lists.range(",
            "x",
            "y",
            ".optMap(v, v",
            ".format([",
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_judged(tokens in prop::collection::vec(token(), 0..16)) {
            let _ = super::judge(&tokens.concat());
        }
    }
}
