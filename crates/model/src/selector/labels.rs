//! Label selectors: `app=redis,tier in (cache,db),!canary`.

use std::fmt;

use serde_json::Value;

use crate::{field, validation};

/// How a requirement relates its key to its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key in (a,b)`.
    In,
    /// `key notin (a,b)`; also matches where the key is absent.
    NotIn,
    /// `key=a`.
    Equals,
    /// `key==a`: the same, printed as it came.
    DoubleEquals,
    /// `key!=a`; also matches where the key is absent.
    NotEquals,
    /// `key`.
    Exists,
    /// `!key`.
    DoesNotExist,
    /// `key>1`: both sides are integers.
    GreaterThan,
    /// `key<1`: both sides are integers.
    LessThan,
}

/// One condition of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without repetitions; one for the exact operators, none for the existence operators.
    values: Vec<String>,
}

impl Requirement {
    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Self {
        values.sort();
        values.dedup();
        Self { key: key.to_owned(), operator, values }
    }

    /// The errors of apimachinery's `NewRequirement`, whose paths start at the requirement.
    fn errors(&self) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let key_errors = validation::qualified_name(&self.key);
        if !key_errors.is_empty() {
            errors.push(field::Error::invalid("key", self.key.as_str(), key_errors.join("; ")));
        }
        if matches!(self.operator, Operator::GreaterThan | Operator::LessThan) {
            for (i, v) in self.values.iter().enumerate().filter(|(_, v)| v.parse::<i64>().is_err()) {
                let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(field::Error::invalid(field::index("values", i), v.as_str(), why));
            }
        }
        for (i, v) in self.values.iter().enumerate() {
            let why = validation::label_value(v);
            if !why.is_empty() {
                let path = field::key(&field::index("values", i), &self.key);
                errors.push(field::Error::invalid(path, v.as_str(), why.join("; ")));
            }
        }
        errors
    }

    fn matches(&self, actual: Option<&str>) -> bool {
        let has = |v: &str| self.values.iter().any(|x| x == v);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => actual.is_some_and(has),
            Operator::NotIn | Operator::NotEquals => !actual.is_some_and(has),
            Operator::Exists => actual.is_some(),
            Operator::DoesNotExist => actual.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let wanted = self.values.first().and_then(|v| v.parse::<i64>().ok());
                match (actual.and_then(|v| v.parse::<i64>().ok()), wanted) {
                    (Some(a), Some(w)) if self.operator == Operator::GreaterThan => a > w,
                    (Some(a), Some(w)) => a < w,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// A label selector: every requirement must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    /// Sorted by key.
    requirements: Vec<Requirement>,
    /// An absent `metav1.LabelSelector` selects nothing, an empty one everything.
    nothing: bool,
}

impl Labels {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects nothing.
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Parses the string form, as in `?labelSelector=`. The error is the reference's text.
    pub fn parse(text: &str) -> Result<Self, String> {
        Parser::new(text).parse().map(Self::from_requirements)
    }

    fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements, nothing: false }
    }

    /// From a `metav1.LabelSelector`; `null` selects nothing. Errors have paths from the selector on
    /// (`matchExpressions[0].values`); prefix them with [`validation::label_selector`] where the place is known.
    pub fn from_value(selector: &Value) -> Result<Self, Vec<field::Error>> {
        if selector.is_null() {
            return Ok(Self::nothing());
        }
        let errors = validation::label_selector(selector, "");
        if errors.is_empty() { Ok(Self::from_valid(selector)) } else { Err(errors) }
    }

    /// From a `metav1.LabelSelector` that has been validated before; what is malformed in it is passed over.
    pub fn from_valid(selector: &Value) -> Self {
        if selector.is_null() {
            return Self::nothing();
        }
        let mut all = Vec::new();
        if let Some(labels) = selector["matchLabels"].as_object() {
            all.extend(labels.iter().filter_map(|(k, v)| {
                Some(Requirement::new(k, Operator::Equals, vec![v.as_str()?.to_owned()]))
            }));
        }
        for e in selector["matchExpressions"].as_array().into_iter().flatten() {
            let operator = match e["operator"].as_str() {
                Some("In") => Operator::In,
                Some("NotIn") => Operator::NotIn,
                Some("Exists") => Operator::Exists,
                Some("DoesNotExist") => Operator::DoesNotExist,
                _ => continue,
            };
            let values = e["values"].as_array().into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            all.push(Requirement::new(e["key"].as_str().unwrap_or_default(), operator, values));
        }
        Self::from_requirements(all)
    }

    /// One requirement `key=value` per entry of an object, such as a Service's `spec.selector`; an object that is
    /// absent or empty selects everything.
    pub fn from_map(labels: &Value) -> Self {
        let entries = labels.as_object().into_iter().flatten();
        Self::from_requirements(
            entries
                .filter_map(|(k, v)| {
                    Some(Requirement::new(k, Operator::Equals, vec![v.as_str()?.to_owned()]))
                })
                .collect(),
        )
    }

    /// The requirements, sorted by key. Empty both for everything and for nothing.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether it selects nothing at all.
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// Whether labels, given as a lookup, are selected.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.matches(get(&r.key)))
    }

    /// Whether `metadata.labels`, which may be null, are selected.
    pub fn matches_value(&self, labels: &Value) -> bool {
        self.matches(|key| labels.get(key).and_then(Value::as_str))
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            r.fmt(f)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

fn token_of(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::Greater,
        "in" => Token::In,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::Open,
        _ => return None,
    })
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

/// Splits into tokens; a NUL ends the text, as in the reference.
fn scan(text: &str) -> Vec<(Token, &str)> {
    let mut rest = text;
    let mut out = Vec::new();
    loop {
        rest = rest.trim_start_matches(is_space);
        let Some(first) = rest.chars().next().filter(|c| *c != '\0') else {
            out.push((Token::End, ""));
            return out;
        };
        let len = if is_symbol(first) {
            // `==` and `!=` are the only symbols of two characters.
            if token_of(rest.get(..2).unwrap_or_default()).is_some_and(|t| t != Token::In) { 2 } else { 1 }
        } else {
            rest.find(|c| is_symbol(c) || is_space(c) || c == '\0').unwrap_or(rest.len())
        };
        let (word, tail) = rest.split_at(len);
        out.push((token_of(word).unwrap_or(Token::Identifier), word));
        rest = tail;
        if !is_symbol(first) {
            rest = rest.strip_prefix('\0').unwrap_or(rest);
        }
    }
}

struct Parser<'a> {
    tokens: Vec<(Token, &'a str)>,
    position: usize,
}

/// In the place of a value, `in` and `notin` are ordinary words.
fn as_value((token, text): (Token, &str)) -> (Token, &str) {
    match token {
        Token::In | Token::NotIn => (Token::Identifier, text),
        _ => (token, text),
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { tokens: scan(text), position: 0 }
    }

    fn peek(&self) -> (Token, &'a str) {
        self.tokens.get(self.position).copied().unwrap_or((Token::End, ""))
    }

    fn next(&mut self) -> (Token, &'a str) {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn parse(mut self) -> Result<Vec<Requirement>, String> {
        let mut all = Vec::new();
        loop {
            match as_value(self.peek()) {
                (Token::Identifier | Token::Not, _) => {
                    let r = self.requirement().map_err(|e| format!("unable to parse requirement: {e}"))?;
                    all.push(r);
                    match self.next() {
                        (Token::End, _) => return Ok(all),
                        (Token::Comma, _) => match as_value(self.peek()) {
                            (Token::Identifier | Token::Not, _) => {}
                            (_, l) => return Err(format!("found '{l}', expected: identifier after ','")),
                        },
                        (_, l) => return Err(format!("found '{l}', expected: ',' or 'end of string'")),
                    }
                }
                (Token::End, _) => return Ok(all),
                (_, l) => return Err(format!("found '{l}', expected: !, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let (mut token, mut key) = as_value(self.next());
        let negated = token == Token::Not;
        if negated {
            (token, key) = as_value(self.next());
        }
        if token != Token::Identifier {
            return Err(format!("found '{key}', expected: identifier"));
        }
        let why = validation::qualified_name(key);
        if !why.is_empty() {
            return Err(field::Error::invalid("<nil>", key, why.join("; ")).to_string());
        }
        let ends = matches!(self.peek().0, Token::End | Token::Comma);
        let (operator, values) = match (negated, ends) {
            (true, _) => (Operator::DoesNotExist, Vec::new()),
            (false, true) => (Operator::Exists, Vec::new()),
            (false, false) => {
                let operator = self.operator()?;
                let set = matches!(operator, Operator::In | Operator::NotIn);
                (operator, if set { self.values()? } else { vec![self.exact_value()?] })
            }
        };
        let r = Requirement::new(key, operator, values);
        let errors: Vec<String> = r.errors().iter().map(ToString::to_string).collect();
        match errors.as_slice() {
            [] => Ok(r),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.next() {
            (Token::In, _) => Operator::In,
            (Token::NotIn, _) => Operator::NotIn,
            (Token::Equals, _) => Operator::Equals,
            (Token::DoubleEquals, _) => Operator::DoubleEquals,
            (Token::NotEquals, _) => Operator::NotEquals,
            (Token::Greater, _) => Operator::GreaterThan,
            (Token::Less, _) => Operator::LessThan,
            (_, l) => return Err(format!("found '{l}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// `(a,b)`; `()` and empty places between commas stand for the empty string.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match as_value(self.next()) {
            (Token::Open, _) => {}
            (_, l) => return Err(format!("found '{l}' expected: '('")),
        }
        match as_value(self.peek()) {
            (Token::Identifier | Token::Comma, _) => {
                let values = self.value_list()?;
                self.next(); // the parenthesis that ended the list
                Ok(values)
            }
            (Token::Close, _) => {
                self.next();
                Ok(vec![String::new()])
            }
            (_, l) => Err(format!("found '{l}', expected: ',', ')' or identifier")),
        }
    }

    fn value_list(&mut self) -> Result<Vec<String>, String> {
        let mut values: Vec<String> = Vec::new();
        loop {
            match as_value(self.next()) {
                (Token::Identifier, l) => {
                    values.push(l.to_owned());
                    match as_value(self.peek()) {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, l) => return Err(format!("found '{l}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek().0 {
                        Token::Close => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        Token::Comma => {
                            self.next();
                            values.push(String::new());
                        }
                        _ => {}
                    }
                }
                (_, l) => return Err(format!("found '{l}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(String::new());
        }
        match as_value(self.next()) {
            (Token::Identifier, l) => Ok(l.to_owned()),
            (_, l) => Err(format!("found '{l}', expected: identifier")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn check_parse(text: &str, want: Result<&str, &str>) {
        let got = Labels::parse(text).map(|s| s.to_string());
        assert_eq!(got.as_deref().map_err(String::as_str), want, "{text:?}");
    }

    #[test]
    fn strings_parse_to_their_canonical_form() {
        for (text, want) in [
            ("", ""),
            ("  ", ""),
            ("x=a", "x=a"),
            ("x==a", "x==a"),
            ("x != a , y", "x!=a,y"),
            ("x=", "x="),
            ("x=,z= ", "x=,z="),
            ("y,x", "x,y"),
            ("!x", "!x"),
            ("! example.com/x", "!example.com/x"),
            ("x in (b,a,a)", "x in (a,b)"),
            ("x in ()", "x in ()"),
            ("x in (,a)", "x in (,a)"),
            ("x in (a,)", "x in (,a)"),
            ("x in (a,,b)", "x in (,a,b)"),
            ("x notin (in)", "x notin (in)"),
            ("in in (in,notin)", "in in (in,notin)"),
            ("notin=in", "notin=in"),
            ("x>1,y<3", "x>1,y<3"),
            ("x=a\n,y", "x=a,y"),
            ("x\t in\t (a)", "x in (a)"),
        ] {
            check_parse(text, Ok(want));
        }
    }

    #[test]
    fn errors_are_the_references() {
        for (text, want) in [
            (
                "x=a||y=b",
                "unable to parse requirement: values[0][x]: Invalid value: \"a||y\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
            ("x,", "found '', expected: identifier after ','"),
            (",x", "found ',', expected: !, identifier, or 'end of string'"),
            ("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt"),
            ("x=a=b", "found '=', expected: ',' or 'end of string'"),
            ("!x=a", "found '=', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("x in", "unable to parse requirement: found '' expected: '('"),
            ("x in a", "unable to parse requirement: found 'a' expected: '('"),
            ("x in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("x in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("x in (a,", "unable to parse requirement: found '', expected: ',', or identifier"),
            ("x=(a)", "unable to parse requirement: found '(', expected: identifier"),
            (
                "x>a",
                "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            let want = want.replace(",  or ", ", or ");
            check_parse(text, Err(&want));
        }
        let e = Labels::parse("-x=a").unwrap_err();
        assert!(
            e.starts_with(
                "unable to parse requirement: <nil>: Invalid value: \"-x\": name part must consist of"
            ),
            "{e}"
        );
    }

    #[test]
    fn matching() {
        let labels = json!({"app": "redis", "n": "5", "empty": ""});
        for (text, want) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("app=redis", true),
            ("app=redis,n", true),
            ("app!=redis", false),
            ("other!=redis", true),
            ("other=", false),
            ("empty=", true),
            ("app in (a,redis)", true),
            ("app notin (a,redis)", false),
            ("other notin (a)", true),
            ("n>4", true),
            ("n>5", false),
            ("n<6", true),
            ("app>1", false),
            ("other<1", false),
        ] {
            assert_eq!(Labels::parse(text).unwrap().matches_value(&labels), want, "{text}");
        }
        assert!(!Labels::nothing().matches_value(&labels));
    }

    #[test]
    fn selector_objects() {
        let of = |v: Value| {
            Labels::from_value(&v)
                .map(|s| s.to_string())
                .map_err(|e| e.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            of(json!({"matchLabels": {"b": "1", "a": "2"},
                "matchExpressions": [{"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]})),
            Ok("a=2,b=1,c in (x,y),!d".into())
        );
        assert_eq!(
            of(json!({"matchExpressions": [{"key": "c", "operator": "In"}, {"key": "c", "operator": "Exists", "values": ["a"]},
                {"key": "c", "operator": "Foo"}]})),
            Err(vec![
                "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'".into(),
                "matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'".into(),
                "matchExpressions[2].operator: Invalid value: \"Foo\": not a valid selector operator".into(),
            ])
        );
        assert!(Labels::from_value(&Value::Null).unwrap().is_nothing());
        assert!(Labels::from_value(&json!({})).unwrap().is_empty());
        assert_eq!(Labels::from_map(&json!({"a": "b"})).to_string(), "a=b");
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,24}") {
            let _ = Labels::parse(&text);
        }

        #[test]
        fn prints_what_it_parses(text in "[ab!=<>(), in0-9]{0,16}") {
            if let Ok(s) = Labels::parse(&text) {
                prop_assert_eq!(Labels::parse(&s.to_string()).unwrap(), s);
            }
        }
    }
}
