//! The trail of one request: its event in the making, and the telling of its stages.
//!
//! Whoever serves the request adds what they know; nothing is gathered that the level does not ask for. Invariant: the
//! end is told exactly once, by [`Ending`], wherever the answer's body is dropped.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use homeostat_access::User;
use homeostat_model::{Clock, Status, Timestamp};
use homeostat_schema::decode::{MAX_DEPTH, parse_yaml};
use http::{HeaderMap, header};
use serde_json::{Value, json};

use super::{Audit, Event, Interest, Level, ObjectRef, Stage};
use crate::authority;
use crate::object;
use crate::respond::{Answer, Content};
use crate::serve::{PeerAddress, PeerCertificate};
use crate::server::{Call, Server};

/// Most bytes of a user agent that are told.
const USER_AGENT: usize = 1024;

/// A request that is told of.
pub(crate) struct Trail {
    audit: Arc<dyn Audit>,
    clock: Clock,
    interest: Interest,
    /// Authentication failed: only that is told.
    refused: bool,
    event: Mutex<Event>,
}

/// Tells the end of a request when it is dropped, which is when the last byte of its answer has gone.
pub(crate) struct Ending {
    trail: Option<Trail>,
    stage: Stage,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(trail) = self.trail.take() {
            trail.tell(self.stage);
        }
    }
}

impl Trail {
    /// Begins the trail of a request, if anybody wants to know of it; without a user, authentication has failed.
    pub(crate) fn begin(server: &Server, call: &Call, user: Option<&User>, came: Timestamp) -> Option<Self> {
        let audit = server.config.audit.clone()?;
        let nobody = User::default();
        let asks = user.unwrap_or(&nobody);
        let interest = audit.interest(&authority::attributes(call, asks));
        if interest.level == Level::None {
            return None;
        }
        let info = &call.info;
        let mut event = Event {
            audit_id: call.audit_id.to_str().unwrap_or_default().to_owned(),
            request_uri: call.parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            verb: info.verb.clone(),
            user: asks.clone(),
            source_ips: source_ips(&call.parts.headers, call.parts.extensions.get::<PeerAddress>()),
            user_agent: short(call.header(header::USER_AGENT).unwrap_or_default()),
            request_received_timestamp: came,
            stage_timestamp: came,
            ..Self::blank(interest.level, Stage::RequestReceived)
        };
        if info.is_resource {
            event.object_ref = Some(ObjectRef {
                resource: info.resource.clone(),
                namespace: info.namespace.clone(),
                name: info.name.clone(),
                api_group: info.group.clone(),
                api_version: info.version.clone(),
                subresource: info.subresource.clone(),
                ..ObjectRef::default()
            });
        }
        if user.is_none() {
            event.response_status = Some(json!({"metadata": {}, "message": attempted(call)}));
        }
        let clock = server.config.clock.clone();
        let trail = Self { audit, clock, interest, refused: user.is_none(), event: Mutex::new(event) };
        if user.is_some() {
            trail.tell(Stage::RequestReceived);
        }
        Some(trail)
    }

    /// An event of which nothing is known.
    pub(super) fn blank(level: Level, stage: Stage) -> Event {
        Event {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level,
            audit_id: String::new(),
            stage,
            request_uri: String::new(),
            verb: String::new(),
            user: User::default(),
            impersonated_user: None,
            source_ips: Vec::new(),
            user_agent: String::new(),
            object_ref: None,
            response_status: None,
            request_object: None,
            response_object: None,
            request_received_timestamp: Timestamp::default(),
            stage_timestamp: Timestamp::default(),
            annotations: Default::default(),
        }
    }

    fn event(&self) -> MutexGuard<'_, Event> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, stage: Stage) {
        if self.interest.omit_stages.has(stage) {
            return;
        }
        let mut event = self.event();
        event.stage = stage;
        if stage != Stage::RequestReceived {
            event.stage_timestamp = self.clock.now();
        }
        let event = event.clone();
        self.audit.tell(event);
    }

    /// Adds what somebody who decides says of the request; what is said first stays.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        let mut event = self.event();
        if !event.annotations.contains_key(key) {
            event.annotations.insert(key.to_owned(), value.to_owned());
        }
    }

    /// The request is made in another's name.
    pub(crate) fn impersonated(&self, user: &User) {
        self.event().impersonated_user = Some(user.clone());
    }

    /// The request's body as an object of its version.
    pub(crate) fn request(&self, object: &Value) {
        let mut event = self.event();
        let of = event.object_ref.get_or_insert_default();
        for (known, of) in [
            (&mut of.namespace, object::namespace(object)),
            (&mut of.name, object::name(object)),
            (&mut of.uid, object::uid(object)),
            (&mut of.resource_version, object::resource_version(object)),
        ] {
            if known.is_empty() {
                of.clone_into(known);
            }
        }
        if self.interest.level >= Level::Request {
            event.request_object = Some(self.without_managed_fields(object.clone()));
        }
    }

    /// The request's body as a patch.
    pub(crate) fn patch(&self, body: &[u8]) {
        if self.interest.level >= Level::Request {
            self.event().request_object = parse_yaml(body, MAX_DEPTH).ok().map(|(value, _)| value);
        }
    }

    /// The request is answered; the answer comes back, read where that was needed.
    pub(crate) async fn answered(&self, mut answer: Answer) -> Answer {
        let code = answer.code;
        let is_resource = self.event().object_ref.is_some();
        let wanted = self.interest.level >= Level::RequestResponse && is_resource;
        if wanted && let Content::Chunks(body) = answer.content {
            answer.content = Content::Json(crate::respond::collect(body).await);
        }
        let status = match &answer.content {
            Content::Value(v) if v["kind"] == "Status" && v["apiVersion"] == "v1" => outcome(v),
            _ => json!({"metadata": {}, "code": code.as_u16()}),
        };
        let object = match &answer.content {
            _ if !wanted => None,
            Content::Value(v) => Some(v.clone()),
            Content::Json(bytes) => serde_json::from_slice::<Value>(bytes).ok(),
            Content::Chunks(_) | Content::Raw(..) => None,
        };
        let object = object.map(|o| self.without_managed_fields(o));
        let mut event = self.event();
        if event.response_status.is_none() {
            event.response_status = Some(status);
        }
        event.response_object = object;
        answer
    }

    /// The request has failed.
    pub(crate) fn failed(&self, status: &Status) {
        let value = status.to_value();
        let mut event = self.event();
        if self.refused {
            if let Some(known) = &mut event.response_status {
                known["code"] = status.code.into();
            }
            return;
        }
        event.response_status = Some(outcome(&value));
        if self.interest.level >= Level::RequestResponse && event.object_ref.is_some() {
            event.response_object = Some(value);
        }
    }

    /// The request made the server panic.
    pub(crate) fn panicked(&self, with: &str) {
        self.event().response_status = Some(json!({
            "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
            "message": format!("APIServer panic'd: {with}"),
        }));
    }

    /// The answer's head goes out now; the end is told when what comes back is dropped. A long-running request is told
    /// to have begun.
    pub(crate) fn ending(self, long_running: bool, panicked: bool) -> Ending {
        if self.refused {
            return Ending { trail: Some(self), stage: Stage::ResponseStarted };
        }
        if long_running && !panicked {
            self.tell(Stage::ResponseStarted);
        }
        let stage = if panicked { Stage::Panic } else { Stage::ResponseComplete };
        Ending { trail: Some(self), stage }
    }

    fn without_managed_fields(&self, mut object: Value) -> Value {
        if self.interest.omit_managed_fields {
            let unmanage = |object: &mut Value| {
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("managedFields");
                }
            };
            unmanage(&mut object);
            for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                unmanage(item);
            }
            for row in object.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
                row.get_mut("object").into_iter().for_each(unmanage);
            }
        }
        object
    }
}

/// What of a `Status` an event tells at every level.
fn outcome(status: &Value) -> Value {
    let mut out = json!({"metadata": {}});
    for key in ["status", "message", "reason", "details", "code"] {
        if let Some(v) = status.get(key) {
            out[key] = v.clone();
        }
    }
    out
}

fn short(agent: &str) -> String {
    match agent.get(..USER_AGENT) {
        Some(head) if agent.len() > USER_AGENT => format!("{head}...TRUNCATED"),
        _ => agent.to_owned(),
    }
}

/// Whence a request says to come, and last whence it does come.
fn source_ips(headers: &HeaderMap, peer: Option<&PeerAddress>) -> Vec<String> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mut ips: Vec<IpAddr> =
        text("x-forwarded-for").split(',').filter_map(|p| p.trim().parse().ok()).collect();
    if let Ok(ip) = text("x-real-ip").parse::<IpAddr>()
        && !ips.contains(&ip)
    {
        ips.push(ip);
    }
    if let Some(PeerAddress(ip)) = peer
        && ips.last() != Some(ip)
    {
        ips.push(*ip);
    }
    ips.iter().map(ToString::to_string).collect()
}

/// How the client tried to prove who it is.
fn attempted(call: &Call) -> String {
    let scheme = call.header(header::AUTHORIZATION).unwrap_or_default().trim().to_ascii_lowercase();
    let mut ways = Vec::new();
    for (way, tried) in [
        ("basic", scheme.starts_with("basic ")),
        ("bearer", scheme.starts_with("bearer ")),
        ("access_token", call.query.get("access_token").is_some_and(|t| !t.trim().is_empty())),
        ("x509", call.parts.extensions.get::<PeerCertificate>().is_some()),
    ] {
        if tried {
            ways.push(way);
        }
    }
    match ways.as_slice() {
        [] => "Authentication failed, no credentials provided".to_owned(),
        ways => format!("Authentication failed, attempted: {}", ways.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_in_the_references_order() {
        let peer = PeerAddress([9, 9, 9, 9].into());
        for (forwarded, real, peer, want) in [
            ("", "", None, vec![]),
            ("", "", Some(&peer), vec!["9.9.9.9"]),
            ("1.1.1.1, x, 2.2.2.2", "", Some(&peer), vec!["1.1.1.1", "2.2.2.2", "9.9.9.9"]),
            ("1.1.1.1", "1.1.1.1", Some(&peer), vec!["1.1.1.1", "9.9.9.9"]),
            ("1.1.1.1", "fd00::1", None, vec!["1.1.1.1", "fd00::1"]),
            ("9.9.9.9", "", Some(&peer), vec!["9.9.9.9"]),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            headers.insert("x-real-ip", real.parse().unwrap());
            assert_eq!(source_ips(&headers, peer), want, "{forwarded} {real}");
        }
    }

    #[test]
    fn long_user_agents_are_cut() {
        assert_eq!(short("kubectl/v1"), "kubectl/v1");
        assert_eq!(short(&"x".repeat(1024)).len(), 1024);
        assert_eq!(short(&"x".repeat(1025)), format!("{}...TRUNCATED", "x".repeat(1024)));
    }
}
