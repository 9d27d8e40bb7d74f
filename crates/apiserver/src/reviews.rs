//! Reviews: resources that are asked, not stored. What they answer is decided by `access`.

use std::sync::Arc;

use homeostat_access::review;
use homeostat_model::status::Result;
use homeostat_model::{Status, clock};
use http::StatusCode;

use crate::authority;
use crate::decode;
use crate::options::{WriteKind, WriteOptions};
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::subresources;
use crate::verbs::{body, input, writing};

/// Whether a resource is only ever asked.
pub(crate) fn is_review(target: &Target) -> bool {
    target.version().verbs == ["create"]
}

/// Answers a review.
pub(crate) async fn create(server: &Arc<Server>, target: &Target, call: &mut Call) -> Result<Answer> {
    let id = &target.resource.id;
    if id.group.is_empty() && &*id.resource == "bindings" {
        let pods = server.registry.table().named("", "pods").ok_or_else(Status::no_such_resource)?;
        return subresources::bind(server, &pods, call).await;
    }
    let form = input(call)?;
    let bytes = body(call).await?;
    let options = WriteOptions::parse(&call.query, WriteKind::Create)?;
    let mut w = writing(server, target, call, "", &options);
    let table = server.registry.table();
    let mut object = decode::object(&table, target, &bytes, form, options.field_validation, &mut w.warnings)?;
    call.asks(&object);
    let empty = w.empty();
    w.track(&empty, &mut object);
    drop(w);
    let user = &call.user;
    let policy = server.authority.policy(server.config.store.as_ref());
    let now = server.config.clock.now();
    let answer = match &*id.resource {
        "subjectaccessreviews" => review::subject_access_review(object, &policy)?,
        "localsubjectaccessreviews" => {
            review::local_subject_access_review(object, &call.info.namespace, &policy)?
        }
        "selfsubjectaccessreviews" => review::self_subject_access_review(object, user, &policy)?,
        "selfsubjectrulesreviews" => review::self_subject_rules_review(&object, user, &policy)?,
        "selfsubjectreviews" => review::self_subject_review(object, user, &clock::seconds(now)),
        "tokenreviews" => {
            let lookup = |resource: &str, namespace: &str, name: &str| {
                authority::bound(server, resource, namespace, name)
            };
            let verify = |token: &str, audiences: &[String]| {
                server.authority.authenticator.token(token, audiences, now, &lookup)
            };
            review::token_review(object, verify)?
        }
        _ => return Err(Status::method_not_allowed()),
    };
    Ok(Answer::value(answer).with_code(StatusCode::CREATED))
}
