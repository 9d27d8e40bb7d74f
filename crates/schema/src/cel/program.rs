//! Compiled expressions of admission and what they are evaluated over.
//!
//! An [`Activation`] has the variables of one policy on one request. Values are made when they are first asked for, and
//! once: the object however many expressions look at it, a policy's variables each on first use. Invariant: no expression
//! costs more than its share, nor all together more than the budget.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::ast::Expr;
use super::authorizer::Authorizer;
use super::convert;
use super::eval::{Eval, Fault, Out, Scope};
use super::value::Val;

/// What one expression may spend.
const PER_CALL: u64 = 1_000_000;
/// Levels of syntax trees that are evaluated within one another, through variables.
const MAX_HEIGHT: usize = 400;

/// A compiled expression.
pub struct Program {
    source: Box<str>,
    expr: Expr,
}

impl Program {
    pub(super) fn new(source: &str, expr: Expr) -> Self {
        Self { source: source.into(), expr }
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.source).finish()
    }
}

/// A variable's value, made when it is first asked for.
pub struct Input<'a> {
    source: Source<'a>,
    value: OnceLock<Val>,
}

enum Source<'a> {
    Known(Option<&'a Value>),
    Made(Make<'a>),
    Timed(Make<'a>),
}

type Make<'a> = Box<dyn Fn() -> Value + Send + Sync + 'a>;

impl<'a> Input<'a> {
    /// A JSON value; null where there is none.
    pub fn json(value: Option<&'a Value>) -> Self {
        Self { source: Source::Known(value), value: OnceLock::new() }
    }

    /// What `make` makes.
    pub fn lazy(make: impl Fn() -> Value + Send + Sync + 'a) -> Self {
        Self { source: Source::Made(Box::new(make)), value: OnceLock::new() }
    }

    /// What `make` makes, texts that are times being times.
    pub fn timed(make: impl Fn() -> Value + Send + Sync + 'a) -> Self {
        Self { source: Source::Timed(Box::new(make)), value: OnceLock::new() }
    }

    fn get(&self) -> &Val {
        self.value.get_or_init(|| match &self.source {
            Source::Known(value) => value.map_or(Val::Null, |v| convert::value(None, v)),
            Source::Made(make) => convert::value(None, &make()),
            Source::Timed(make) => convert::timed(&make()),
        })
    }
}

/// The variables that all policies have on one request.
pub struct Inputs<'a> {
    /// `object`.
    pub object: Input<'a>,
    /// `oldObject`.
    pub old_object: Input<'a>,
    /// `request`.
    pub request: Input<'a>,
    /// `namespaceObject`.
    pub namespace: Input<'a>,
}

/// The expression of a variable by its name, or why it cannot be compiled.
pub type Variables = Vec<(String, Result<Program, String>)>;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It could not be evaluated: `expression '…' resulted in error: …`, or it does not compile.
    Error(String),
    /// The budget of all is spent; no other may be evaluated.
    Budget,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(why) => f.write_str(why),
            Self::Budget => f.write_str(
                "validation failed due to running out of cost budget, no further validation rules will be run",
            ),
        }
    }
}

/// What the expressions of one policy are evaluated over. See the module's head.
pub struct Activation<'a> {
    inputs: &'a Inputs<'a>,
    params: &'a Input<'a>,
    authorizer: Option<&'a dyn Authorizer>,
    /// Whether `namespaceObject` is what it is, or null.
    namespace: bool,
    variables: &'a [(String, Result<Program, String>)],
    /// Values of variables that were asked for; one that is being evaluated has none.
    known: Mutex<BTreeMap<usize, Option<Result<Val, String>>>>,
    /// Levels of the trees that are under way.
    height: AtomicUsize,
    budget: Mutex<u64>,
}

impl<'a> Activation<'a> {
    /// Of these variables, with what all expressions may spend together.
    pub fn new(
        inputs: &'a Inputs<'a>,
        params: &'a Input<'a>,
        authorizer: Option<&'a dyn Authorizer>,
        variables: &'a [(String, Result<Program, String>)],
        budget: u64,
    ) -> Self {
        Self {
            inputs,
            params,
            authorizer,
            namespace: true,
            variables,
            known: Mutex::default(),
            height: AtomicUsize::new(0),
            budget: Mutex::new(budget),
        }
    }

    /// The same, but for `namespaceObject`, which is null.
    #[must_use]
    pub fn without_namespace(self) -> Self {
        Self { namespace: false, ..self }
    }

    /// Whether a condition holds.
    ///
    /// # Errors
    /// It cannot be told, or the budget is spent.
    pub fn holds(&self, program: &Result<Program, String>) -> Result<bool, Failure> {
        // What is registered is a bool; anything else does not hold.
        Ok(matches!(self.evaluate(program)?, Val::Bool(true)))
    }

    /// A text; `None` where it is something else.
    ///
    /// # Errors
    /// It cannot be evaluated, or the budget is spent.
    pub fn text(&self, program: &Result<Program, String>) -> Result<Option<String>, Failure> {
        match self.evaluate(program)? {
            Val::String(s) => Ok(Some(s.to_string())),
            _ => Ok(None),
        }
    }

    pub(super) fn evaluate(&self, program: &Result<Program, String>) -> Result<Val, Failure> {
        let program = match program {
            Ok(program) => program,
            Err(why) => return Err(Failure::Error(format!("compilation error: {why}"))),
        };
        let (result, cost) = self.run(program);
        let before = *self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let left = before.checked_sub(cost).ok_or(Failure::Budget)?;
        *self.budget.lock().unwrap_or_else(PoisonError::into_inner) = left;
        result.map_err(|why| {
            Failure::Error(format!("expression '{}' resulted in error: {why}", program.source))
        })
    }

    /// The value, and what it cost without the variables that it looked at.
    fn run(&self, program: &Program) -> (Result<Val, String>, u64) {
        let height = program.expr.height();
        if self.height.fetch_add(height, Ordering::Relaxed) + height > MAX_HEIGHT {
            self.height.fetch_sub(height, Ordering::Relaxed);
            return (Err("expression recursion limit exceeded".to_owned()), 0);
        }
        let mut eval = Eval { budget: PER_CALL, authorizer: self.authorizer };
        let result = eval.eval(&program.expr, &Scope::Admission(self));
        self.height.fetch_sub(height, Ordering::Relaxed);
        let cost = PER_CALL - eval.budget;
        match result {
            Ok(value) => (Ok(value), cost),
            Err(Fault::Error(why)) => (Err(why), cost),
            Err(Fault::Budget) => {
                (Err("operation cancelled: actual cost limit exceeded".to_owned()), PER_CALL + 1)
            }
        }
    }

    /// The value of a variable that is always there.
    pub(super) fn get(&self, name: &str) -> Option<&Val> {
        match name {
            "object" => Some(self.inputs.object.get()),
            "oldObject" => Some(self.inputs.old_object.get()),
            "request" => Some(self.inputs.request.get()),
            "namespaceObject" if !self.namespace => Some(&Val::Null),
            "namespaceObject" => Some(self.inputs.namespace.get()),
            "params" => Some(self.params.get()),
            _ => None,
        }
    }

    /// The value of one of the policy's variables.
    pub(super) fn variable(&self, name: &str) -> Out {
        let Some(at) = self.variables.iter().rposition(|(known, _)| known == name) else {
            return Err(Fault::Error(format!("no such key: {name}")));
        };
        let known = |known: &BTreeMap<usize, Option<Result<Val, String>>>| known.get(&at).cloned();
        let found = known(&self.known.lock().unwrap_or_else(PoisonError::into_inner));
        let result = match found {
            Some(Some(result)) => result,
            // It would need itself, which no environment lets compile.
            Some(None) => Err(format!("variable {name} depends on itself")),
            None => {
                self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(at, None);
                let result = self.first(name, &self.variables[at].1)?;
                self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(at, Some(result.clone()));
                result
            }
        };
        result.map_err(Fault::Error)
    }

    /// Evaluates a variable; what it costs is the budget's.
    fn first(&self, name: &str, program: &Result<Program, String>) -> Result<Result<Val, String>, Fault> {
        let program = match program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("composited variable \"{name}\" fails to compile: {why}"))),
        };
        let (result, cost) = self.run(program);
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        *budget = budget.checked_sub(cost).ok_or(Fault::Budget)?;
        drop(budget);
        Ok(result.map_err(|why| format!("composited variable \"{name}\" fails to evaluate: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cel::check::{Environment, Uses, Wanted};

    const ALL: Uses = Uses { authorizer: true, variables: true };

    struct OnlyReads;

    impl Authorizer for OnlyReads {
        fn check(&self, q: &crate::cel::Question<'_>) -> crate::cel::Answer {
            crate::cel::Answer {
                allowed: q.verb == "get",
                reason: format!("{}/{}", q.namespace, q.name),
                error: None,
            }
        }

        fn request_resource(&self) -> crate::cel::RequestResource {
            crate::cel::RequestResource {
                resource: "pods".into(),
                namespace: "ns".into(),
                name: "p".into(),
                ..Default::default()
            }
        }
    }

    fn run(source: &str, budget: u64) -> Result<String, Failure> {
        let mut env = Environment::new(true);
        let mut variables = Variables::new();
        for (name, expression) in
            [("a", "object.n + 1"), ("b", "variables.a * 2"), ("bad", "object.none"), ("wrong", "1 +")]
        {
            variables.push((name.to_owned(), env.variable(name, expression)));
        }
        let (object, request) = (json!({"n": 3, "l": ["x"]}), json!({"operation": "CREATE"}));
        let inputs = Inputs {
            object: Input::json(Some(&object)),
            old_object: Input::json(None),
            request: Input::json(Some(&request)),
            namespace: Input::timed(
                || json!({"metadata": {"labels": {"a": "b"}, "creationTimestamp": "2024-01-01T00:00:00Z"}}),
            ),
        };
        let params = json!({"data": {"max": "lots"}});
        let params = Input::json(Some(&params));
        let a = Activation::new(&inputs, &params, Some(&OnlyReads), &variables, budget);
        let value = a.evaluate(&env.compile(source, Wanted::Any, ALL))?;
        Ok(crate::cel::functions::display(&value))
    }

    #[test]
    fn expressions_see_their_variables() {
        let failed = |source: &str, why: &str| {
            Err(Failure::Error(format!("expression '{source}' resulted in error: {why}")))
        };
        for (source, want) in [
            ("object.n > 2 && oldObject == null && request.operation == 'CREATE'", Ok("true")),
            ("has(oldObject.n)", Ok("false")),
            ("oldObject.n == 1", Err("no such key: n")),
            ("variables.b + variables.a", Ok("12")),
            ("has(variables.b) && variables.?b.hasValue()", Ok("true")),
            ("variables.bad == 1", Err("composited variable \"bad\" fails to evaluate: no such key: none")),
            ("variables.bad == 1 || true", Ok("true")),
            ("int(params.data.max)", Err("type conversion error from 'string' to 'int'")),
            ("namespaceObject.metadata.labels['a']", Ok("b")),
            ("namespaceObject.metadata.creationTimestamp.getFullYear()", Ok("2024")),
            ("authorizer.group('apps').resource('x').namespace('n').check('get').allowed()", Ok("true")),
            ("authorizer.requestResource.check('update').allowed()", Ok("false")),
            ("authorizer.requestResource.check('get').reason()", Ok("ns/p")),
            ("authorizer.path(' ')", Err("path must not be empty")),
            ("authorizer.group('').resource('')", Err("resource must not be empty")),
            ("authorizer.serviceAccount('A', 'b')", Err("Invalid service account namespace")),
            ("authorizer.path('/x').check('get').errored()", Ok("false")),
        ] {
            let want = want.map(str::to_owned).or_else(|why| failed(source, why));
            assert_eq!(run(source, 10_000_000), want, "{source}");
        }
        let why = run("variables.wrong == 1", 10_000_000).unwrap_err().to_string();
        assert!(
            why.contains("composited variable \"wrong\" fails to compile: compilation failed: "),
            "{why}"
        );
    }

    #[test]
    fn all_share_one_budget_and_none_has_all_of_it() {
        let checks = "authorizer.path('/x').check('get').allowed()";
        let three = [checks; 3].join(" && ");
        let why = "operation cancelled: actual cost limit exceeded";
        assert_eq!(
            run(&three, 10_000_000),
            Err(Failure::Error(format!("expression '{three}' resulted in error: {why}")))
        );
        assert_eq!(run(checks, 300_000), Err(Failure::Budget));
        assert_eq!(run(checks, 400_000), Ok("true".to_owned()));
    }
}
