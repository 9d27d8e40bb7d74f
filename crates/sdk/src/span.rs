//! The span around one reconcile: what logs say before each line, and what a trace knows of it.
//!
//! It is no log of its own and knows no exporter: whoever subscribes to `tracing` gets it. It begins with the operator
//! and the key; all else is recorded when the reconcile is over, so that log lines within it stay short. Names are
//! those of OpenTelemetry's semantic conventions and of its collector; `result` has the values that the metric
//! `controller_runtime_reconcile_total` has, and `lost`. Invariant: where nobody subscribes, nothing is computed.

use http::Method;
use tracing::field::Empty;
use tracing::{Span, info_span, record_all};

use crate::error::{Error, Result};
use crate::key::Key;
use crate::operator::Next;

/// What the conventions want for an error of no class.
const OTHER: &str = "_OTHER";

/// The span of a reconcile that begins.
pub(crate) fn begin(operator: &'static str, key: &Key) -> Span {
    info_span!(
        "reconcile",
        operator,
        %key,
        k8s.object.kind = Empty,
        k8s.namespace.name = Empty,
        k8s.object.name = Empty,
        result = Empty,
        error.type = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// Says what it was about and how it ended; `None` where the key came to be another process' in the middle of it.
/// Of an `ordinary` error it says the class only: what the next reconcile mends is no failure.
pub(crate) fn end(span: &Span, kind: &str, key: &Key, done: Option<&Result<Next>>, ordinary: bool) {
    if span.is_disabled() {
        return;
    }
    record_all!(span, k8s.object.kind = kind, k8s.object.name = key.name());
    if let Some(namespace) = key.namespace() {
        span.record("k8s.namespace.name", namespace);
    }
    match done {
        None => span.record("result", "lost"),
        Some(Ok(Next { after: None })) => span.record("result", "success"),
        Some(Ok(Next { after: Some(_) })) => span.record("result", "requeue_after"),
        Some(Err(error)) => {
            record_all!(span, result = "error", error.type = class(error));
            if !ordinary {
                let text = error.to_string();
                record_all!(span, otel.status_code = "ERROR", otel.status_description = text.as_str());
            }
            span
        }
    };
}

/// What a request's span within a reconcile is called: kube takes it from the request's extensions, and gives the
/// requests of its `Api` the same names.
pub(crate) fn request(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "POST" => "create",
        "PUT" => "replace",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "request",
    }
}

/// The class of an error: the API server's reason where it is an answer. There are few of them.
fn class(error: &Error) -> &str {
    error.status().map(|s| s.reason.as_str()).filter(|r| !r.is_empty()).unwrap_or(OTHER)
}
