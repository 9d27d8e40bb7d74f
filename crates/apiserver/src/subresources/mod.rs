//! Subresources: `status` and others that hold the whole object go through the common verbs; the rest have a file
//! each.

mod pods;
mod scale;
mod token;

use std::sync::Arc;

use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_resources::Subresource;

use crate::negotiate::Accepted;
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::verbs;

/// Serves a subresource that the version has, by a verb that it has.
pub(crate) async fn serve(
    server: &Arc<Server>,
    target: &Target,
    sub: &Subresource,
    call: &mut Call,
    accepted: Accepted,
) -> Result<Answer> {
    let resource = &*target.resource.id.resource;
    match (resource, sub.name.as_str(), call.info.verb.as_str()) {
        (_, "scale", _) => scale::serve(server, target, sub, call, accepted).await,
        ("pods", "binding", "create") => pods::bind(server, target, call, accepted).await,
        ("pods", "eviction", "create") => pods::evict(server, target, call, accepted).await,
        ("pods", "log", "get") => pods::log(server, target, call),
        ("pods", what @ ("exec" | "attach" | "portforward" | "proxy"), _) => {
            pods::connect(server, target, call, what)
        }
        ("nodes" | "services", "proxy", _) => {
            let why = format!("the network of {resource} is simulated: there is nothing to proxy to");
            Err(Status::new(503, "ServiceUnavailable", why))
        }
        ("serviceaccounts", "token", "create") => token::create(server, target, call, accepted).await,
        // Whatever else is written through a subresource is the object itself; the strategy knows which part.
        (_, _, "get") => verbs::get::get(server, target, call, accepted).await,
        (_, name, "update") => verbs::update::update(server, target, call, accepted, name).await,
        (_, name, "patch") => verbs::patch::patch(server, target, call, accepted, name).await,
        _ => Err(Status::method_not_allowed()),
    }
}

/// Binds a pod, for the resource `bindings`.
pub(crate) async fn bind(server: &Arc<Server>, pods: &Target, call: &mut Call) -> Result<Answer> {
    pods::bind(server, pods, call, Accepted::JSON).await
}
