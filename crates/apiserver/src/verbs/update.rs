//! `update`: PUT of an object, or of its status.

use std::sync::Arc;

use homeostat_model::status::Result;
use http::StatusCode;

use super::{answer, body, input, writing};
use crate::decode;
use crate::negotiate::Accepted;
use crate::object;
use crate::options::{WriteKind, WriteOptions};
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::write::{Proposal, check_name};

/// Answers an update; `subresource` is empty or `status` (or another that holds the whole object).
pub(crate) async fn update(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    accepted: Accepted,
    subresource: &str,
) -> Result<Answer> {
    let input = input(call)?;
    let bytes = body(call).await?;
    let options = WriteOptions::parse(&call.query, WriteKind::Update)?;
    let mut w = writing(server, target, call, subresource, &options);
    let table = server.registry.table();
    let new = decode::object(&table, target, &bytes, input, options.field_validation, &mut w.warnings)?;
    call.asks(&new);
    let name = &call.info.path_name;
    check_name(&new, name)?;
    let mut code = StatusCode::OK;
    let may_create = subresource.is_empty() && target.resource.strategy.create_on_update();
    let outcome = if may_create && w.live(name).is_none() {
        code = StatusCode::CREATED;
        w.create(new, false).await?
    } else {
        let uid = object::uid(&new).to_owned();
        let mut attempt = |_: &serde_json::Value, _: &mut Vec<String>| {
            Ok(Proposal { object: new.clone(), applied: false, uid: Some(uid.clone()) })
        };
        w.update(name, usize::MAX, &mut attempt).await?
    };
    answer(server, target, call, accepted, code, &outcome).await
}
