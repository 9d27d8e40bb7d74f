//! The verbs on resources, and what they share: reading bodies, the writer, the answer with an object.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod patch;
pub(crate) mod update;
pub(crate) mod watch;

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use homeostat_model::status::Result;
use http::{StatusCode, header};
use serde_json::{Map, Value};

use crate::negotiate::{self, Accepted, Input, View};
use crate::options::WriteOptions;
use crate::read;
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::write::{Outcome, Writing};

/// Reads the request's body.
pub(crate) async fn body(call: &mut Call) -> Result<Bytes> {
    let body = call.body.get_mut().unwrap_or_else(PoisonError::into_inner).take();
    match body {
        Some(body) => body.read().await,
        None => Ok(Bytes::new()),
    }
}

/// How the body of a create, update or delete is written.
pub(crate) fn input(call: &Call) -> Result<Input> {
    negotiate::input(call.header(header::CONTENT_TYPE))
}

/// The writer of a request.
pub(crate) fn writing<'a>(
    server: &'a Arc<Server>,
    target: &'a Target,
    call: &'a Call,
    subresource: &'a str,
    options: &WriteOptions,
) -> Writing<'a> {
    let agent = call.header(header::USER_AGENT).unwrap_or_default();
    Writing {
        server,
        target,
        user: &call.user,
        namespace: if target.resource.namespaced { &call.info.namespace } else { "" },
        subresource,
        manager: homeostat_schema::managed::name(&options.field_manager, agent),
        dry_run: options.dry_run,
        options: told(call),
        warnings: Vec::new(),
        sink: Some(&call.warnings),
        trail: call.trail.as_ref(),
    }
}

/// The answer with an object, in the view asked for.
pub(crate) async fn answer(
    server: &Server,
    target: &Target,
    call: &Call,
    accepted: Accepted,
    code: StatusCode,
    outcome: &Outcome,
) -> Result<Answer> {
    outcome.prefetch(server, target).await?;
    if accepted.view == View::Object {
        return Ok(Answer::json(outcome.bytes(target)).with_code(code));
    }
    if let (View::Metadata(version), Outcome::Stored(record)) = (accepted.view, outcome)
        && read::has_plain_metadata(record, target)
    {
        return Ok(Answer::json(read::partial(&record.bytes, version)).with_code(code));
    }
    let include = call.query.get("includeObject").unwrap_or_default();
    let value =
        read::single(&outcome.value(target), target, accepted.view, include, server.config.clock.now())?;
    Ok(Answer::value(value).with_code(code))
}

/// The options of a create or update, as webhooks are told them.
fn told(call: &Call) -> Value {
    let mut out = Map::new();
    let dry: Vec<&str> = call.query.all("dryRun").collect();
    if !dry.is_empty() {
        out.insert("dryRun".into(), dry.into());
    }
    for key in ["fieldManager", "fieldValidation"] {
        if let Some(v) = call.query.get(key) {
            out.insert(key.into(), v.into());
        }
    }
    if out.is_empty() { Value::Null } else { Value::Object(out) }
}
