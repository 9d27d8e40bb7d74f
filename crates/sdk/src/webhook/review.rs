//! Reviews: what the API server posts, and what it gets back.
//!
//! `admission.k8s.io/v1` AdmissionReview and `apiextensions.k8s.io/v1` ConversionReview. The answer to anything that
//! can be read at all is a review again; what can't is for the HTTP server to refuse.
//! Invariant: a panic of whoever answers is a denial of that one request, with code 500.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::overlay::overlay;
use super::{Admission, Defaulter, Denied, Operation, Role, Target, Validator, Webhook};
use crate::apply::strip_nulls;
use crate::object::Object;
use crate::panics;

/// The inside of an AdmissionReview, as far as it is looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    operation: Operation,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    user_info: k8s_openapi::api::authentication::v1::UserInfo,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    options: Value,
}

/// Answers a whole review, and whether that was a panic's answer.
pub(super) async fn answer(webhook: &Webhook, mut review: Value, client: Option<Client>) -> (Value, bool) {
    let request = review.get_mut("request").map(Value::take).unwrap_or_default();
    let uid = request.get("uid").cloned().unwrap_or_default();
    let work = AssertUnwindSafe(async { (webhook.handler)(request, client).await }).catch_unwind();
    let work = work.await;
    let panicked = work.is_err();
    let response = work.unwrap_or_else(|panic| {
        let text = panics::text(&*panic);
        tracing::error!(path = webhook.path(), "webhook panicked: {text}");
        let why = format!("panic: {text} [recovered]");
        match webhook.role {
            Role::Converting => json!({"uid": uid, "convertedObjects": [],
                "result": {"status": "Failure", "message": why}}),
            Role::Mutating | Role::Validating => {
                json!({"uid": uid, "allowed": false, "status": Denied::failure(500, &why)})
            }
        }
    });
    let (api, kind) = match webhook.role {
        Role::Converting => ("apiextensions.k8s.io/v1", "ConversionReview"),
        Role::Mutating | Role::Validating => ("admission.k8s.io/v1", "AdmissionReview"),
    };
    (json!({"apiVersion": api, "kind": kind, "response": response}), panicked)
}

fn open(request: Value, client: Option<Client>) -> Result<(Request, Admission), Value> {
    let uid = request.get("uid").cloned().unwrap_or_default();
    let mut request: Request = serde_json::from_value(request).map_err(|e| {
        let why = format!("not an AdmissionReview's request: {e}");
        json!({"uid": uid, "allowed": false, "status": Denied::failure(400, &why)})
    })?;
    let some = |text: &mut String| Some(std::mem::take(text)).filter(|t| !t.is_empty());
    let mut cx = Admission::new(request.operation);
    cx.uid = request.uid.clone();
    cx.name = std::mem::take(&mut request.name);
    cx.namespace = some(&mut request.namespace);
    cx.subresource = some(&mut request.sub_resource);
    cx.user = std::mem::take(&mut request.user_info);
    cx.dry_run = request.dry_run.unwrap_or(false);
    cx.options = request.options.take();
    cx.client = client;
    Ok((request, cx))
}

/// The response to a verdict.
fn response(cx: &Admission, target: &Target, verdict: Result<Option<Value>, Denied>) -> Value {
    let mut response = json!({"uid": cx.uid, "allowed": verdict.is_ok()});
    match verdict {
        Ok(Some(patch)) => {
            response["patchType"] = "JSONPatch".into();
            response["patch"] = STANDARD.encode(patch.to_string()).into();
        }
        Ok(None) => {}
        Err(denied) => response["status"] = denied.status(target, &cx.name),
    }
    let warnings = cx.warnings();
    if !warnings.is_empty() {
        response["warnings"] = warnings.into();
    }
    response
}

fn read<K: Object>(object: &Value) -> Result<K, Denied> {
    K::deserialize(object).map_err(|e| {
        let status = kube::core::Status::failure(
            &format!("not a {} of {}: {e}", K::kind(&()), K::api_version(&())),
            "BadRequest",
        );
        kube::Error::Api(status.with_code(400).boxed()).into()
    })
}

pub(super) async fn defaulting<D: Defaulter>(
    defaulter: Arc<D>,
    target: Target,
    request: Value,
    client: Option<Client>,
) -> Value {
    let (request, cx) = match open(request, client) {
        Ok(opened) => opened,
        Err(refusal) => return refusal,
    };
    let verdict = async {
        // Nothing is there to be defaulted where something goes.
        if request.object.is_null() {
            return Ok(None);
        }
        let mut object: D::Resource = read(&request.object)?;
        let before = serde_json::to_value(&object).map_err(crate::Error::from)?;
        defaulter.default(&mut object, &cx).await?;
        let after = serde_json::to_value(&object).map_err(crate::Error::from)?;
        Ok(patch(&request.object, before, after))
    };
    let verdict = verdict.await;
    response(&cx, &target, verdict)
}

/// The JSON patch that makes the change from `before` to `after` in `original`; `None` where there is none.
fn patch(original: &Value, mut before: Value, mut after: Value) -> Option<Value> {
    strip_nulls(&mut before);
    strip_nulls(&mut after);
    let mut wanted = original.clone();
    overlay(&mut wanted, &before, &after);
    let patch = json_patch::diff(original, &wanted);
    if patch.0.is_empty() { None } else { serde_json::to_value(patch).ok() }
}

pub(super) async fn validating<V: Validator>(
    validator: Arc<V>,
    target: Target,
    request: Value,
    client: Option<Client>,
) -> Value {
    let (request, cx) = match open(request, client) {
        Ok(opened) => opened,
        Err(refusal) => return refusal,
    };
    let verdict = async {
        match cx.operation {
            Operation::Create => validator.validate_create(&read(&request.object)?, &cx).await,
            Operation::Update => {
                let (old, new) = (read(&request.old_object)?, read(&request.object)?);
                validator.validate_update(&old, &new, &cx).await
            }
            Operation::Delete => validator.validate_delete(&read(&request.old_object)?, &cx).await,
            Operation::Connect => Ok(()),
        }
    };
    let verdict = verdict.await.map(|()| None);
    response(&cx, &target, verdict)
}

#[cfg(test)]
mod tests {
    use homeostat_model::field;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// Sets `immutable`, and does as the name says.
    struct Rules;

    impl Defaulter for Rules {
        type Resource = ConfigMap;

        async fn default(&self, map: &mut ConfigMap, cx: &Admission) -> Result<(), Denied> {
            assert_ne!(cx.name, "panics", "as it should");
            map.immutable.get_or_insert(cx.dry_run);
            map.data
                .get_or_insert_default()
                .insert("by".into(), cx.user.username.clone().unwrap_or_default());
            Ok(())
        }
    }

    impl Validator for Rules {
        type Resource = ConfigMap;

        const OPERATIONS: &'static [Operation] = &[Operation::Create, Operation::Update, Operation::Delete];

        async fn validate_create(&self, map: &ConfigMap, cx: &Admission) -> Result<(), Denied> {
            cx.warn("seen");
            match map.data.as_ref().and_then(|d| d.get("replicas")) {
                Some(n) => {
                    Denied::unless_valid(vec![field::Error::invalid("data.replicas", n.as_str(), "no")])
                }
                None => Ok(()),
            }
        }

        async fn validate_update(
            &self,
            old: &ConfigMap,
            new: &ConfigMap,
            _: &Admission,
        ) -> Result<(), Denied> {
            if old.data == new.data { Ok(()) } else { Err(Denied::new("never")) }
        }

        async fn validate_delete(&self, _: &ConfigMap, _: &Admission) -> Result<(), Denied> {
            Err(crate::Error::msg("it stays").into())
        }
    }

    async fn ask(webhook: Webhook, request: Value) -> Value {
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let answer = webhook.answer(review, None).await;
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["response"]["uid"], "u");
        answer["response"].clone()
    }

    fn request(operation: &str, name: &str, old: Value, object: Value) -> Value {
        json!({"uid": "u", "operation": operation, "name": name, "namespace": "n", "dryRun": true,
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "userInfo": {"username": "jane"},
            "oldObject": old, "object": object, "options": {"kind": "CreateOptions"}})
    }

    fn map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "later": 1}, "data": data})
    }

    #[tokio::test]
    async fn defaults_come_back_as_a_patch_of_what_changed() {
        let ask = async |data| {
            let mut response =
                ask(Webhook::defaulting(Rules), request("CREATE", "a", Value::Null, map(data))).await;
            let patch = STANDARD.decode(response["patch"].take().as_str().unwrap_or_default()).unwrap();
            response["patch"] = serde_json::from_slice(&patch).unwrap_or_default();
            response
        };
        assert_eq!(
            ask(json!({"x": "1"})).await,
            json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": [
                {"op": "add", "path": "/data/by", "value": "jane"},
                {"op": "add", "path": "/immutable", "value": true},
            ]})
        );
    }

    #[tokio::test]
    async fn what_is_complete_is_left_alone() {
        let mut object = map(json!({"by": "jane"}));
        object["immutable"] = true.into();
        let response = ask(Webhook::defaulting(Rules), request("UPDATE", "a", object.clone(), object)).await;
        assert_eq!(response, json!({"uid": "u", "allowed": true}));
    }

    #[tokio::test]
    async fn verdicts_say_why() {
        let validate = async |request| ask(Webhook::validating(Rules), request).await;
        let none = Value::Null;
        assert_eq!(
            validate(request("CREATE", "a", none.clone(), map(json!({})))).await,
            json!({"uid": "u", "allowed": true, "warnings": ["seen"]})
        );
        let text = "ConfigMap \"a\" is invalid: data.replicas: Invalid value: \"2\": no";
        assert_eq!(
            validate(request("CREATE", "a", none.clone(), map(json!({"replicas": "2"})))).await["status"],
            json!({"metadata": {}, "status": "Failure", "code": 422, "reason": "Invalid", "message": text,
                "details": {"name": "a", "kind": "ConfigMap", "causes": [{"reason": "FieldValueInvalid",
                    "message": "Invalid value: \"2\": no", "field": "data.replicas"}]}})
        );
        for (request, code, reason, message) in [
            (request("UPDATE", "a", map(json!({})), map(json!({"a": "b"}))), 403, "Forbidden", "never"),
            (request("DELETE", "a", map(json!({})), none.clone()), 403, "Forbidden", "it stays"),
            (
                request("CREATE", "a", none, json!({"data": 1})),
                400,
                "BadRequest",
                "not a ConfigMap of v1: invalid type: integer `1`, expected a map",
            ),
        ] {
            let response = validate(request).await;
            assert_eq!(response["allowed"], false);
            let status = &response["status"];
            assert_eq!((&status["code"], &status["reason"]), (&json!(code), &json!(reason)));
            assert_eq!(status["message"], message);
        }
    }

    #[tokio::test]
    async fn a_panic_is_the_answer_to_one_request() {
        let response =
            ask(Webhook::defaulting(Rules), request("CREATE", "panics", Value::Null, map(json!({})))).await;
        assert_eq!(response["allowed"], false);
        assert_eq!(response["status"]["code"], 500);
        assert!(response["status"]["message"].as_str().unwrap().contains("as it should"));
    }

    #[tokio::test]
    async fn nonsense_is_refused() {
        let response = ask(Webhook::defaulting(Rules), json!({"uid": "u", "operation": "DANCE"})).await;
        assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)));
    }
}
