//! The client of a manager: it counts requests, and sends no write while the fence is closed.
//!
//! It stands between an operator and the client that it was given, so nothing that an operator writes goes past it.

use std::sync::Arc;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tower::BoxError;

use crate::election::Fence;
use crate::metrics::Common;

/// `inner`, counted and fenced.
pub(crate) fn guarded(inner: Client, fence: Fence, metrics: Arc<Common>) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, metrics) = (inner.clone(), metrics.clone());
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let allowed = if reads { Ok(()) } else { fence.check() };
        async move {
            allowed?;
            let method = request.method().as_str().to_owned();
            let answer = inner.send(request).await;
            metrics.requested(&method, answer.as_ref().map_or(0, |a| a.status().as_u16()));
            Ok::<_, BoxError>(answer?)
        }
    });
    Client::new(service, namespace)
}
