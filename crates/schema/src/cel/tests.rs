//! Rules as tables: a schema with rules and an object in, the errors out.

use serde_json::{Value, json};

use super::eval::{Eval, Fault, Scope};
use super::value::Val;
use super::{compile, convert, functions};

/// Evaluates `source` with `self` bound to a JSON value; errors and budgets print as text.
fn run(source: &str, this: &Value) -> String {
    let expr = match compile(source) {
        Ok(expr) => expr,
        Err(why) => return why.lines().next().unwrap_or_default().to_owned(),
    };
    let this = convert::value(None, this);
    match (Eval { budget: 1_000_000, authorizer: None }).eval(&expr, &Scope::Root(&this, None)) {
        Ok(Val::String(s)) => format!("'{s}'"),
        Ok(value) => functions::display(&value),
        Err(Fault::Error(why)) => format!("error: {why}"),
        Err(Fault::Budget) => "budget".into(),
    }
}

fn check(cases: &[(&str, &str)]) {
    let this =
        json!({"a": 1, "l": [1, 2, 3], "s": "text", "m": {"x": 1, "y": 2}, "n": null, "d": 1.5, "e": []});
    let mut wrong = Vec::new();
    for (source, want) in cases {
        let got = run(source, &this);
        if got != *want {
            wrong.push(format!("{source}: {got}, wanted {want}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn operators() {
    check(&[
        ("1 + 2 * 3 - 4 / 2", "5"),
        ("-7 % 3", "-1"),
        ("7u / 2u", "3"),
        ("1 == 1.0 && 1u == 1", "true"),
        ("1 < 1.5", "true"),
        ("'a' + 'b' == \"ab\"", "true"),
        ("[1] + [2]", "[1, 2]"),
        ("true || self.missing", "true"),
        ("self.missing || true", "true"),
        ("self.missing || false", "error: no such key: missing"),
        ("false && self.missing", "false"),
        ("1 / 0", "error: division by zero"),
        ("9223372036854775807 + 1", "error: integer overflow"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1 + 1.0", "error: no such overload"),
        ("'a' > 1", "error: no such overload"),
        ("self.l[5]", "error: index out of bounds: 5"),
        ("self.a > 0 ? 'yes' : 'no'", "'yes'"),
        ("2 in self.l && !(7 in self.l) && 'x' in self.m", "true"),
        ("has(self.a) && !has(self.b)", "true"),
        ("self.n == null", "true"),
        ("r'\\d' + '\\u00e9\\x41'", "'\\déA'"),
        ("type(1) == int && type(self.d) == double", "true"),
        ("!!true", "true"),
        ("--1", "1"),
    ]);
}

#[test]
fn macros() {
    check(&[
        ("self.l.all(x, x > 0) && self.l.exists(x, x == 2) && self.l.exists_one(x, x == 3)", "true"),
        ("self.l.map(x, x * 2)", "[2, 4, 6]"),
        ("self.l.map(x, x > 1, x * 2)", "[4, 6]"),
        ("self.l.filter(x, x != 2)", "[1, 3]"),
        ("self.m.all(k, v, k < 'z' && v > 0)", "true"),
        ("self.l.transformList(i, v, i * v)", "[0, 2, 6]"),
        ("self.m.transformMap(k, v, v + 1)", "{x: 2, y: 3}"),
        ("self.m.transformMapEntry(k, v, {k + k: v})", "{xx: 1, yy: 2}"),
        ("self.l.sortBy(x, -x)", "[3, 2, 1]"),
        ("self.l.all(x, self.l.all(y, x + y < 7))", "true"),
        ("self.l.exists(x, x / 0 == 1 || x == 2)", "true"),
        ("optional.of(1).optMap(x, x + 1).value()", "2"),
        ("self.l.map(1, 2)", "ERROR: <input>:1:12: argument is not an identifier"),
    ]);
}

#[test]
fn libraries() {
    check(&[
        ("'Tacocat'.lowerAscii().charAt(0)", "'t'"),
        ("'a,b,c'.split(',', 2)", "[a, b,c]"),
        ("'ünder'.substring(1, 3) + 'ü'.size().format([])", "error: no such overload"),
        ("'%s=%d (%.1f, %x)'.format(['a', 7, 2.25, 255])", "'a=7 (2.2, ff)'"),
        ("'abcabc'.lastIndexOf('c', 4)", "2"),
        ("'abc'.substring(4)", "error: index out of range: 4"),
        ("[3, 1, 2].sort().reverse()", "[3, 2, 1]"),
        ("[1, 2, 2].distinct().size() + [[1], [2, [3]]].flatten().size()", "5"),
        ("[1.5, 2.0].sum()", "3.5"),
        ("self.e.min()", "error: min called on empty list"),
        ("sets.equivalent([1, 2], [2, 1, 1])", "true"),
        ("quantity('1Gi').add(quantity('1Mi')).isGreaterThan(quantity('1Gi'))", "true"),
        ("quantity('15k').asInteger()", "15000"),
        (
            "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.0.0.0/8').containsIP(ip('10.9.9.9'))",
            "true",
        ),
        ("ip('fe80::1').isLinkLocalUnicast() && !isIP('010.1.1.1')", "true"),
        ("url('https://u@h.example:8443/p?a=1&a=2').getQuery()['a']", "[1, 2]"),
        ("url('https://[::1]:80/').getHostname()", "'::1'"),
        ("semver('1.0.0-rc.2').isLessThan(semver('1.0.0-rc.10')) && isSemver('v1.2', true)", "true"),
        ("duration('1h30m').getMinutes()", "90"),
        ("string(duration('90s')) + string(timestamp('2024-01-02T03:04:05Z'))", "'90s2024-01-02T03:04:05Z'"),
        ("timestamp('2024-01-02T03:04:05Z').getHours('+02:00')", "5"),
        ("timestamp('2024-01-02T23:04:05Z').getDayOfMonth('Asia/Tokyo')", "2"),
        ("int('x')", "error: type conversion error from 'string' to 'int'"),
        ("self.?a.orValue(5) + self.?b.orValue(6)", "7"),
        ("self.?m.?x.hasValue() && !self.?q.?x.hasValue()", "true"),
        ("[?self.?a, ?self.?b].size() + {?'k': self.?b}.size()", "1"),
        ("format.dns1123Label().validate('A').hasValue()", "true"),
        ("'x1y22'.findAll('[0-9]+')", "[1, 22]"),
        ("shout('a')", "ERROR: <input>:1:6: undeclared reference to 'shout' (in container '')"),
        ("other > 1", "ERROR: <input>:1:1: undeclared reference to 'other' (in container '')"),
    ]);
}

#[test]
fn nothing_runs_beyond_its_budget() {
    let many: Vec<i64> = (0..2000).collect();
    for source in [
        "self.all(a, self.all(b, a + b >= 0))",
        "self.map(a, self.map(b, self)).size() > 0",
        "lists.range(100000000).size() > 0",
        "self.distinct().size() > self.map(x, x).distinct().size()",
    ] {
        assert_eq!(run(source, &json!(many)), "budget", "{source}");
    }
    let grow = "'aaaaaaaaaa'".to_owned() + &".replace('a', 'aaaaaaaaaa')".repeat(12) + ".size()";
    assert_eq!(run(&grow, &json!(null)), "budget");
}
