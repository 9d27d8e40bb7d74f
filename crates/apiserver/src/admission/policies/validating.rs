//! ValidatingAdmissionPolicies: each validation that fails denies, warns or is told to whoever audits, as the binding
//! says.
//!
//! Policies and bindings are asked in the order of their names; the first that denies gives the answer, but all are
//! asked, for their warnings and annotations. Source: the reference's dispatcher and validator.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use homeostat_model::Status;
use homeostat_model::field::go_json;
use homeostat_model::status::Result;
use homeostat_schema::cel::{Activation, Failure, Input, Inputs};
use serde_json::Value;

use super::policy::{Binding, Policy, Validation};
use super::{bound, round};
use crate::admission::evaluation::{self, Asker, Given};
use crate::admission::matching::{Attributes, View};

/// Bytes of a message that an expression gives.
const MAX_MESSAGE: usize = 5 * 1024;
/// Bytes of an annotation's value.
const MAX_ANNOTATION: usize = 10 * 1024;
/// Failures that one audit event tells.
const MAX_FAILURES: usize = 50;

/// What one validation comes to, where it doesn't pass.
struct Denial {
    message: String,
    reason: &'static str,
}

/// Everything that policies say of one request.
#[derive(Default)]
struct Verdict {
    /// The first denial.
    denied: Option<Denial>,
    warnings: Vec<String>,
    /// Failures that are audited, as JSON.
    failures: Vec<String>,
    /// Values of annotations by their key.
    annotations: BTreeMap<String, Vec<String>>,
}

/// Lets validating policies veto a write.
pub(in crate::admission) async fn validate(a: &Attributes<'_>) -> Result<()> {
    let hooks = bound(a.w, false);
    if hooks.is_empty() {
        return Ok(());
    }
    let round = round(a, &hooks).await;
    if round.invocations.is_empty() {
        return Ok(());
    }
    let mut views = Vec::with_capacity(round.matched.len());
    for matched in &round.matched {
        views.push(View::of(a, matched).await);
    }
    let inputs: Vec<std::result::Result<Inputs<'_>, &Status>> =
        views.iter().map(|view| view.as_ref().map(|view| evaluation::inputs(a, view))).collect();
    let asker = Asker { w: a.w, subject: a.subject };
    let mut verdict = Verdict::default();
    for invocation in &round.invocations {
        let (policy, binding) = (invocation.policy, invocation.binding);
        let inputs = match (&inputs[invocation.version], &invocation.params) {
            (_, Err(why)) => Err(why.clone()),
            (Err(status), _) => {
                let why = &status.message;
                Err(format!("failed to configure binding: failed to convert object version: {why}"))
            }
            (Ok(inputs), Ok(params)) => Ok((inputs, params)),
        };
        match (inputs, binding) {
            (Ok((inputs, params)), Some(binding)) => {
                for param in params {
                    let param = Input::json(Some(param));
                    let variables = &policy.variables;
                    let given = Given { inputs, params: &param, asker: &asker, variables };
                    verdict.evaluate(policy, binding, &given);
                }
            }
            (Err(why), binding) if policy.fail => {
                verdict.deny(policy, binding, Denial { message: why, reason: "Invalid" });
            }
            _ => {}
        }
    }
    verdict.publish(a)
}

impl Verdict {
    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, denial: Denial) {
        let Denial { message, reason } = denial;
        let with = binding.map(|b| format!(" with binding '{}'", b.name)).unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{}'{with} denied request: {message}", policy.name);
        self.denied.get_or_insert(Denial { message, reason });
    }

    /// Evaluates a policy with one parameter.
    fn evaluate(&mut self, policy: &Policy, binding: &Binding, given: &Given<'_>) {
        let failed = |message: String| Denial { message, reason: "Invalid" };
        match given.hold(&policy.conditions) {
            Ok(true) => {}
            Ok(false) => return,
            Err(why) if policy.fail => return self.act(policy, binding, 0, failed(why)),
            Err(_) => return,
        }
        let activation = given.full();
        // If the budget ends, that is all that is said.
        let mut found = Vec::new();
        for (i, validation) in policy.validations.iter().enumerate() {
            match activation.holds(&validation.expression) {
                Ok(true) => {}
                Ok(false) => match message(validation, given) {
                    Ok(message) => found.push((i, Denial { message, reason: validation.reason })),
                    Err(why) if policy.fail => {
                        found.push((i, failed(format!("failed messageExpression: {why}"))));
                    }
                    Err(_) => {}
                },
                Err(spent @ Failure::Budget) => {
                    if policy.fail {
                        self.act(policy, binding, 0, failed(spent.to_string()));
                    }
                    return;
                }
                Err(Failure::Error(why)) if policy.fail => found.push((i, failed(why))),
                Err(Failure::Error(_)) => {}
            }
        }
        for (i, denial) in found {
            self.act(policy, binding, i, denial);
        }
        if !policy.annotations.is_empty() {
            self.annotate(policy, binding, &given.telling());
        }
    }

    /// Does with a failure what the binding says.
    fn act(&mut self, policy: &Policy, binding: &Binding, index: usize, denial: Denial) {
        for action in &binding.actions {
            match action.as_str() {
                "Deny" => {
                    let denial = Denial { message: denial.message.clone(), reason: denial.reason };
                    self.deny(policy, Some(binding), denial);
                }
                "Warn" => self.warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    policy.name, binding.name, denial.message
                )),
                "Audit" if self.failures.len() < MAX_FAILURES => {
                    let text = |s: &str| go_json(&Value::from(s));
                    self.failures.push(format!(
                        "{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{index},\
                         \"validationActions\":{}}}",
                        text(&denial.message),
                        text(&policy.name),
                        text(&binding.name),
                        go_json(&Value::from(binding.actions.clone()))
                    ));
                }
                _ => {}
            }
        }
    }

    fn annotate(&mut self, policy: &Policy, binding: &Binding, activation: &Activation<'_>) {
        for annotation in &policy.annotations {
            match activation.text(&annotation.value) {
                Ok(Some(value)) => {
                    let value = value.trim();
                    if value.is_empty() {
                        continue;
                    }
                    let most = value.floor_char_boundary(MAX_ANNOTATION);
                    let values =
                        self.annotations.entry(format!("{}/{}", policy.name, annotation.key)).or_default();
                    if !values.iter().any(|v| v == &value[..most]) {
                        values.push(value[..most].to_owned());
                    }
                }
                Ok(None) => {}
                Err(why) if policy.fail => {
                    let denial = Denial { message: why.to_string(), reason: "Invalid" };
                    self.deny(policy, Some(binding), denial);
                }
                Err(_) => {}
            }
        }
    }

    /// Tells client and auditors; the error denies the request.
    fn publish(mut self, a: &Attributes<'_>) -> Result<()> {
        if let Some(sink) = a.w.sink {
            sink.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.warnings);
        }
        for (key, values) in &self.annotations {
            a.w.annotate(key, &values.join(", "));
        }
        if !self.failures.is_empty() {
            let failures = format!("[{}]", self.failures.join(","));
            a.w.annotate("validation.policy.admission.k8s.io/validation_failure", &failures);
        }
        let Some(Denial { message, reason }) = self.denied else { return Ok(()) };
        let mut status = Status::forbidden(&a.w.target.resource.id, &a.subject.name, &message);
        status.reason = reason;
        status.code = match reason {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        Err(status.cause("", message, ""))
    }
}

/// What a failed validation says.
fn message(validation: &Validation, given: &Given<'_>) -> std::result::Result<String, Failure> {
    let said = validation.message_expression.as_ref().map(|m| given.telling().text(m));
    match said {
        Some(Err(Failure::Budget)) => return Err(Failure::Budget),
        Some(Ok(Some(text))) => {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n') {
                return Ok(text.to_owned());
            }
        }
        Some(Ok(None) | Err(Failure::Error(_))) | None => {}
    }
    Ok(validation.message.clone())
}
