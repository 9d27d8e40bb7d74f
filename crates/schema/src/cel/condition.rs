//! Conditions over an object and a request, for who has not compiled them.

use serde_json::Value;

use super::check::{Environment, Uses, Wanted};
use super::program::{Activation, Input, Inputs};

/// Evaluates an expression that is to be a bool, over these variables.
///
/// # Errors
/// Why it can't be told.
pub fn condition(source: &str, variables: &[(&str, &Value)]) -> Result<bool, String> {
    let find = |name: &str| Input::json(variables.iter().find(|(n, _)| *n == name).map(|(_, v)| *v));
    let inputs = Inputs {
        object: find("object"),
        old_object: find("oldObject"),
        request: find("request"),
        namespace: find("namespaceObject"),
    };
    let params = find("params");
    let program = Environment::new(false).compile(source, Wanted::Bool, Uses::default());
    Activation::new(&inputs, &params, None, &[], 2_500_000).holds(&program).map_err(|e| e.to_string())
}
