//! Admission webhooks: which are asked about a write, what they are asked, and what their answers do.
//!
//! Configurations are read from the store when a write comes and parsed once per revision. Mutating ones are asked one
//! after another, each seeing what those before it made of the object; then validating ones see the result.
//! Not done here: matching through other versions of a resource (`matchPolicy: Equivalent`).
//! Invariant: webhook and policy configurations themselves are never shown to a webhook.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use homeostat_model::field::quote;
use homeostat_model::selector::Labels;
use homeostat_model::status::{Details, Result};
use homeostat_model::{GroupVersion, Status};
use homeostat_schema::{cel, patch};
use serde_json::{Value, json};

use super::{Operation, Subject};
use crate::decode;
use crate::hook;
use crate::object;
use crate::write::Writing;

const GROUP: &str = "admissionregistration.k8s.io";

/// Parsed configurations of one kind, as of these revisions.
#[derive(Default)]
pub(crate) struct Configured(Mutex<(Vec<u64>, Arc<Vec<Hook>>)>);

/// What the server remembers of webhooks.
#[derive(Default)]
pub(crate) struct Hooks {
    mutating: Configured,
    validating: Configured,
}

/// One webhook of a configuration.
struct Hook {
    name: String,
    config: Value,
    rules: Vec<Value>,
    namespaces: Labels,
    objects: Labels,
    ignore: bool,
    timeout: Duration,
    version: &'static str,
    dry_run: bool,
    again: bool,
    /// Expressions that must hold.
    conditions: Vec<String>,
}

impl Hook {
    fn parse(v: &Value) -> Self {
        let versions = v["admissionReviewVersions"].as_array().into_iter().flatten();
        let version = versions.filter_map(Value::as_str).find_map(|v| match v {
            "v1" => Some("v1"),
            "v1beta1" => Some("v1beta1"),
            _ => None,
        });
        Self {
            name: v["name"].as_str().unwrap_or_default().to_owned(),
            config: v["clientConfig"].clone(),
            rules: v["rules"].as_array().cloned().unwrap_or_default(),
            namespaces: Labels::from_valid(&v["namespaceSelector"]),
            objects: Labels::from_valid(&v["objectSelector"]),
            ignore: v["failurePolicy"] == "Ignore",
            timeout: Duration::from_secs(v["timeoutSeconds"].as_u64().unwrap_or(10).clamp(1, 30)),
            version: version.unwrap_or("v1"),
            dry_run: matches!(v["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            again: v["reinvocationPolicy"] == "IfNeeded",
            conditions: v["matchConditions"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|c| c["expression"].as_str())
                .map(str::to_owned)
                .collect(),
        }
    }

    fn wants(&self, w: &Writing<'_>, operation: &str) -> bool {
        let gv = w.target.gv();
        let resource = &*w.target.resource.id.resource;
        let has = |rule: &Value, key: &str, value: &str| {
            let list = rule[key].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).any(|v| v == "*" || v == value)
        };
        self.rules.iter().any(|rule| {
            let scope = rule["scope"].as_str().unwrap_or("*");
            let fits = match scope {
                "Namespaced" => w.target.resource.namespaced,
                "Cluster" => !w.target.resource.namespaced,
                _ => true,
            };
            let resources = rule["resources"].as_array().into_iter().flatten();
            let named = resources.filter_map(Value::as_str).any(|r| {
                let (main, sub) = r.split_once('/').unwrap_or((r, ""));
                (main == "*" || main == resource) && (sub == w.subresource || (sub == "*" && r.contains('/')))
            });
            fits && named
                && has(rule, "operations", operation)
                && has(rule, "apiGroups", &gv.group)
                && has(rule, "apiVersions", &gv.version)
        })
    }

    fn selects(&self, w: &Writing<'_>, object: Option<&Value>, old: Option<&Value>) -> bool {
        let by = |labels: &Labels, o: Option<&Value>| {
            o.is_some_and(|o| labels.matches_value(&o["metadata"]["labels"]))
        };
        if !self.objects.is_empty() && !by(&self.objects, object) && !by(&self.objects, old) {
            return false;
        }
        if self.namespaces.is_empty() {
            return true;
        }
        let id = &w.target.resource.id;
        if id.group.is_empty() && &*id.resource == "namespaces" {
            return by(&self.namespaces, object.or(old));
        }
        if w.namespace.is_empty() {
            return true;
        }
        let record = w.server.config.store.get("namespaces", w.namespace);
        record.is_some_and(|r| self.namespaces.matches(|key| r.meta.label(key)))
    }
}

/// Whether a webhook's conditions hold; where one can't be told, its failure policy decides.
fn holds(
    w: &Writing<'_>,
    subject: &Subject,
    h: &Hook,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool> {
    if h.conditions.is_empty() {
        return Ok(true);
    }
    let request = review(w, subject, "", None, None);
    let (null, mut failed) = (Value::Null, None);
    let variables =
        [("object", object.unwrap_or(&null)), ("oldObject", old.unwrap_or(&null)), ("request", &request)];
    for source in &h.conditions {
        match cel::condition(source, &variables) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => failed = failed.or(Some(why)),
        }
    }
    match failed {
        None => Ok(true),
        Some(_) if h.ignore => Ok(false),
        Some(why) => Err(Status::forbidden(&w.target.resource.id, &subject.name, &why)),
    }
}

/// The webhooks that are configured now.
fn configured(w: &Writing<'_>, mutating: bool) -> Arc<Vec<Hook>> {
    let (cache, plural) = match mutating {
        true => (&w.server.hooks.mutating, "mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        false => (&w.server.hooks.validating, "validatingwebhookconfigurations.admissionregistration.k8s.io"),
    };
    let snapshot = w.server.config.store.snapshot();
    if snapshot.is_empty(plural) || &*w.target.resource.id.group == GROUP {
        return Arc::default();
    }
    let revisions: Vec<u64> = snapshot.range(plural, "", None).map(|r| r.revision).collect();
    let mut known = cache.0.lock().unwrap_or_else(PoisonError::into_inner);
    if known.0 != revisions {
        let mut hooks = Vec::new();
        for record in snapshot.range(plural, "", None) {
            let v: Value = serde_json::from_slice(&record.bytes).unwrap_or_default();
            hooks.extend(v["webhooks"].as_array().into_iter().flatten().map(Hook::parse));
        }
        *known = (revisions, Arc::new(hooks));
    }
    known.1.clone()
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

/// Lets mutating webhooks change the object.
pub(super) async fn mutate(
    w: &Writing<'_>,
    subject: &Subject,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<()> {
    let hooks = configured(w, true);
    let mut left: Vec<(usize, Value)> = Vec::new();
    for (i, h) in hooks.iter().enumerate() {
        let chosen = h.wants(w, word(subject.operation)) && h.selects(w, Some(object), old);
        if chosen && holds(w, subject, h, Some(object), old)? {
            one(w, subject, h, object, old).await?;
            left.push((i, object.clone()));
        }
    }
    // Those that ask for it look again at what later ones have changed, once.
    for (i, seen) in left {
        let h = &hooks[i];
        if h.again && seen != *object && h.selects(w, Some(object), old) {
            one(w, subject, h, object, old).await?;
        }
    }
    Ok(())
}

/// Asks one mutating webhook, and takes its patch.
async fn one(
    w: &Writing<'_>,
    subject: &Subject,
    h: &Hook,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<()> {
    let Some(response) = ask(w, subject, h, Some(object), old).await? else { return Ok(()) };
    let Some(text) = response["patch"].as_str().filter(|p| !p.is_empty()) else { return Ok(()) };
    let broken = |why: String| Status::internal(why);
    if response["patchType"].as_str().is_some_and(|t| t != "JSONPatch") {
        return Err(broken(format!(
            "unexpected patch type {}",
            quote(response["patchType"].as_str().unwrap_or_default())
        )));
    }
    let bytes = STANDARD.decode(text).map_err(|e| broken(e.to_string()))?;
    let (operations, _) =
        homeostat_schema::decode::parse_json(&bytes, 128).map_err(|e| broken(e.to_string()))?;
    let mut new = patch::json(object, &operations).map_err(|e| broken(e.to_string()))?;
    decode::types(w.target, &mut new).map_err(broken)?;
    decode::defaults(w.target, &mut new);
    *object = new;
    Ok(())
}

/// Lets validating webhooks veto a write; on deletes, where nothing can be changed, mutating ones too.
pub(super) async fn validate(
    w: &Writing<'_>,
    subject: &Subject,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<()> {
    for mutating in [true, false] {
        if mutating && object.is_some() {
            continue;
        }
        for h in configured(w, mutating).iter() {
            let chosen = h.wants(w, word(subject.operation)) && h.selects(w, object, old);
            if chosen && holds(w, subject, h, object, old)? {
                ask(w, subject, h, object, old).await?;
            }
        }
    }
    Ok(())
}

/// The request of the question.
fn review(
    w: &Writing<'_>,
    subject: &Subject,
    uid: &str,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Value {
    let gv: &GroupVersion = w.target.gv();
    let kind = json!({"group": &*gv.group, "version": &*gv.version, "kind": &*w.target.resource.kind});
    let resource =
        json!({"group": &*gv.group, "version": &*gv.version, "resource": &*w.target.resource.id.resource});
    let mut options = w.options.clone();
    if !options.is_object() {
        options = json!({});
    }
    options["kind"] = match subject.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    }
    .into();
    options["apiVersion"] = "meta.k8s.io/v1".into();
    let mut request = json!({
        "uid": uid, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "operation": word(subject.operation), "userInfo": w.user.to_value(), "object": object, "oldObject": old,
        "dryRun": w.dry_run, "options": options,
    });
    for (key, value) in [
        ("name", subject.name.as_str()),
        ("namespace", w.namespace),
        ("subResource", w.subresource),
        ("requestSubResource", w.subresource),
    ] {
        if !value.is_empty() {
            request[key] = value.into();
        }
    }
    request
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

/// Whether any mutating webhook is configured.
pub(crate) fn any_mutating(w: &Writing<'_>) -> bool {
    !w.server.config.store.snapshot().is_empty("mutatingwebhookconfigurations.admissionregistration.k8s.io")
}

/// Asks a webhook; its response, or `None` where it could not be had and may be done without.
async fn ask(
    w: &Writing<'_>,
    subject: &Subject,
    h: &Hook,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Value>> {
    if w.dry_run && !h.dry_run {
        let why = format!("admission webhook {} does not support dry run", quote(&h.name));
        return Err(Status::bad_request(why));
    }
    let uid = w.server.config.entropy.uid();
    let question = question(h.version, &review(w, subject, &uid, object, old));
    let answer = match hook::call(w.server, &h.config, question, h.timeout).await {
        Ok(v) => response(&v, &uid, h),
        Err(why) => Err(format!("failed to call webhook: {why}")),
    };
    let response = match answer {
        Ok(r) => r,
        Err(why) if h.ignore => {
            tracing::warn!(webhook = h.name, error = why, "a webhook failed and is ignored");
            return Ok(None);
        }
        Err(why) => {
            return Err(Status::internal(format!("failed calling webhook {}: {why}", quote(&h.name))));
        }
    };
    if let Some(sink) = w.sink {
        let warnings = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        sink.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings.map(str::to_owned));
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
