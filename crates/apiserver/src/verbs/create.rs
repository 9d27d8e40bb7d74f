//! `create`: POST of an object to a collection.

use std::sync::Arc;

use homeostat_model::status::Result;
use http::StatusCode;

use super::{answer, body, input, writing};
use crate::decode;
use crate::negotiate::Accepted;
use crate::options::{WriteKind, WriteOptions};
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};

/// Answers a create.
pub(crate) async fn create(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    accepted: Accepted,
) -> Result<Answer> {
    let input = input(call)?;
    let bytes = body(call).await?;
    let options = WriteOptions::parse(&call.query, WriteKind::Create)?;
    let mut w = writing(server, target, call, "", &options);
    let table = server.registry.table();
    let object = decode::object(&table, target, &bytes, input, options.field_validation, &mut w.warnings)?;
    call.asks(&object);
    let outcome = w.create(object, false).await?;
    answer(server, target, call, accepted, StatusCode::CREATED, &outcome).await
}
