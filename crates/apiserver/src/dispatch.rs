//! From a request on a resource to its handler: which resource, which verb, which subresource, and what the server
//! says where there is none.
//!
//! Built-in and custom resources differ in how they refuse, as they do in the reference, not in what they serve.

use std::sync::{Arc, PoisonError};

use homeostat_model::status::Result;
use homeostat_model::{GroupResource, Status};
use http::Method;

use crate::negotiate::Accepted;
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::{computed, reviews, subresources, verbs};

/// Serves a request on a resource.
pub(crate) async fn resource(
    server: &Arc<Server>,
    call: &mut Call,
    accepted: Result<Accepted>,
) -> Result<Answer> {
    let table = server.registry.table();
    let i = &call.info;
    let Some(target) = table.target(&i.group, &i.version, &i.resource) else {
        if table.built_in_group(&i.group, &i.version) {
            return Err(Status::no_such_resource());
        }
        return Ok(Answer::page_not_found());
    };
    drop(table);
    let built_in = target.built_in();
    let in_namespace = !i.namespace.is_empty();
    if in_namespace && !target.resource.namespaced && &*target.resource.id.resource != "namespaces" {
        return if built_in { Err(Status::no_such_resource()) } else { Ok(Answer::page_not_found()) };
    }
    let listing = matches!(i.verb.as_str(), "list" | "watch");
    if !in_namespace && target.resource.namespaced && !listing {
        return if built_in { Err(Status::method_not_allowed()) } else { Ok(Answer::page_not_found()) };
    }
    if let Some(text) = &target.version().deprecation {
        call.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.clone());
        if let Some(trail) = &call.trail {
            trail.annotate("k8s.io/deprecated", "true");
        }
    }
    if !i.subresource.is_empty() {
        return subresource(server, &target, call, accepted).await;
    }
    if built_in {
        check_built_in(&target, call)?;
    } else {
        check_custom(&target, call)?;
    }
    if built_in && reviews::is_review(&target) {
        return reviews::create(server, &target, call).await;
    }
    if let Some(source) = server.computed.of(&target.resource.id) {
        return computed::serve(server, source, &target, call, accepted?);
    }
    verb(server, &target, call, accepted?).await
}

fn check_built_in(target: &Target, call: &Call) -> Result<()> {
    let i = &call.info;
    let item = !i.path_name.is_empty();
    let fits = match call.parts.method {
        Method::POST => !item,
        Method::GET => true,
        Method::PUT | Method::PATCH => item,
        Method::DELETE => true,
        _ => false,
    };
    if fits && target.version().verbs.contains(&i.verb.as_str()) {
        Ok(())
    } else {
        Err(Status::method_not_allowed())
    }
}

fn check_custom(target: &Target, call: &Call) -> Result<()> {
    let i = &call.info;
    let id = &target.resource.id;
    if !target.version().verbs.contains(&i.verb.as_str()) {
        return Err(unsupported(id, &i.verb));
    }
    if matches!(i.verb.as_str(), "update" | "patch") && i.path_name.is_empty() {
        return Err(Status::bad_request("name must be provided"));
    }
    Ok(())
}

/// The 405 of custom resources.
fn unsupported(id: &GroupResource, verb: &str) -> Status {
    let text = format!("{verb} is not supported on resources of kind \"{id}\"");
    let mut s = Status::new(405, "MethodNotAllowed", text);
    let details = s.details.get_or_insert_default();
    details.group = id.group.to_string();
    details.kind = id.resource.to_string();
    s
}

async fn verb(server: &Arc<Server>, target: &Target, call: &mut Call, accepted: Accepted) -> Result<Answer> {
    match call.info.verb.as_str() {
        "get" => verbs::get::get(server, target, call, accepted).await,
        "list" => verbs::list::list(server, target, call, accepted).await,
        "watch" => verbs::watch::watch(server, target, call, accepted).await,
        "create" => verbs::create::create(server, target, call, accepted).await,
        "update" => verbs::update::update(server, target, call, accepted, "").await,
        "patch" => verbs::patch::patch(server, target, call, accepted, "").await,
        "delete" => verbs::delete::delete(server, target, call, accepted).await,
        "deletecollection" => verbs::delete::collection(server, target, call, accepted).await,
        _ => Err(Status::method_not_allowed()),
    }
}

async fn subresource(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    accepted: Result<Accepted>,
) -> Result<Answer> {
    let i = &call.info;
    let id = target.resource.id.clone();
    let Some(sub) = target.version().subresource(&i.subresource).cloned() else {
        return Err(match target.built_in() {
            true => Status::no_such_resource(),
            false => Status::not_found(&id, &i.path_name),
        });
    };
    let head = call.parts.method == Method::HEAD && target.built_in();
    if head || !sub.verbs.contains(&i.verb.as_str()) {
        return Err(match target.built_in() {
            true => Status::method_not_allowed(),
            false => unsupported(&id, &i.verb),
        });
    }
    let accepted = match sub.name.as_str() {
        "log" => accepted.unwrap_or(Accepted::JSON),
        _ => accepted?,
    };
    subresources::serve(server, target, &sub, call, accepted).await
}
