//! Admission: what is added to a write, and who may veto it, between authorization and validation.
//!
//! Built-in plugins are functions called in a fixed order; [`mutate`] and [`validate`] are also where policies and, after
//! them, webhooks join. Which of both are for a request is decided in [`matching`], what their expressions come to in
//! [`evaluation`]. Invariant: mutation ends before validation begins, and validation changes nothing.

mod access;
mod evaluation;
mod kept;
mod limits;
mod matching;
mod namespace;
mod pod;
pub(crate) mod policies;
mod reinvocation;
mod request;
mod storage;
mod webhooks;

use homeostat_model::status::Result;
use homeostat_resources::builtin::admit;
use serde_json::Value;

use crate::write::Writing;
use matching::Attributes;
use reinvocation::Reinvocation;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// What admission looks at besides the objects.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) operation: Operation,
    /// Name of the object; empty where it is still to be generated.
    pub(crate) name: String,
}

/// Lets plugins change a new or changed object; all of them once more, where a policy or webhook has changed it.
pub(crate) async fn mutate(
    w: &Writing<'_>,
    subject: &Subject,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<()> {
    let mut rounds = Reinvocation::default();
    loop {
        namespace::check(w, subject)?;
        storage::default_class(w, subject, object);
        storage::protect(w, subject, object);
        taint(w, subject, object);
        pod::admit(w, subject, object, old)?;
        limits::defaults(w, subject, object);
        policies::mutate(w, subject, object, old, &mut rounds).await?;
        webhooks::mutate(w, subject, object, old, &mut rounds).await?;
        if rounds.again || !rounds.wanted {
            return Ok(());
        }
        rounds.again = true;
    }
}

pub(crate) use limits::charge;
pub(crate) use webhooks::{Hooks, any_mutating};

/// TaintNodesByCondition: a new node takes no pods before its controller has seen it ready.
fn taint(w: &Writing<'_>, subject: &Subject, object: &mut Value) {
    let id = &w.target.resource.id;
    let nodes = id.group.is_empty() && &*id.resource == "nodes" && subject.operation == Operation::Create;
    if nodes && w.subresource.is_empty() && w.server.config.admits("TaintNodesByCondition") {
        admit::taint_new_node(object);
    }
}

/// Writes who asks into objects that say so.
pub(crate) fn requester(w: &Writing<'_>, object: &mut Value) {
    access::requester(w, object);
}

/// Lets plugins veto a write. `object` is absent on deletes, `old` on creates.
pub(crate) async fn validate(
    w: &Writing<'_>,
    subject: &Subject,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<()> {
    match object {
        None => namespace::check(w, subject)?,
        Some(object) => {
            limits::check(w, subject, object)?;
            access::escalation(w, subject, object, old)?;
            if matching::is_exempt(w) {
                policies::authorize(w, object, old)?;
            }
        }
    }
    let a = Attributes { w, subject, object, old };
    policies::validate(&a).await?;
    webhooks::validate(&a).await
}
