//! Expressions judged when they are registered: types against what is declared, and what evaluation may cost at most.
//!
//! It mirrors cel-go's checker and cost estimator with Kubernetes' libraries: overloads, the errors' texts, sizes from
//! the schema's limits. Nothing is evaluated. Invariant: what has no type here is refused, so that no rule fails for its
//! types at run time only (`dyn` values aside).

mod admission;
mod cost;
mod decl;
mod infer;
mod loops;
mod signatures;
mod types;

use serde_json::{Map, Value};

pub use admission::{Environment, Uses, Wanted};
pub use decl::Declared;

use super::{parse, report};
use infer::{Env, Node};
use types::Type;

pub(super) use infer::{OBJECT, PATCH};
pub(super) use signatures::ESCAPE_KEY;

/// What became of an expression.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// Why the rule is refused: `compilation failed: …`.
    pub error: Option<String>,
    /// The most that one evaluation may cost.
    pub cost: u64,
    /// Whether it looks at `oldSelf`; false when refused.
    pub uses_old_self: bool,
    /// The message expression: its cost, or why it is refused. `None` where there is none, or the rule is refused.
    pub message: Option<Result<u64, String>>,
}

/// Checks a rule (an item of `x-kubernetes-validations`) against the declared type of the values it stands at.
pub fn rule(rule: &Map<String, Value>, declared: &Declared) -> Checked {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
    let optional = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
    let expression = text("rule");
    let refused = |why: String| Checked { error: Some(why), ..Checked::default() };
    let node = match check(expression, declared, optional) {
        Ok(node) => node,
        Err(why) => return refused(format!("compilation failed: {why}")),
    };
    if !matches!(node.ty, Type::Bool) {
        return refused("cel expression must evaluate to a bool".to_owned());
    }
    let message = Some(text("messageExpression")).filter(|m| !m.is_empty()).map(|m| {
        let node = check(m, declared, optional)
            .map_err(|why| format!("messageExpression compilation failed: {why}"))?;
        match node.ty {
            Type::Text => Ok(node.cost.1),
            _ => Err("messageExpression must evaluate to a string".to_owned()),
        }
    });
    Checked { error: None, cost: node.cost.1, uses_old_self: super::uses_old_self(expression), message }
}

fn check(source: &str, declared: &Declared, optional_old_self: bool) -> Result<Node, String> {
    let expr = parse::parse(source)?;
    let env = Env::rule(declared, optional_old_self);
    env.judge(&expr).map_err(|faults| report::display(source, faults))
}

/// Whether there is a function of this name.
pub(super) fn is_function(name: &str) -> bool {
    signatures::overloads(name).is_some()
}

#[cfg(test)]
mod tests;
