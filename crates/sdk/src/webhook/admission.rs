//! What a webhook is told of a request beside its objects, and how it says no.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use homeostat_model::field;
use homeostat_model::gvk::GroupKind;
use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Target;
use crate::error::Error;

/// What is asked of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// An object is to be created.
    Create,
    /// An object is to be changed.
    Update,
    /// An object is to be deleted.
    Delete,
    /// A connection is to be made to an object's subresource.
    Connect,
}

impl Operation {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Most warnings that one answer carries; the API server cuts them off at 4096 bytes together anyway.
const MOST_WARNINGS: usize = 32;

/// The request that a webhook judges: who asks for what. Its objects come beside it.
///
/// A test makes one with [`Admission::new`]:
///
/// ```
/// use homeostat_sdk::webhook::{Admission, Operation};
///
/// let cx = Admission::new(Operation::Create);
/// cx.warn("this goes to the person who asked");
/// assert_eq!(cx.warnings(), ["this goes to the person who asked"]);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Admission {
    /// Tells this request from all others.
    pub uid: String,
    /// What is asked.
    pub operation: Operation,
    /// The object's name; empty where the server is still to generate it.
    pub name: String,
    /// The object's namespace; `None` where it is cluster-scoped.
    pub namespace: Option<String>,
    /// The subresource that is written, such as `status`.
    pub subresource: Option<String>,
    /// Who asks.
    pub user: UserInfo,
    /// Nothing will be stored: whoever has effects elsewhere must not have them now.
    pub dry_run: bool,
    /// The options of the operation: a `CreateOptions`, `UpdateOptions` or `DeleteOptions` object.
    pub options: Value,
    pub(super) client: Option<Client>,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("operation", &self.operation)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Admission {
    /// A request by nobody for nothing in particular, for tests.
    pub fn new(operation: Operation) -> Self {
        Self {
            uid: String::new(),
            operation,
            name: String::new(),
            namespace: None,
            subresource: None,
            user: UserInfo::default(),
            dry_run: false,
            options: Value::Null,
            client: None,
            warnings: Arc::default(),
        }
    }

    /// Tells the person who asked something that doesn't stop the request. Short, without a prefix.
    pub fn warn(&self, warning: impl Into<String>) {
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < MOST_WARNINGS {
            warnings.push(warning.into());
        }
    }

    /// The warnings so far.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The manager's client, to look at other objects; `None` in a test that gave none. The API server waits for the
    /// answer meanwhile.
    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }
}

/// A no, as the person who asked will read it.
///
/// It comes from field errors (an `Invalid` answer with a cause for each), from an error of the API, or from a text:
///
/// ```
/// use homeostat_sdk::field;
/// use homeostat_sdk::webhook::Denied;
///
/// let even = Denied::from(field::Error::invalid("spec.replicas", 2, "must be odd"));
/// let closed = Denied::new("nothing is created on Sundays");
/// assert_eq!(closed.to_string(), "nothing is created on Sundays");
/// assert_eq!(even.to_string(), "spec.replicas: Invalid value: 2: must be odd");
/// ```
#[derive(Debug)]
pub struct Denied(Why);

#[derive(Debug)]
enum Why {
    Text(String),
    Fields(Vec<field::Error>),
    Other(Error),
}

impl Denied {
    /// No, with the reason in words (403 `Forbidden`).
    pub fn new(why: impl Into<String>) -> Self {
        Self(Why::Text(why.into()))
    }

    /// No where there is any error, yes where there is none. For rules that collect what is wrong first.
    ///
    /// ```
    /// # use homeostat_sdk::{field, webhook::Denied};
    /// fn check(replicas: i32) -> Result<(), Denied> {
    ///     let mut errors = Vec::new();
    ///     if replicas % 2 == 0 {
    ///         errors.push(field::Error::invalid("spec.replicas", replicas, "must be odd"));
    ///     }
    ///     Denied::unless_valid(errors)
    /// }
    /// assert!(check(3).is_ok() && check(2).is_err());
    /// ```
    pub fn unless_valid(errors: Vec<field::Error>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self(Why::Fields(errors))) }
    }

    /// The `Status` of the answer.
    pub(super) fn status(&self, target: &Target, name: &str) -> Value {
        let mut status = match &self.0 {
            Why::Text(text) => homeostat_model::Status::new(403, "Forbidden", text.clone()).to_value(),
            Why::Fields(errors) => {
                let kind = GroupKind::new(target.group.as_str(), target.kind.as_str());
                homeostat_model::Status::invalid(&kind, name, errors).to_value()
            }
            Why::Other(error) => match error.status().map(serde_json::to_value) {
                Some(Ok(status)) => status,
                _ => homeostat_model::Status::new(403, "Forbidden", error.to_string()).to_value(),
            },
        };
        // A status inside of a response has no type of its own.
        if let Some(status) = status.as_object_mut() {
            status.remove("kind");
            status.remove("apiVersion");
        }
        status
    }

    /// The answer where the webhook itself failed.
    pub(super) fn failure(code: u16, why: &str) -> Value {
        json!({"metadata": {}, "status": "Failure", "code": code, "message": why,
            "reason": if code == 400 { "BadRequest" } else { "InternalError" }})
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Text(text) => f.write_str(text),
            Why::Fields(errors) => {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(", "))
            }
            Why::Other(error) => write!(f, "{error}"),
        }
    }
}

impl From<field::Error> for Denied {
    fn from(error: field::Error) -> Self {
        Self(Why::Fields(vec![error]))
    }
}

impl From<Vec<field::Error>> for Denied {
    fn from(errors: Vec<field::Error>) -> Self {
        Self(Why::Fields(errors))
    }
}

impl From<Error> for Denied {
    fn from(error: Error) -> Self {
        Self(Why::Other(error))
    }
}

impl From<kube::Error> for Denied {
    fn from(error: kube::Error) -> Self {
        Self(Why::Other(error.into()))
    }
}
