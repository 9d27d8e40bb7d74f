//! Evaluating expressions about a write: its variables, who answers for the authorizer, and conditions.

use homeostat_access::{Attributes as Wish, User};
use homeostat_schema::cel::{
    Activation, Answer, Authorizer, Failure, Input, Inputs, Program, Question, RequestResource,
};
use serde_json::{Map, Value, json};

use super::Subject;
use super::matching::{Attributes, View};
use super::request::request;
use crate::authority;
use crate::write::Writing;

/// What the expressions of one policy and binding may cost together, for one parameter.
const BUDGET: u64 = 10_000_000;
/// What its conditions may cost.
const CONDITIONS: u64 = BUDGET / 4;

/// The variables that every expression about a write has.
pub(super) fn inputs<'a>(a: &'a Attributes<'a>, view: &'a View<'a>) -> Inputs<'a> {
    Inputs {
        object: Input::json(view.object.as_deref()),
        old_object: Input::json(view.old.as_deref()),
        request: Input::lazy(|| request(a, view.target)),
        namespace: Input::timed(|| namespace(a.w)),
    }
}

/// The namespace that an object is in, as far as expressions see it; null where it is in none.
fn namespace(w: &Writing<'_>) -> Value {
    const SHOWN: [&str; 12] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let id = &w.target.resource.id;
    // A namespace is not in itself.
    if w.namespace.is_empty() || (id.group.is_empty() && &*id.resource == "namespaces") {
        return Value::Null;
    }
    let Some(record) = w.server.config.store.get("namespaces", w.namespace) else { return Value::Null };
    let mut v: Value = serde_json::from_slice(&record.bytes).unwrap_or_default();
    let metadata: Map<String, Value> = match v["metadata"].take() {
        Value::Object(m) => m.into_iter().filter(|(k, _)| SHOWN.contains(&k.as_str())).collect(),
        _ => Map::new(),
    };
    json!({"metadata": metadata, "spec": v["spec"].take(), "status": v["status"].take()})
}

/// Answers what users may do, for `authorizer`.
pub(super) struct Asker<'a> {
    pub(super) w: &'a Writing<'a>,
    pub(super) subject: &'a Subject,
}

impl Authorizer for Asker<'_> {
    fn check(&self, q: &Question<'_>) -> Answer {
        let account = q.service_account.map(|(namespace, name)| User::service_account(namespace, name, ""));
        let user = account.as_ref().unwrap_or(self.w.user);
        let wish = match q.path {
            Some(path) => Wish::path(user, q.verb, path),
            None => Wish::resource(user, q.verb, q.group, q.resource)
                .namespace(q.namespace)
                .name(q.name)
                .subresource(q.subresource),
        };
        let decision = authority::decide(self.w.server, &wish);
        Answer { allowed: decision.allowed, reason: decision.reason.to_string(), error: None }
    }

    fn request_resource(&self) -> RequestResource {
        RequestResource {
            group: self.w.target.gv().group.to_string(),
            resource: self.w.target.resource.id.resource.to_string(),
            subresource: self.w.subresource.to_owned(),
            namespace: self.w.namespace.to_owned(),
            name: self.subject.name.clone(),
        }
    }
}

/// What the expressions of one policy or webhook are evaluated over.
pub(super) struct Given<'a> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) params: &'a Input<'a>,
    pub(super) asker: &'a Asker<'a>,
    pub(super) variables: &'a [(String, Result<Program, String>)],
}

impl<'a> Given<'a> {
    /// For validations and mutations.
    pub(super) fn full(&self) -> Activation<'a> {
        Activation::new(self.inputs, self.params, Some(self.asker), self.variables, BUDGET)
    }

    /// For what is only said: it has no authorizer, whatever its environment knows.
    pub(super) fn telling(&self) -> Activation<'a> {
        Activation::new(self.inputs, self.params, None, self.variables, BUDGET)
    }

    /// Whether all conditions hold. One that doesn't decides, however others fail. Conditions see no namespace, though
    /// its name compiles.
    pub(super) fn hold(&self, conditions: &[Result<Program, String>]) -> Result<bool, String> {
        if conditions.is_empty() {
            return Ok(true);
        }
        let activation =
            Activation::new(self.inputs, self.params, Some(self.asker), self.variables, CONDITIONS)
                .without_namespace();
        let mut errors: Vec<String> = Vec::new();
        for condition in conditions {
            match activation.holds(condition) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(spent @ Failure::Budget) => return Err(spent.to_string()),
                Err(Failure::Error(why)) if !errors.contains(&why) => errors.push(why),
                Err(Failure::Error(_)) => {}
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}
