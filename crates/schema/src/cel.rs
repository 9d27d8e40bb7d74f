//! The Common Expression Language: rules of schemas (`x-kubernetes-validations`) and expressions of admission.
//!
//! A rule is parsed once and evaluated at every place that its schema stands for; an expression of admission is a
//! [`Program`]. Types are judged at registration ([`check`](mod@check)); whatever doesn't fit all the same is an error
//! when it is evaluated. Invariants: a rule that can't be evaluated refuses the object, and none runs beyond its budget.

mod ast;
mod authorizer;
pub mod check;
mod convert;
mod eval;
mod functions;
mod lex;
mod names;
mod parse;
mod patches;
mod program;
mod report;
mod types;
mod value;
mod walk;

use homeostat_model::field::Kind as Wrong;
use serde_json::Value;

use ast::{Expr, Kind};

pub use authorizer::{Answer, Authorizer, Question, RequestResource};
pub use names::is_identifier;
pub use patches::PatchError;
pub use program::{Activation, Failure, Input, Inputs, Program, Variables};
pub(crate) use walk::evaluate;

/// One rule.
pub(crate) struct Rule {
    /// As errors print it.
    source: String,
    program: Result<Expr, String>,
    message: Option<String>,
    message_expression: Option<Expr>,
    reason: Wrong,
    /// Where the error is put, below the rule's place: `min`, `map[key]`.
    field_path: Option<String>,
    uses_old_self: bool,
    optional_old_self: bool,
}

impl Rule {
    /// A rule as it stands in a schema.
    pub(crate) fn compile(rule: &Value) -> Self {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
        let source = text("rule").trim().to_owned();
        let program = compile(&source);
        let uses_old_self = program.as_ref().is_ok_and(mentions_old_self);
        Self {
            program,
            uses_old_self,
            message: Some(text("message").trim().to_owned()).filter(|m| !m.is_empty()),
            message_expression: Some(text("messageExpression").trim())
                .filter(|m| !m.is_empty())
                .and_then(|m| compile(m).ok()),
            reason: match text("reason") {
                "FieldValueForbidden" => Wrong::Forbidden,
                "FieldValueRequired" => Wrong::Required,
                "FieldValueDuplicate" => Wrong::Duplicate,
                _ => Wrong::Invalid,
            },
            field_path: Some(text("fieldPath")).filter(|p| !p.is_empty()).map(normalize),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true),
            source,
        }
    }

    /// The message, or else the rule, as errors of evaluation print it.
    fn shown(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.source)
    }
}

/// Parses an expression and looks for names that nobody knows. The error is cel-go's, as a CRD's validation reports it
/// after `compilation failed: `.
pub fn check(source: &str) -> Result<(), String> {
    compile(source).map(drop)
}

/// Whether a rule looks at `oldSelf`.
pub fn uses_old_self(source: &str) -> bool {
    parse::parse(source).as_ref().is_ok_and(mentions_old_self)
}

fn compile(source: &str) -> Result<Expr, String> {
    let expr = parse::parse(source)?;
    let mut bound = Vec::new();
    match undeclared(&expr, &mut bound) {
        None => Ok(expr),
        Some((at, name)) => {
            Err(report::one(source, at, &format!("undeclared reference to '{name}' (in container '')")))
        }
    }
}

fn mentions_old_self(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(&e.kind, Kind::Ident(name) if &**name == "oldSelf"));
    found
}

/// The first name that is neither a variable nor a function.
fn undeclared<'a>(expr: &'a Expr, bound: &mut Vec<&'a str>) -> Option<(usize, String)> {
    let mut each = |list: Vec<&'a Expr>| list.into_iter().find_map(|e| undeclared(e, bound));
    match &expr.kind {
        Kind::Literal(_) => None,
        Kind::Ident(name) => {
            let known = matches!(&**name, "self" | "oldSelf")
                || bound.contains(&&**name)
                || eval::TYPES.contains(&&**name);
            (!known).then(|| (expr.at, name.to_string()))
        }
        Kind::Select { operand, .. } | Kind::Has { operand, .. } => undeclared(operand, bound),
        Kind::Index { operand, index, .. } => each(vec![operand, index]),
        Kind::Call { target, function, args } => {
            if !check::is_function(function) || &**function == check::ESCAPE_KEY {
                return Some((expr.at, function.to_string()));
            }
            each(target.iter().map(|t| &**t).chain(args).collect())
        }
        Kind::List(items) => each(items.iter().map(|(e, _)| e).collect()),
        Kind::Map(entries) => each(entries.iter().flat_map(|(k, v, _)| [k, v]).collect()),
        // Rules know no messages.
        Kind::Struct { name, .. } => Some((expr.at, name.to_string())),
        Kind::Not(e) | Kind::Negate(e) => undeclared(e, bound),
        Kind::Binary(_, a, b) => each(vec![a, b]),
        Kind::Cond(a, b, c) => each(vec![a, b, c]),
        Kind::Loop(l) => {
            if let Some(found) = undeclared(&l.range, bound) {
                return Some(found);
            }
            let before = bound.len();
            bound.push(&l.first);
            bound.extend(l.second.as_deref());
            let found = l.filter.iter().chain([&l.body]).find_map(|e| undeclared(e, bound));
            bound.truncate(before);
            found
        }
    }
}

/// `.a.b['c']` as paths print it: `a.b[c]`.
fn normalize(path: &str) -> String {
    let mut out = String::new();
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("['")
            && let Some((key, after)) = after.split_once("']")
        {
            out.push('[');
            out.push_str(&key.replace("\\'", "'").replace("\\\\", "\\"));
            out.push(']');
            rest = after;
            continue;
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out.strip_prefix('.').map(str::to_owned).unwrap_or(out)
}

#[cfg(test)]
mod tests;
