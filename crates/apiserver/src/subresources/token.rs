//! `serviceaccounts/NAME/token`: TokenRequests.

use std::sync::Arc;

use homeostat_access::authn::service_account::{self, Reference, TokenSpec};
use homeostat_model::gvk::GroupKind;
use homeostat_model::status::Result;
use homeostat_model::{GroupResource, Status, clock};
use homeostat_schema::Schema;
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx, OneVersion};
use http::StatusCode;
use serde_json::{Value, json};

use crate::decode;
use crate::negotiate::Accepted;
use crate::object;
use crate::options::{WriteKind, WriteOptions};
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::verbs::{body, input};

/// Issues a token.
pub(crate) async fn create(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    _: Accepted,
) -> Result<Answer> {
    let form = input(call)?;
    let bytes = body(call).await?;
    let options = WriteOptions::parse(&call.query, WriteKind::Create)?;
    let request = decode::parse(&bytes, form).map_err(Status::bad_request)?.value;
    call.asks(&request);
    let kind = request["kind"].as_str().unwrap_or("TokenRequest");
    if kind != "TokenRequest" || !request.is_object() {
        return Err(Status::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a TokenRequest: no kind \"{kind}\" is registered"
        )));
    }
    let (namespace, name) = (call.info.namespace.as_str(), call.info.path_name.as_str());
    let store = &server.config.store;
    let account = store
        .get(&target.resource.collection, &object::store_name(namespace, name))
        .ok_or_else(|| Status::not_found(&target.resource.id, name))?;
    let given = object::name(&request);
    if !given.is_empty() && given != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let spec = &request["spec"];
    let errors = service_account::validate_request(spec);
    if !errors.is_empty() {
        return Err(Status::invalid(&GroupKind::new("authentication.k8s.io", "TokenRequest"), "", &errors));
    }
    let issuer = &server.authority.authenticator.issuer;
    let audiences: Vec<String> = spec["audiences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let audiences = if audiences.is_empty() { issuer.audiences().to_vec() } else { audiences };
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(3600);
    let mut token = TokenSpec {
        namespace: namespace.to_owned(),
        account: Reference { name: name.to_owned(), uid: account.meta.uid.to_string() },
        audiences: audiences.clone(),
        seconds,
        pod: None,
        secret: None,
        node: None,
    };
    bind(server, &spec["boundObjectRef"], &mut token)?;
    let now = server.config.clock.now();
    let issued = issuer.issue(&token, now).map_err(Status::internal)?;
    let mut answer = json!({
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": &*account.meta.uid,
            "creationTimestamp": clock::seconds(now),
        },
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": spec["boundObjectRef"]},
    });
    track(call, &options, &request, seconds, now, &mut answer)?;
    answer["status"] = json!({"token": issued.token, "expirationTimestamp": clock::seconds(issued.expires)});
    Ok(Answer::value(answer).with_code(StatusCode::CREATED))
}

/// Who asked for what, as on any other object.
fn track(
    call: &Call,
    options: &WriteOptions,
    request: &Value,
    seconds: i64,
    now: homeostat_model::Timestamp,
    answer: &mut Value,
) -> Result<()> {
    let definitions = homeostat_resources::builtin::definitions().clone();
    let schema = Schema::builtin(definitions, "io.k8s.api.authentication.v1.TokenRequest")
        .map_err(Status::internal)?;
    let agent = call.header(http::header::USER_AGENT).unwrap_or_default();
    let (manager, now) = (managed::name(&options.field_manager, agent), clock::seconds(now));
    let mut asked = json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {}});
    asked["spec"] = request["spec"].clone();
    asked["spec"]["expirationSeconds"] = seconds.into();
    let empty = json!({"metadata": {}, "spec": {"audiences": null, "boundObjectRef": null}, "status": {}});
    managed::update(
        &empty,
        &mut asked,
        &ManagerCx {
            schema: &schema,
            api_version: "authentication.k8s.io/v1",
            kind: "TokenRequest",
            manager: &manager,
            subresource: "token",
            now: &now,
            reset: &FieldSet::new(),
            versions: &OneVersion,
        },
    );
    if let Some(entries) = asked["metadata"].get_mut("managedFields").map(Value::take) {
        answer["metadata"]["managedFields"] = entries;
    }
    Ok(())
}

/// Finds the object that the token is to die with.
fn bind(server: &Arc<Server>, reference: &Value, token: &mut TokenSpec) -> Result<()> {
    if reference.is_null() {
        return Ok(());
    }
    let text = |key: &str| reference[key].as_str().unwrap_or_default();
    let (version, kind, name, uid) = (text("apiVersion"), text("kind"), text("name"), text("uid"));
    let (plural, namespace) = match (version, kind) {
        ("v1", "Pod") => ("pods", token.namespace.clone()),
        ("v1", "Secret") => ("secrets", token.namespace.clone()),
        ("v1", "Node") => ("nodes", String::new()),
        _ => {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let id = GroupResource::new("", plural);
    let record = server.config.store.get(plural, &object::store_name(&namespace, name));
    let record = record.ok_or_else(|| Status::not_found(&id, name))?;
    if !uid.is_empty() && uid != &*record.meta.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
             been deleted and then recreated"
        );
        return Err(Status::conflict(&id, name, &why));
    }
    let found = Reference { name: name.to_owned(), uid: record.meta.uid.to_string() };
    match plural {
        "pods" => {
            let pod: Value = serde_json::from_slice(&record.bytes).unwrap_or_default();
            if pod["spec"]["serviceAccountName"].as_str() != Some(&token.account.name) {
                let given = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount \"{}\" to pod running with different serviceaccount name.: \
                     {given}",
                    token.account.name
                )));
            }
            if let Some(node) = pod["spec"]["nodeName"].as_str().filter(|n| !n.is_empty())
                && let Some(record) = server.config.store.get("nodes", node)
            {
                token.node = Some(Reference { name: node.to_owned(), uid: record.meta.uid.to_string() });
            }
            token.pod = Some(found);
        }
        "secrets" => token.secret = Some(found),
        _ => token.node = Some(found),
    }
    Ok(())
}
