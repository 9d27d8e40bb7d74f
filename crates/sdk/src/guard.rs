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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Response;
    use http_body_util::Full;

    use super::*;

    #[tokio::test]
    async fn no_write_passes_a_closed_fence() {
        let service = tower::service_fn(|_: Request<Body>| async {
            Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from_static(b"{}"))))
        });
        let (fence, metrics) = (Fence::closed(), Arc::new(Common::default()));
        let client = guarded(Client::new(service, "shop"), fence.clone(), metrics);
        assert_eq!(client.default_namespace(), "shop");
        let ask = async |method: Method| {
            let request = Request::builder().method(method).uri("/api/v1/pods").body(Vec::new()).unwrap();
            client.request_text(request).await.map_err(|e| e.to_string())
        };
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let why = ask(method).await.unwrap_err();
            assert!(why.contains("no longer holds its lease"), "{why}");
        }
        assert_eq!(ask(Method::GET).await.unwrap(), "{}");
        fence.open_until(tokio::time::Instant::now() + std::time::Duration::from_secs(10));
        assert_eq!(ask(Method::POST).await.unwrap(), "{}");
    }
}
