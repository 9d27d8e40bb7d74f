//! MutatingAdmissionPolicies: each changes the object by apply configurations and JSON patches, in the order of their
//! names, before any webhook is asked.
//!
//! Nobody owns what a policy sets. A policy that fails leaves the object as it was, and whether the request fails with
//! it is the policy's `failurePolicy`. Source: the reference's dispatchers and patchers.

use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_schema::cel::Input;
use homeostat_schema::patch::{self, PatchError};
use homeostat_schema::typed;
use serde_json::Value;

use super::policy::{Binding, Mutation, Policy};
use super::{bound, round};
use crate::admission::evaluation::{self, Asker, Given};
use crate::admission::matching::{Attributes, Matched, View};
use crate::admission::reinvocation::Reinvocation;
use crate::admission::{Subject, webhooks};
use crate::write::Writing;

/// Why a policy could not do its work.
struct Failure<'a> {
    policy: &'a Policy,
    binding: Option<&'a Binding>,
    message: String,
    /// The reason that the answer gives, where it isn't `Forbidden`.
    reason: Option<&'static str>,
}

impl Failure<'_> {
    fn text(&self) -> String {
        let (name, why) = (&self.policy.name, &self.message);
        match self.binding {
            Some(b) => format!("policy '{name}' with binding '{}' denied request: {why}", b.name),
            None => format!("policy \"{name}\" denied request: {why}"),
        }
    }
}

/// Lets mutating policies change the object, in the first or second of two rounds.
pub(in crate::admission) async fn mutate(
    w: &Writing<'_>,
    subject: &Subject,
    object: &mut Value,
    old: Option<&Value>,
    rounds: &mut Reinvocation,
) -> Result<()> {
    let hooks = bound(w, true);
    if hooks.is_empty() {
        return Ok(());
    }
    if rounds.again {
        rounds.policies.resume(object);
    }
    let round = round(&Attributes { w, subject, object: Some(object), old }, &hooks).await;
    let mut failures: Vec<Failure<'_>> = Vec::new();
    for invocation in &round.invocations {
        let (policy, binding) = (invocation.policy, invocation.binding);
        let failed = |message: String, reason| Failure { policy, binding, message, reason };
        let params = match &invocation.params {
            Ok(params) => params,
            Err(why) => {
                failures.push(failed(why.clone(), None));
                continue;
            }
        };
        let matched = &round.matched[invocation.version];
        for param in params {
            let about = One { w, subject, old, matched, policy, param };
            match about.applies(object).await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(Wrong::Policy(why)) => {
                    failures.push(failed(why, Some("Invalid")));
                    continue;
                }
                Err(Wrong::Request(status)) => return Err(status),
            }
            let of = |key: &str| param["metadata"][key].as_str().unwrap_or_default();
            let key = (
                policy.name.clone(),
                binding.map_or_else(String::new, |b| b.name.clone()),
                format!("{}/{}", of("namespace"), of("name")),
            );
            if rounds.again && !rounds.policies.returns(&key) {
                continue;
            }
            let mut changed = false;
            for mutation in &policy.mutations {
                match about.change(mutation, object).await {
                    Ok(Some(new)) => {
                        changed |= new != *object;
                        *object = new;
                    }
                    Ok(None) => {}
                    Err(Wrong::Policy(why)) => failures.push(failed(why, Some("Invalid"))),
                    Err(Wrong::Request(status)) => return Err(status),
                }
            }
            if changed {
                rounds.policies.changed();
                rounds.wanted = true;
            }
            if policy.again {
                rounds.policies.may_return(key);
            }
        }
    }
    rounds.policies.leave(object);
    answer(w, subject, &failures)
}

/// The error that denies a request, where one must be.
fn answer(w: &Writing<'_>, subject: &Subject, failures: &[Failure<'_>]) -> Result<()> {
    let mut fatal = failures.iter().filter(|f| f.policy.fail).peekable();
    let Some(first) = fatal.peek() else { return Ok(()) };
    let mut status = Status::forbidden(&w.target.resource.id, &subject.name, "");
    status.message = first.text();
    status.reason = first.reason.unwrap_or(status.reason);
    for failure in fatal {
        status = status.cause("", failure.text(), "");
    }
    Err(status)
}

/// What went wrong.
enum Wrong {
    /// The policy's failure, in words.
    Policy(String),
    /// The request cannot go on whatever the policy says.
    Request(Status),
}

/// A policy with one parameter, about one request.
struct One<'a> {
    w: &'a Writing<'a>,
    subject: &'a Subject,
    old: Option<&'a Value>,
    matched: &'a Matched,
    policy: &'a Policy,
    param: &'a Value,
}

impl One<'_> {
    /// Whether the policy's conditions hold.
    async fn applies(&self, object: &Value) -> std::result::Result<bool, Wrong> {
        if self.policy.conditions.is_empty() {
            return Ok(true);
        }
        let a = Attributes { w: self.w, subject: self.subject, object: Some(object), old: self.old };
        let view = View::of(&a, self.matched).await.map_err(Wrong::Request)?;
        let (inputs, param) = (evaluation::inputs(&a, &view), Input::json(Some(self.param)));
        let asker = Asker { w: self.w, subject: self.subject };
        let variables = &self.policy.variables;
        let given = Given { inputs: &inputs, params: &param, asker: &asker, variables };
        match given.hold(&self.policy.conditions) {
            Ok(holds) => Ok(holds),
            Err(_) if !self.policy.fail => Ok(false),
            Err(why) => Err(Wrong::Policy(why)),
        }
    }

    /// The object after one change; `None` where it stays as it is.
    async fn change(&self, mutation: &Mutation, object: &Value) -> std::result::Result<Option<Value>, Wrong> {
        let a = Attributes { w: self.w, subject: self.subject, object: Some(object), old: self.old };
        let view = View::of(&a, self.matched).await.map_err(Wrong::Request)?;
        let Some(seen) = view.object.as_deref() else { return Ok(None) };
        let new = {
            let (inputs, param) = (evaluation::inputs(&a, &view), Input::json(Some(self.param)));
            let asker = Asker { w: self.w, subject: self.subject };
            let variables = &self.policy.variables;
            let given = Given { inputs: &inputs, params: &param, asker: &asker, variables };
            let activation = given.full();
            match mutation {
                Mutation::Apply(expression) => {
                    let configuration =
                        activation.configuration(expression).map_err(|e| Wrong::Policy(e.to_string()))?;
                    Some(applied(seen, configuration, &view).map_err(Wrong::Policy)?)
                }
                Mutation::Patch(expression) => {
                    let operations =
                        activation.operations(expression).map_err(|e| Wrong::Policy(e.to_string()))?;
                    match patch::json(seen, &operations) {
                        Ok(new) => Some(new),
                        // A test that fails is no failure: the patch is not meant for this object.
                        Err(PatchError::TestFailed(_)) => None,
                        Err(why) => return Err(Wrong::Policy(format!("JSON Patch: {why}"))),
                    }
                }
            }
        };
        match new {
            None => Ok(None),
            Some(new) => {
                let settled = webhooks::settle(self.w, new, view.target, self.matched).await;
                settled.map(Some).map_err(Wrong::Request)
            }
        }
    }
}

/// An object with an apply configuration merged into it.
fn applied(object: &Value, mut configuration: Value, view: &View<'_>) -> std::result::Result<Value, String> {
    for key in ["apiVersion", "kind"] {
        configuration[key] = object[key].clone();
    }
    let schema = &view.target.version().schema;
    let wrong = |why: String| format!("error applying patch: {why}");
    typed::check(&configuration, schema, false)
        .map_err(|e| wrong(format!("failed to convert patch object to typed object: {e}")))?;
    let atomics = typed::atomics(&configuration, schema);
    if !atomics.is_empty() {
        return Err(wrong(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomics.join(", ")
        )));
    }
    typed::check(object, schema, true)
        .map_err(|e| wrong(format!("failed to convert original object to typed object: {e}")))?;
    let mut new = object.clone();
    typed::merge(&mut new, &configuration, schema);
    Ok(new)
}
