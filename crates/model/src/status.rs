//! The API's own error: `metav1.Status`, with the reference's reasons, codes and texts.
//!
//! Every error that leaves the server is one of these; inside, layers use their own small enums and convert at
//! the edge. Source: apimachinery `pkg/api/errors`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::field;
use crate::gvk::{GroupKind, GroupResource};

/// One cause in a Status' details.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// Machine-readable reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Text for a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field that it speaks of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// What the error is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The kind, or for most reasons the resource's plural.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Object's uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Causes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Seconds to wait before another try.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A `Status` object of a failed request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; empty where the reference gives none.
    pub reason: &'static str,
    /// Text for a person.
    pub message: String,
    /// Details; absent where the reference has none.
    pub details: Option<Box<Details>>,
}

/// The result of serving a request.
pub type Result<T> = std::result::Result<T, Status>;

impl Status {
    /// An error without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    fn about(mut self, resource: &GroupResource, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: resource.group.to_string(),
            kind: resource.resource.to_string(),
            ..Details::default()
        }));
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    /// Tells the client to wait before another try.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// 404 of an object.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {} not found", field::quote(name)))
            .about(resource, name)
    }

    /// 404 of a path that nobody serves.
    pub fn no_such_resource() -> Self {
        let mut s = Self::new(404, "NotFound", "the server could not find the requested resource");
        s.details = Some(Box::default());
        s
    }

    /// 409 of a create.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{resource} {} already exists", field::quote(name)))
            .about(resource, name)
    }

    /// 409 of an update, with the reason in words.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let text = format!("Operation cannot be fulfilled on {resource} {}: {why}", field::quote(name));
        Self::new(409, "Conflict", text).about(resource, name)
    }

    /// 409 of an update from a version that is no longer the latest.
    pub fn stale(resource: &GroupResource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 403, with the reason in words.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let text = match (resource.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {} is forbidden: {why}", field::quote(name)),
        };
        Self::new(403, "Forbidden", text).about(resource, name)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 400.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", why)
    }

    /// 405; the reference's text.
    pub fn method_not_allowed() -> Self {
        let mut s = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        s.details = Some(Box::default());
        s
    }

    /// 413.
    pub fn too_large(why: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", why)
    }

    /// 500.
    pub fn internal(why: impl std::fmt::Display) -> Self {
        let why = why.to_string();
        Self::new(500, "InternalError", format!("Internal error occurred: {why}")).cause("", why, "")
    }

    /// 422 with a cause per field error. `kind` prints as `Widget.example.com`.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[field::Error]) -> Self {
        // ToAggregate drops repeated texts and brackets several.
        let mut texts: Vec<String> = Vec::new();
        for e in errors {
            let t = e.to_string();
            if !texts.contains(&t) {
                texts.push(t);
            }
        }
        let list = match texts.len() {
            0 => String::from("<nil>"),
            1 => texts.remove(0),
            _ => format!("[{}]", texts.join(", ")),
        };
        let message = format!("{kind} {} is invalid: {list}", field::quote(name));
        let causes = errors
            .iter()
            .map(|e| Cause { reason: e.kind.reason().to_owned(), message: e.body(), field: e.path.clone() })
            .collect();
        Self {
            code: 422,
            reason: "Invalid",
            message,
            details: Some(Box::new(Details {
                name: name.to_owned(),
                group: kind.group.to_string(),
                kind: kind.kind.to_string(),
                causes,
                ..Details::default()
            })),
        }
    }

    /// 410: a version or continue token that the server no longer has.
    pub fn expired(why: impl Into<String>) -> Self {
        Self::new(410, "Expired", why)
    }

    /// The object that goes over the wire.
    pub fn to_value(&self) -> Value {
        let mut v = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            v["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            v["details"] = serde_json::to_value(details).unwrap_or_default();
        }
        v
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_object_reads_as_the_reference_has_it() {
        let s = Status::not_found(&GroupResource::new("example.com", "widgets"), "absent");
        assert_eq!(
            s.to_value(),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "widgets.example.com \"absent\" not found", "reason": "NotFound",
                "details": {"name": "absent", "group": "example.com", "kind": "widgets"}, "code": 404})
        );
    }

    #[test]
    fn several_field_errors_are_bracketed() {
        let s = Status::invalid(
            &GroupKind::new("", "Pod"),
            "p",
            &[field::Error::required("spec.a", ""), field::Error::required("spec.b", "")],
        );
        assert_eq!(s.message, "Pod \"p\" is invalid: [spec.a: Required value, spec.b: Required value]");
    }
}
