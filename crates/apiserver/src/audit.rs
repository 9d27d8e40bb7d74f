//! Who asked for what, and what became of it: audit events as `audit.k8s.io/v1` has them.
//!
//! Nothing is kept here: each stage of a request is told to an [`Audit`], which decides once for each request how much
//! it wants to know. [`Policy`] decides by rules, [`Log`] writes lines to a file. Invariant: a request of which anything
//! is told ends with exactly one `ResponseComplete` or `Panic`, when the last byte of its answer has gone (a request
//! whose user is not known is told once, as `ResponseStarted`, as the reference does).

mod log;
mod policy;
mod trail;

use std::collections::BTreeMap;

pub use homeostat_access::{Attributes, User};
use homeostat_model::{Timestamp, clock};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

pub use log::{Closed, Log};
pub use policy::Policy;
pub(crate) use trail::Trail;

/// Wants to know of requests.
pub trait Audit: Send + Sync + std::fmt::Debug {
    /// How much it wants to know of this request; asked once, when its user is known and before anybody else is asked.
    fn interest(&self, request: &Attributes<'_>) -> Interest;

    /// Takes note of a stage. Called on the request's own task: it must neither wait nor take long.
    fn tell(&self, event: Event);
}

/// How much of a request is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who, what, when, and the outcome.
    Metadata,
    /// The request's body as well.
    Request,
    /// The answer's body as well.
    RequestResponse,
}

/// When in a request's life an event is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Its user is known, nothing else has been decided.
    RequestReceived,
    /// A long-running request (a watch) is being answered.
    ResponseStarted,
    /// The last byte of the answer has gone.
    ResponseComplete,
    /// It made the server panic.
    Panic,
}

impl Stage {
    /// All of them, in the order in which the reference lists them.
    pub const ALL: [Self; 4] =
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic];

    /// As events and policies write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }
}

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages(u8);

impl Stages {
    /// Whether a stage is in the set.
    pub fn has(self, stage: Stage) -> bool {
        self.0 & (1 << stage as u8) != 0
    }

    /// The stages of both sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Stage> for Stages {
    fn from_iter<I: IntoIterator<Item = Stage>>(stages: I) -> Self {
        Self(stages.into_iter().fold(0, |set, stage| set | 1 << stage as u8))
    }
}

/// How much an [`Audit`] wants to know of one request. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// How much.
    pub level: Level,
    /// Stages that it does not want to hear of.
    pub omit_stages: Stages,
    /// Whether bodies come without their managed fields.
    pub omit_managed_fields: bool,
}

/// A stage of a request; serializes as an `audit.k8s.io/v1` Event.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    /// How much is told.
    pub level: Level,
    /// The request's id, the client's (header `Audit-ID`) or the server's.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// When it is told.
    pub stage: Stage,
    /// Path and query as the client sent them.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// The verb as authorization sees it.
    pub verb: String,
    /// Who has proved to ask; empty where authentication failed.
    #[serde(serialize_with = "user")]
    pub user: User,
    /// As whom they ask.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "some_user")]
    pub impersonated_user: Option<User>,
    /// Whence, proxies included; the last one is the connection's.
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub source_ips: Vec<String>,
    /// What the client calls itself, up to 1,024 bytes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_agent: String,
    /// For what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectRef>,
    /// The outcome: a `Status`, of a success often only its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<Value>,
    /// The request's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_object: Option<Value>,
    /// The answer's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_object: Option<Value>,
    /// When the request came.
    #[serde(serialize_with = "micros")]
    pub request_received_timestamp: Timestamp,
    /// When the stage was reached.
    #[serde(serialize_with = "micros")]
    pub stage_timestamp: Timestamp,
    /// What those who decided say of it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// What a request is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Plural.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Uid that the request's body named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// Version of the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Revision that the request's body named.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Subresource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

fn user<S: Serializer>(user: &User, to: S) -> Result<S::Ok, S::Error> {
    user.to_value().serialize(to)
}

fn some_user<S: Serializer>(user: &Option<User>, to: S) -> Result<S::Ok, S::Error> {
    user.as_ref().map(User::to_value).serialize(to)
}

fn micros<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&clock::micros(*time))
}
