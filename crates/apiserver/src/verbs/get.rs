//! `get` of one object.

use homeostat_model::Status;
use homeostat_model::status::Result;

use crate::convert;
use crate::negotiate::{Accepted, View};
use crate::object::store_name;
use crate::options::GetOptions;
use crate::read;
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};

/// Answers a get.
pub(crate) async fn get(server: &Server, target: &Target, call: &Call, accepted: Accepted) -> Result<Answer> {
    let options = GetOptions::parse(&call.query);
    read::wait_for(server, &options.resource_version).await?;
    let (ns, name) = (&call.info.namespace, &call.info.path_name);
    let ns = if target.resource.namespaced { ns.as_str() } else { "" };
    let record = server
        .config
        .store
        .get(&target.resource.collection, &store_name(ns, name))
        .ok_or_else(|| Status::not_found(&target.resource.id, name))?;
    convert::prefetch(server, target, &[&record], false).await?;
    if accepted.view == View::Object {
        return Ok(Answer::json(read::bytes(&record, target)));
    }
    let include = call.query.get("includeObject").unwrap_or_default();
    let value = read::value(&record, target);
    read::single(&value, target, accepted.view, include, server.config.clock.now()).map(Answer::value)
}
