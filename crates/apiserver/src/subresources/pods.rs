//! What only pods have: binding to a node, eviction, and what concerns their processes.

mod disruption;
mod disruption_target;
mod process;

pub(crate) use process::{connect, log};

use std::sync::Arc;

use homeostat_model::status::Result;
use homeostat_model::{GroupResource, Status, field};
use http::StatusCode;
use serde_json::{Value, json};

use crate::negotiate::Accepted;
use crate::object;
use crate::options::{DeleteOptions, WriteKind, WriteOptions};
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::verbs::{self, body, input, writing};
use crate::write::Proposal;

fn success(code: StatusCode) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16(),
    });
    Answer::value(status).with_code(code)
}

/// Changes a pod's conditions; where there are none, an empty list.
fn with_conditions<R>(pod: &mut Value, change: impl FnOnce(&mut Vec<Value>) -> R) -> R {
    let place = &mut pod["status"]["conditions"];
    let mut conditions = match place.take() {
        Value::Array(conditions) => conditions,
        _ => Vec::new(),
    };
    let result = change(&mut conditions);
    *place = conditions.into();
    result
}

/// Reads a body of a small kind; its types are looked at where they are used.
async fn read(call: &mut Call) -> Result<Value> {
    let form = input(call)?;
    let bytes = body(call).await?;
    let parsed = crate::decode::parse(&bytes, form).map_err(Status::bad_request)?;
    if parsed.value.is_object() {
        call.asks(&parsed.value);
        Ok(parsed.value)
    } else {
        Err(Status::bad_request("the body is not an object"))
    }
}

/// `POST pods/NAME/binding`, and `POST bindings`.
pub(crate) async fn bind(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    _: Accepted,
) -> Result<Answer> {
    let options = WriteOptions::parse(&call.query, WriteKind::Create)?;
    let binding = read(call).await?;
    let name = match call.info.path_name.as_str() {
        "" => object::name(&binding).to_owned(),
        name => name.to_owned(),
    };
    let given = object::name(&binding);
    if !given.is_empty() && given != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    let mut errors = Vec::new();
    let kind = binding["target"]["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "Node") {
        errors.push(field::Error::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if node.is_empty() {
        errors.push(field::Error::required("target.name", ""));
    }
    if !errors.is_empty() {
        // The reference has no reason for these.
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        return Err(Status::new(500, "", text));
    }
    let mut w = writing(server, target, call, "binding", &options);
    let id = GroupResource::new("", "pods/binding");
    let pod_uid = object::uid(&binding).to_owned();
    let now = homeostat_model::clock::seconds(server.config.clock.now());
    let mut attempt = |live: &Value, _: &mut Vec<String>| {
        if !pod_uid.is_empty() && pod_uid != object::uid(live) {
            let why = format!(
                "Precondition failed: UID in precondition: {pod_uid}, UID in object meta: {}",
                object::uid(live)
            );
            return Err(Status::conflict(&id, &name, &why));
        }
        if object::deleting(live) {
            return Err(Status::conflict(
                &id,
                &name,
                &format!("pod {name} is being deleted, cannot be assigned to a host"),
            ));
        }
        if let Some(host) = live["spec"]["nodeName"].as_str().filter(|h| !h.is_empty()) {
            return Err(Status::conflict(
                &id,
                &name,
                &format!("pod {name} is already assigned to node \"{host}\""),
            ));
        }
        if live["spec"]["schedulingGates"].as_array().is_some_and(|g| !g.is_empty()) {
            let why = format!("pod {name} has non-empty .spec.schedulingGates");
            return Err(Status::conflict(&id, &name, &why));
        }
        let mut new = live.clone();
        new["spec"]["nodeName"] = node.as_str().into();
        for (k, v) in binding["metadata"]["annotations"].as_object().into_iter().flatten() {
            new["metadata"]["annotations"][k.as_str()] = v.clone();
        }
        for (k, v) in binding["metadata"]["labels"].as_object().into_iter().flatten() {
            new["metadata"]["labels"][k.as_str()] = v.clone();
        }
        let condition = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
        });
        with_conditions(&mut new, |conditions| {
            match conditions.iter_mut().find(|c| c["type"] == "PodScheduled") {
                Some(c) => *c = condition,
                None => conditions.push(condition),
            }
        });
        // What was only nominated has come about, there or elsewhere (ClearingNominatedNodeNameAfterBinding).
        if let Some(status) = new["status"].as_object_mut() {
            status.remove("nominatedNodeName");
        }
        Ok(Proposal { object: new, applied: true, uid: None })
    };
    w.update(&name, 16, &mut attempt).await?;
    Ok(success(StatusCode::CREATED))
}

/// `POST pods/NAME/eviction`: a delete that disruption budgets may refuse.
pub(crate) async fn evict(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    _: Accepted,
) -> Result<Answer> {
    let dry = WriteOptions::parse(&call.query, WriteKind::Create)?.dry_run;
    let eviction = read(call).await?;
    let name = call.info.path_name.clone();
    let given = object::name(&eviction);
    if !given.is_empty() && given != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::from_value(&eviction["deleteOptions"])?;
    options.dry_run |= dry;
    disruption::allow(server, target, call, &name, options.dry_run).await?;
    if !options.dry_run {
        disruption_target::mark(server, target, call, &name, &mut options).await?;
    }
    verbs::delete::evict(server, target, call, &name, &options).await?;
    Ok(success(StatusCode::CREATED))
}
