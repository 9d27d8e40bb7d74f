//! Conditions over named values, such as `matchConditions` of webhooks: without a schema, every value is what its JSON
//! is. Invariant: a condition costs no more than its budget.

use serde_json::Value;

use super::eval::{Eval, Fault, Scope};
use super::value::Val;
use super::{convert, parse};

/// What one condition may spend.
const BUDGET: u64 = 10_000_000;

/// Evaluates an expression that is to be a bool, over these variables.
///
/// # Errors
/// In cel-go's words: it does not parse, cannot be evaluated, is no bool, or costs too much.
pub fn condition(source: &str, variables: &[(&str, &Value)]) -> Result<bool, String> {
    let expr = parse::parse(source)?;
    let values: Vec<(&str, Val)> = variables.iter().map(|(n, v)| (*n, convert::value(None, v))).collect();
    let nothing = Val::Null;
    let mut eval = Eval { budget: BUDGET };
    let root = Scope::Root(&nothing, None);
    let mut run = |scope: &Scope<'_>| eval.eval(&expr, scope);
    match within(&values, &root, &mut run) {
        Ok(Val::Bool(b)) => Ok(b),
        Ok(_) => Err("must evaluate to bool".to_owned()),
        Err(Fault::Error(why)) => Err(why),
        Err(Fault::Budget) => Err("operation cancelled: actual cost limit exceeded".to_owned()),
    }
}

/// Runs `f` in a scope that has all of `values`.
fn within(
    values: &[(&str, Val)],
    scope: &Scope<'_>,
    f: &mut dyn FnMut(&Scope<'_>) -> Result<Val, Fault>,
) -> Result<Val, Fault> {
    match values.split_first() {
        None => f(scope),
        Some(((name, value), rest)) => within(rest, &Scope::Bound(scope, name, value), f),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_see_their_variables() {
        let (object, request) = (json!({"spec": {"n": 3}}), json!({"operation": "CREATE"}));
        for (source, want) in [
            ("object.spec.n > 2", Ok(true)),
            ("object.spec.n > 5 && request.operation == 'CREATE'", Ok(false)),
            ("has(object.spec.m)", Ok(false)),
            ("oldObject == null", Ok(true)),
            ("object.spec.n", Err("must evaluate to bool")),
            ("object.spec.m == 1", Err("no such key: m")),
        ] {
            let variables = [("object", &object), ("oldObject", &Value::Null), ("request", &request)];
            assert_eq!(
                condition(source, &variables).as_ref().map_err(|e| e.as_str()),
                want.as_ref().map_err(|e| *e),
                "{source}"
            );
        }
    }
}
