//! Kubernetes' JSONPath (client-go `util/jsonpath`), as printer columns, selectable fields and scale paths use it.
//!
//! It knows fields, wildcards, indexes, slices, unions, recursive descent and filters; not templates with text or
//! `range`. A missing key gives no result, as with `AllowMissingKeys`. Invariant: parsing and evaluation terminate
//! on any input and never panic.

use serde_json::Value;

/// Results beyond this many are not looked at; a column shows one.
const MAX_RESULTS: usize = 10_000;

/// A parsed path, such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Slice { start: Option<i64>, end: Option<i64>, step: Option<i64>, single: bool },
    Union(Vec<Path>),
    Recursive,
    Filter { left: Operand, op: Op, right: Operand },
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Path),
    Text(String),
    Number(f64),
    Bool(bool),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Exists,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// What is wrong with a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

fn fail<T>(text: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError(text.into()))
}

impl Path {
    /// Parses a path without the braces of a template.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Parser { chars: text.chars().collect(), at: 0, depth: 0 }.path()
    }

    /// All values that the path leads to, in document order. An index out of bounds is an error of the reference
    /// and gives nothing here.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        self.eval(root, 0).unwrap_or_default()
    }

    /// The first value, if any.
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.find(root).into_iter().next()
    }

    fn eval<'a>(&self, root: &'a Value, depth: usize) -> Option<Vec<&'a Value>> {
        let mut current = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in current {
                step.apply(value, &mut next, depth)?;
                if next.len() > MAX_RESULTS {
                    next.truncate(MAX_RESULTS);
                }
            }
            current = next;
        }
        Some(current)
    }
}

impl Step {
    fn apply<'a>(&self, value: &'a Value, out: &mut Vec<&'a Value>, depth: usize) -> Option<()> {
        match self {
            Self::Field(name) if name.is_empty() => out.push(value),
            Self::Field(name) => out.extend(value.as_object().and_then(|o| o.get(name))),
            Self::Wildcard => match value {
                Value::Array(items) => out.extend(items),
                Value::Object(fields) => out.extend(fields.values()),
                _ => {}
            },
            Self::Slice { start, end, step, single } => slice(value, *start, *end, *step, *single, out)?,
            Self::Union(paths) => {
                for path in paths {
                    out.extend(path.eval(value, depth)?);
                }
            }
            Self::Recursive => descend(value, out),
            Self::Filter { left, op, right } => {
                let items: Vec<&Value> = match value {
                    Value::Array(items) => items.iter().collect(),
                    _ => return None,
                };
                if depth > 8 {
                    return None;
                }
                for item in items {
                    if holds(item, left, *op, right, depth + 1)? {
                        out.push(item);
                    }
                }
            }
        }
        Some(())
    }
}

fn slice<'a>(
    value: &'a Value,
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    single: bool,
    out: &mut Vec<&'a Value>,
) -> Option<()> {
    let items = match value {
        Value::Array(items) => items,
        Value::Null => return Some(()),
        _ => return None,
    };
    let len = items.len() as i64;
    let mut from = start.unwrap_or(0);
    if from < 0 {
        from += len;
    }
    let mut to = if single { from + 1 } else { end.unwrap_or(len) };
    if to < 0 {
        to += len;
    }
    if from == to {
        return Some(());
    }
    if single && len == 0 && from >= 0 {
        return None;
    }
    if from >= len || from < 0 || to > len || to < 0 || from > to {
        return None;
    }
    let step = usize::try_from(step.unwrap_or(1)).ok().filter(|s| *s > 0)?;
    out.extend(items[from as usize..to as usize].iter().step_by(step));
    Some(())
}

fn descend<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    let mut pending = vec![value];
    while let Some(v) = pending.pop() {
        if out.len() >= MAX_RESULTS {
            return;
        }
        out.push(v);
        match v {
            Value::Array(items) => pending.extend(items.iter().rev()),
            Value::Object(fields) => pending.extend(fields.values().rev()),
            _ => {}
        }
    }
}

fn holds(item: &Value, left: &Operand, op: Op, right: &Operand, depth: usize) -> Option<bool> {
    let resolve = |operand: &Operand| -> Option<Vec<Value>> {
        Some(match operand {
            Operand::Path(p) => p.eval(item, depth)?.into_iter().cloned().collect(),
            Operand::Text(t) => vec![t.clone().into()],
            Operand::Number(n) => vec![serde_json::Number::from_f64(*n).map_or(Value::Null, Value::Number)],
            Operand::Bool(b) => vec![(*b).into()],
        })
    };
    let lefts = resolve(left)?;
    if op == Op::Exists {
        return Some(!lefts.is_empty());
    }
    let rights = resolve(right)?;
    let (l, r) = match (lefts.as_slice(), rights.as_slice()) {
        ([], _) | (_, []) => return Some(false),
        ([l], [r]) => (l, r),
        _ => return None,
    };
    let order = match (l, r) {
        (Value::String(l), Value::String(r)) => Some(l.cmp(r)),
        (Value::Number(l), Value::Number(r)) => l.as_f64()?.partial_cmp(&r.as_f64()?),
        (Value::Bool(l), Value::Bool(r)) => Some(l.cmp(r)),
        _ => None,
    };
    // Values of different types are incomparable; the reference fails there and shows nothing.
    let order = order?;
    Some(match op {
        Op::Exists => true,
        Op::Eq => order.is_eq(),
        Op::Ne => order.is_ne(),
        Op::Lt => order.is_lt(),
        Op::Le => order.is_le(),
        Op::Gt => order.is_gt(),
        Op::Ge => order.is_ge(),
    })
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn path(mut self) -> Result<Path, ParseError> {
        if self.depth > 8 {
            return fail("path is nested too deeply");
        }
        let mut steps = Vec::new();
        if matches!(self.peek(), Some('$' | '@')) {
            self.at += 1;
        }
        while let Some(c) = self.peek() {
            match c {
                '.' if self.chars.get(self.at + 1) == Some(&'.') => {
                    self.at += 2;
                    steps.push(Step::Recursive);
                    if !matches!(self.peek(), Some('[' | '.')) {
                        steps.push(self.field()?);
                    }
                }
                '.' => {
                    self.at += 1;
                    steps.push(self.field()?);
                }
                '[' => steps.push(self.bracket()?),
                c if steps.is_empty() && (c.is_alphanumeric() || c == '_' || c == '*') => {
                    steps.push(self.field()?)
                }
                c if c.is_whitespace() => self.at += 1,
                c => return fail(format!("unrecognized character in action: U+{:04X} '{c}'", c as u32)),
            }
        }
        Ok(Path { steps })
    }

    fn field(&mut self) -> Result<Step, ParseError> {
        let mut name = String::new();
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.peek() {
                        name.push(escaped);
                        self.at += 1;
                    }
                }
                '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => break,
                c if c.is_whitespace() => break,
                c => {
                    name.push(c);
                    self.at += 1;
                }
            }
        }
        Ok(if name == "*" { Step::Wildcard } else { Step::Field(name) })
    }

    /// The text between `[` and its `]`, quotes respected.
    fn bracket(&mut self) -> Result<Step, ParseError> {
        self.at += 1;
        let (mut text, mut open, mut quote) = (String::new(), 1, None);
        loop {
            let Some(c) = self.peek() else { return fail("unterminated array") };
            self.at += 1;
            match (quote, c) {
                (None, '[' | '(') => open += 1,
                (None, ']') if open == 1 => break,
                (None, ']' | ')') => open -= 1,
                (None, '\'' | '"') => quote = Some(c),
                (Some(_), '\\') => {
                    text.push(c);
                    let Some(next) = self.peek() else { return fail("unterminated quoted string") };
                    text.push(next);
                    self.at += 1;
                    continue;
                }
                (Some(q), c) if q == c => quote = None,
                _ => {}
            }
            text.push(c);
        }
        self.inside(text.trim())
    }

    fn inside(&self, text: &str) -> Result<Step, ParseError> {
        if let Some(filter) = text.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
            return self.filter(filter);
        }
        let parts = split(text, ',');
        if parts.len() > 1 {
            let steps: Result<Vec<_>, _> =
                parts.iter().map(|p| self.inside(p.trim()).map(|s| Path { steps: vec![s] })).collect();
            return Ok(Step::Union(steps?));
        }
        if text == "*" {
            return Ok(Step::Wildcard);
        }
        if let Some(name) = unquote(text) {
            return Ok(Step::Field(name));
        }
        let parts: Vec<&str> = text.split(':').collect();
        if text.is_empty() || parts.len() > 3 {
            return fail(format!("invalid array index {text}"));
        }
        let number = |s: &str| match s.trim() {
            "" => Ok(None),
            s => s.parse().map(Some).map_err(|_| ParseError(format!("invalid array index {text}"))),
        };
        let start = number(parts[0])?;
        let end = parts.get(1).map_or(Ok(None), |s| number(s))?;
        let step = parts.get(2).map_or(Ok(None), |s| number(s))?;
        Ok(Step::Slice { start, end, step, single: parts.len() == 1 })
    }

    fn filter(&self, text: &str) -> Result<Step, ParseError> {
        const OPS: [(&str, Op); 6] =
            [("==", Op::Eq), ("!=", Op::Ne), ("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)];
        let mut quote = None;
        for (i, c) in text.char_indices() {
            match (quote, c) {
                (None, '\'' | '"') => quote = Some(c),
                (Some(q), c) if q == c => quote = None,
                (None, _) => {
                    if let Some((sign, op)) = OPS.iter().find(|(sign, _)| text[i..].starts_with(sign)) {
                        let left = self.operand(text[..i].trim())?;
                        let right = self.operand(text[i + sign.len()..].trim())?;
                        return Ok(Step::Filter { left, op: *op, right });
                    }
                }
                _ => {}
            }
        }
        Ok(Step::Filter { left: self.operand(text.trim())?, op: Op::Exists, right: Operand::Bool(true) })
    }

    fn operand(&self, text: &str) -> Result<Operand, ParseError> {
        if let Some(t) = unquote(text) {
            return Ok(Operand::Text(t));
        }
        if text == "true" || text == "false" {
            return Ok(Operand::Bool(text == "true"));
        }
        if let Ok(n) = text.parse::<f64>()
            && n.is_finite()
        {
            return Ok(Operand::Number(n));
        }
        if text.is_empty() {
            return fail("unexpected end of filter");
        }
        let path = Parser { chars: text.chars().collect(), at: 0, depth: self.depth + 1 }.path()?;
        Ok(Operand::Path(path))
    }
}

/// Splits outside quotes, parentheses and brackets.
fn split(text: &str, at: char) -> Vec<String> {
    let (mut parts, mut quote, mut open) = (vec![String::new()], None, 0usize);
    for c in text.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, '[' | '(') => open += 1,
            (None, ']' | ')') => open = open.saturating_sub(1),
            _ => {}
        }
        if quote.is_none() && open == 0 && c == at {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts
}

fn unquote(text: &str) -> Option<String> {
    let q = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(q)?.strip_suffix(q)?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next()? } else { c });
    }
    Some(out)
}

/// A value as the reference prints it in a string column: lists and maps as JSON, null as `<no value>`.
pub fn print(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(s) => s.clone(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() => go_float(f),
            _ => n.to_string(),
        },
        other => other.to_string(),
    }
}

/// Go's `%v` of a float64: shortest digits, an exponent below 1e-4 and from 1e21.
fn go_float(f: f64) -> String {
    let magnitude = f.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{f:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{f}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(path: &str, want: &[Value]) {
        let object = json!({
            "spec": {"replicas": 3, "hosts": ["a", "b", "c"], "null": null, "a.b/c": "dotted"},
            "status": {"conditions": [
                {"type": "Synced", "status": "False", "n": 1}, {"type": "Ready", "status": "True", "n": 2}]},
        });
        let found: Vec<Value> =
            Path::parse(path).map(|p| p.find(&object).into_iter().cloned().collect()).unwrap_or_default();
        assert_eq!(found, want, "{path}");
    }

    #[test]
    fn paths_lead_where_the_reference_goes() {
        check(".spec.replicas", &[json!(3)]);
        check("spec.replicas", &[json!(3)]);
        check("$.spec.replicas", &[json!(3)]);
        check(".spec.hosts[0]", &[json!("a")]);
        check(".spec.hosts[-1]", &[json!("c")]);
        check(".spec.hosts[7]", &[]);
        check(".spec.hosts[*]", &[json!("a"), json!("b"), json!("c")]);
        check(".spec.hosts[0:2]", &[json!("a"), json!("b")]);
        check(".spec.hosts[::2]", &[json!("a"), json!("c")]);
        check(".spec.hosts[0,2]", &[json!("a"), json!("c")]);
        check(".spec['replicas']", &[json!(3)]);
        check(".spec.a\\.b/c", &[json!("dotted")]);
        check(".spec['a.b/c']", &[json!("dotted")]);
        check(".spec.null", &[Value::Null]);
        check(".spec.none.deeper", &[]);
        check(".status.conditions[?(@.type==\"Ready\")].status", &[json!("True")]);
        check(".status.conditions[?(@.type=='Ready')].status", &[json!("True")]);
        check(".status.conditions[?(@.n>1)].type", &[json!("Ready")]);
        check(".status.conditions[?(@.n)].type", &[json!("Synced"), json!("Ready")]);
        check("..type", &[json!("Synced"), json!("Ready")]);
        check(".spec.hosts[", &[]);
    }

    #[test]
    fn values_print_as_go_prints_them() {
        for (value, want) in [
            (json!(null), "<no value>"),
            (json!(0.25), "0.25"),
            (json!(1e21), "1e+21"),
            (json!(0.00001), "1e-05"),
            (json!(["a", 1]), "[\"a\",1]"),
            (json!(true), "true"),
        ] {
            assert_eq!(print(&value), want);
        }
    }
}
