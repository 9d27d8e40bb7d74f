//! Admission webhooks: which are asked about a write, what they are asked, and what their answers do.
//!
//! Configurations are read from the store when a write comes and parsed once per revision. Mutating ones are asked one
//! after another, each seeing what those before it made of the object; then validating ones see the result, all at once.
//! Invariant: webhook and policy configurations themselves are never shown to a webhook.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::join_all;
use homeostat_model::Status;
use homeostat_model::field::quote;
use homeostat_model::status::{Details, Result};
use homeostat_schema::cel::check::{Environment, Uses, Wanted};
use homeostat_schema::cel::{Input, Program};
use homeostat_schema::patch;
use serde_json::{Value, json};

use super::evaluation::{Asker, Given};
use super::kept::Kept;
use super::matching::{Attributes, Criteria, Matched, View, converted, is_exempt};
use super::policies::Known;
use super::reinvocation::Reinvocation;
use super::request::request;
use super::{Subject, evaluation};
use crate::decode;
use crate::hook;
use crate::object;
use crate::write::Writing;

/// What the server remembers of webhooks and policies.
#[derive(Default)]
pub(crate) struct Hooks {
    mutating: Kept<Vec<Hook>>,
    validating: Kept<Vec<Hook>>,
    pub(super) policies: Known,
}

/// One webhook of a configuration.
struct Hook {
    name: String,
    configuration: String,
    config: Value,
    criteria: Criteria,
    ignore: bool,
    timeout: Duration,
    version: &'static str,
    dry_run: bool,
    again: bool,
    /// Expressions that must hold.
    conditions: Vec<std::result::Result<Program, String>>,
}

impl Hook {
    fn parse(configuration: &str, v: &Value) -> Self {
        let versions = v["admissionReviewVersions"].as_array().into_iter().flatten();
        let version = versions.filter_map(Value::as_str).find_map(|v| match v {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        let (env, uses) = (Environment::new(false), Uses { authorizer: true, variables: false });
        let conditions = v["matchConditions"].as_array().into_iter().flatten();
        Self {
            name: v["name"].as_str().unwrap_or_default().to_owned(),
            configuration: configuration.to_owned(),
            config: v["clientConfig"].clone(),
            criteria: Criteria::webhook(v),
            ignore: v["failurePolicy"] == "Ignore",
            timeout: Duration::from_secs(v["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30)),
            version: version.unwrap_or("v1"),
            dry_run: matches!(v["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            again: v["reinvocationPolicy"] == "IfNeeded",
            conditions: conditions
                .filter_map(|c| c["expression"].as_str())
                .map(|source| env.compile(source, Wanted::Bool, uses))
                .collect(),
        }
    }
}

/// Whether a webhook's conditions hold; where one can't be told, its failure policy decides.
fn holds(a: &Attributes<'_>, h: &Hook, view: &View<'_>) -> Result<bool> {
    if h.conditions.is_empty() {
        return Ok(true);
    }
    let (inputs, params) = (evaluation::inputs(a, view), Input::json(None));
    let asker = Asker { w: a.w, subject: a.subject };
    let given = Given { inputs: &inputs, params: &params, asker: &asker, variables: &[] };
    match given.hold(&h.conditions) {
        Ok(holds) => Ok(holds),
        Err(_) if h.ignore => Ok(false),
        Err(why) => Err(Status::forbidden(&a.w.target.resource.id, &a.subject.name, &why)),
    }
}

/// The webhooks that are configured now.
fn configured(w: &Writing<'_>, mutating: bool) -> Arc<Vec<Hook>> {
    let (kept, plural) = match mutating {
        true => (&w.server.hooks.mutating, "mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        false => (&w.server.hooks.validating, "validatingwebhookconfigurations.admissionregistration.k8s.io"),
    };
    let snapshot = w.server.config.store.snapshot();
    if snapshot.is_empty(plural) || is_exempt(w) {
        return Arc::default();
    }
    kept.of(&snapshot, &[plural], |_| {
        let mut hooks = Vec::new();
        for record in snapshot.range(plural, "", None) {
            let v: Value = serde_json::from_slice(&record.bytes).unwrap_or_default();
            let webhooks = v["webhooks"].as_array().into_iter().flatten();
            hooks.extend(webhooks.map(|h| Hook::parse(&record.key.name, h)));
        }
        hooks
    })
}

/// Lets mutating webhooks change the object, in the first or second of two rounds.
pub(super) async fn mutate(
    w: &Writing<'_>,
    subject: &Subject,
    object: &mut Value,
    old: Option<&Value>,
    rounds: &mut Reinvocation,
) -> Result<()> {
    let hooks = configured(w, true);
    if hooks.is_empty() {
        return Ok(());
    }
    if rounds.again {
        rounds.webhooks.resume(object);
    }
    for (i, h) in hooks.iter().enumerate() {
        let a = Attributes { w, subject, object: Some(object), old };
        let Some(matched) = h.criteria.matches(&a) else { continue };
        let view = View::of(&a, &matched).await?;
        if !holds(&a, h, &view)? || (rounds.again && !rounds.webhooks.returns(&i)) {
            continue;
        }
        let new = one(&a, h, &view, &matched).await?;
        drop(view);
        let changed = new.as_ref().is_some_and(|new| new != object);
        note(w, h, i, rounds.again, changed);
        if let Some(new) = new.filter(|_| changed) {
            *object = new;
            rounds.webhooks.changed();
            rounds.wanted = true;
        }
        if h.again {
            rounds.webhooks.may_return(i);
        }
    }
    rounds.webhooks.leave(object);
    Ok(())
}

/// Tells whoever audits the request that a webhook was asked, and whether it has changed the object.
fn note(w: &Writing<'_>, h: &Hook, index: usize, again: bool, changed: bool) {
    if w.trail.is_none() {
        return;
    }
    let key = format!("mutation.webhook.admission.k8s.io/round_{}_index_{index}", u8::from(again));
    let value = json!({"configuration": h.configuration, "webhook": h.name, "mutated": changed});
    let mut out = Vec::new();
    object::write_json(&mut out, &value);
    w.annotate(&key, &String::from_utf8_lossy(&out));
}

/// Asks one mutating webhook, and takes its patch: the object as it should be.
async fn one(a: &Attributes<'_>, h: &Hook, view: &View<'_>, matched: &Matched) -> Result<Option<Value>> {
    let Some(response) = ask(a, h, view).await? else { return Ok(None) };
    let Some(text) = response["patch"].as_str().filter(|p| !p.is_empty()) else { return Ok(None) };
    let broken = |why: String| Status::internal(why);
    if response["patchType"].as_str().is_some_and(|t| t != "JSONPatch") {
        return Err(broken(format!(
            "unexpected patch type {}",
            quote(response["patchType"].as_str().unwrap_or_default())
        )));
    }
    let Some(object) = view.object.as_deref() else { return Ok(None) };
    let bytes = STANDARD.decode(text).map_err(|e| broken(e.to_string()))?;
    let (operations, _) =
        homeostat_schema::decode::parse_json(&bytes, 128).map_err(|e| broken(e.to_string()))?;
    let new = patch::json(object, &operations).map_err(|e| broken(e.to_string()))?;
    settle(a.w, new, view.target, matched).await.map(Some)
}

/// A changed object as the version asked for has it: typed and defaulted.
pub(super) async fn settle(
    w: &Writing<'_>,
    mut new: Value,
    seen: &crate::registry::Target,
    matched: &Matched,
) -> Result<Value> {
    decode::types(seen, &mut new).map_err(Status::internal)?;
    decode::defaults(seen, &mut new);
    if matches!(matched, Matched::Through(_)) {
        new = converted(w, seen, &new, w.target).await?;
        decode::types(w.target, &mut new).map_err(Status::internal)?;
        decode::defaults(w.target, &mut new);
    }
    Ok(new)
}

/// Lets validating webhooks veto a write; on deletes, where nothing can be changed, mutating ones before them.
pub(super) async fn validate(a: &Attributes<'_>) -> Result<()> {
    if a.object.is_none() {
        for h in configured(a.w, true).iter() {
            let Some(matched) = h.criteria.matches(a) else { continue };
            let view = View::of(a, &matched).await?;
            if holds(a, h, &view)? {
                ask(a, h, &view).await?;
            }
        }
    }
    let hooks = configured(a.w, false);
    let matched: Vec<_> = hooks.iter().filter_map(|h| Some((h, h.criteria.matches(a)?))).collect();
    let mut asked = Vec::new();
    for (h, matched) in &matched {
        let view = View::of(a, matched).await?;
        if holds(a, h, &view)? {
            asked.push((*h, view));
        }
    }
    // All at once, for none depends on another; heard in their order, so that it is always the same one that denies.
    let answers = join_all(asked.iter().map(|(h, view)| answer(a, h, view))).await;
    let mut verdict = Ok(());
    for ((h, _), answer) in asked.iter().zip(answers) {
        let heard = answer.and_then(|response| heed(a.w, h, response));
        verdict = verdict.and(heard.map(drop));
    }
    verdict
}

/// The request of the question.
fn review(a: &Attributes<'_>, view: &View<'_>, uid: &str) -> Value {
    let mut review = request(a, view.target);
    review["uid"] = uid.into();
    review["object"] = view.object.as_deref().cloned().unwrap_or_default();
    review["oldObject"] = view.old.as_deref().cloned().unwrap_or_default();
    review
}

/// The question, its keys in the order in which Go writes them.
fn question(version: &str, request: &Value) -> Bytes {
    const FIRST: [&str; 10] = [
        "uid",
        "kind",
        "resource",
        "subResource",
        "requestKind",
        "requestResource",
        "requestSubResource",
        "name",
        "namespace",
        "operation",
    ];
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(b"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/");
    out.extend_from_slice(version.as_bytes());
    out.extend_from_slice(b"\",\"request\":{");
    let rest = ["userInfo", "object", "oldObject", "dryRun", "options"];
    let mut first = true;
    for key in FIRST.into_iter().chain(rest) {
        let Some(value) = request.get(key) else { continue };
        if !first {
            out.push(b',');
        }
        first = false;
        object::write_json(&mut out, key);
        out.push(b':');
        object::write_json(&mut out, value);
    }
    out.extend_from_slice(b"}}");
    out.into()
}

/// Whether a webhook or policy is configured that may change objects.
pub(crate) fn any_mutating(w: &Writing<'_>) -> bool {
    let snapshot = w.server.config.store.snapshot();
    !snapshot.is_empty("mutatingwebhookconfigurations.admissionregistration.k8s.io")
        || !snapshot.is_empty("mutatingadmissionpolicybindings.admissionregistration.k8s.io")
}

/// Asks a webhook and heeds what it says: its response, or `None` where it could not be had and may be done without.
async fn ask(a: &Attributes<'_>, h: &Hook, view: &View<'_>) -> Result<Option<Value>> {
    heed(a.w, h, answer(a, h, view).await?)
}

/// What a webhook says, or `None` where it says nothing and may be done without.
async fn answer(a: &Attributes<'_>, h: &Hook, view: &View<'_>) -> Result<Option<Value>> {
    let w = a.w;
    if w.dry_run && !h.dry_run {
        let why = format!("admission webhook {} does not support dry run", quote(&h.name));
        return Err(Status::bad_request(why));
    }
    let uid = w.server.config.entropy.uid();
    let question = question(h.version, &review(a, view, &uid));
    let answer = match hook::call(w.server, &h.config, question, h.timeout).await {
        Ok(v) => response(&v, &uid, h),
        Err(why) => Err(format!("failed to call webhook: {why}")),
    };
    match answer {
        Ok(response) => Ok(Some(response)),
        Err(why) if h.ignore => {
            tracing::warn!(webhook = h.name, error = why, "a webhook failed and is ignored");
            Ok(None)
        }
        Err(why) => Err(Status::internal(format!("failed calling webhook {}: {why}", quote(&h.name)))),
    }
}

/// Passes on the warnings and annotations of a response, and denies what it denies.
fn heed(w: &Writing<'_>, h: &Hook, response: Option<Value>) -> Result<Option<Value>> {
    let Some(response) = response else { return Ok(None) };
    if let Some(sink) = w.sink {
        let warnings = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        sink.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings.map(str::to_owned));
    }
    for (key, value) in response["auditAnnotations"].as_object().into_iter().flatten() {
        w.annotate(&format!("{}/{key}", h.name), value.as_str().unwrap_or_default());
    }
    if response["allowed"] == true {
        return Ok(Some(response));
    }
    Err(denied(&h.name, &response["status"]))
}

/// The response in a webhook's answer, if it is one to what was asked.
fn response(answer: &Value, uid: &str, h: &Hook) -> std::result::Result<Value, String> {
    let invalid = |why: String| format!("received invalid webhook response: {why}");
    let response = &answer["response"];
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    let text = |key: &str| answer[key].as_str().unwrap_or_default();
    let wanted = format!("admission.k8s.io/{}", h.version);
    if h.version == "v1" {
        if text("apiVersion") != wanted || text("kind") != "AdmissionReview" {
            let (version, kind) = (text("apiVersion"), text("kind"));
            return Err(invalid(format!(
                "expected webhook response of {wanted}, Kind=AdmissionReview, got {version}, Kind={kind}"
            )));
        }
        let got = response["uid"].as_str().unwrap_or_default();
        if got != uid {
            return Err(invalid(format!("expected response.uid={}, got {}", quote(uid), quote(got))));
        }
    }
    Ok(response.clone())
}

/// Reasons that a denial may give; the API has no others.
const REASONS: [&str; 18] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "ServiceUnavailable",
];

fn denied(name: &str, status: &Value) -> Status {
    let code =
        status["code"].as_u64().and_then(|c| u16::try_from(c).ok()).filter(|c| *c >= 400).unwrap_or(400);
    let given = status["reason"].as_str().unwrap_or_default();
    let reason = REASONS.iter().find(|r| **r == given).copied().unwrap_or_default();
    let message =
        status["message"].as_str().filter(|m| !m.is_empty()).or(Some(given).filter(|r| !r.is_empty()));
    let text = match message {
        Some(m) => format!("admission webhook {} denied the request: {m}", quote(name)),
        None => format!("admission webhook {} denied the request without explanation", quote(name)),
    };
    let mut out = Status::new(code, reason, text);
    out.details = serde_json::from_value::<Details>(status["details"].clone()).ok().map(Box::new);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_says_what_the_webhook_said() {
        for (status, code, reason, message) in [
            (json!(null), 400, "", "admission webhook \"w\" denied the request without explanation"),
            (json!({"message": "no"}), 400, "", "admission webhook \"w\" denied the request: no"),
            (
                json!({"message": "no", "code": 200}),
                400,
                "",
                "admission webhook \"w\" denied the request: no",
            ),
            (
                json!({"reason": "Conflict", "code": 409}),
                409,
                "Conflict",
                "admission webhook \"w\" denied the request: Conflict",
            ),
        ] {
            let s = denied("w", &status);
            assert_eq!((s.code, s.reason, s.message.as_str()), (code, reason, message));
        }
    }
}
