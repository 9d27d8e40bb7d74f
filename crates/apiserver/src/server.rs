//! [`ApiServer`]: the chain that every request goes through, whatever transport it came by.
//!
//! Panic isolation → request info → limits → authentication → impersonation → authorization → handler → response.
//! Invariant: the service never errs; what goes wrong becomes a `Status` response.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use homeostat_model::Status;
use homeostat_model::status::Result;
use http::{Request, Response, header, request};
use tokio_util::sync::CancellationToken;

use crate::body::{Body, BoxError, Incoming};
use crate::config::Config;
use crate::negotiate::{self, Format};
use crate::options::Query;
use crate::request_info::RequestInfo;
use crate::respond::{self, Answer, Shape};

/// Time that a request other than a watch may take.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// An API server. Clones share everything; each is a tower service.
#[derive(Clone)]
pub struct ApiServer(pub(crate) Arc<Server>);

/// What all requests share.
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) stop: CancellationToken,
}

/// One request on its way to a handler.
pub(crate) struct Call {
    pub(crate) parts: request::Parts,
    pub(crate) info: RequestInfo,
    pub(crate) query: Query,
    pub(crate) body: Option<Incoming>,
}

impl Call {
    /// A header as text; `None` where absent or not printable.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|v| v.to_str().ok())
    }
}

impl ApiServer {
    /// A server on a store. Takes no time to speak of: what a first request can do is left to it.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(Server { config, stop: CancellationToken::new() }))
    }

    /// Ends all watches, and new ones at once; other requests are still served.
    pub fn drain(&self) {
        self.0.stop.cancel();
    }

    async fn respond(self, call: Call) -> Response<Body> {
        let shape = Shape {
            format: Format::Json,
            gzip: negotiate::takes_gzip(call.header(header::ACCEPT_ENCODING)) && call.info.read_only(),
            head: call.parts.method == http::Method::HEAD,
        };
        let long = call.info.long_running();
        let work = AssertUnwindSafe(self.handle(call)).catch_unwind();
        let result = if long {
            work.await
        } else {
            match tokio::time::timeout(REQUEST_TIMEOUT, work).await {
                Ok(r) => r,
                Err(_) => Ok(Err(Status::new(
                    504,
                    "Timeout",
                    "request did not complete within the allotted timeout",
                ))),
            }
        };
        let result = result.unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            tracing::error!(panic = text, "a request made the server panic");
            Err(Status::new(
                500,
                "InternalError",
                "This request caused apiserver to panic. Look in the logs for details.",
            ))
        });
        match result {
            Ok(answer) => respond::response(answer, shape).await,
            Err(status) => respond::error(&status, shape).await,
        }
    }

    async fn handle(&self, call: Call) -> Result<Answer> {
        crate::nonresource::serve(&self.0, &call)
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let info = RequestInfo::parse(&parts.method, parts.uri.path(), &query);
        let call = Call { info, query, parts, body: Some(Incoming::new(body)) };
        let server = self.clone();
        Box::pin(async move { Ok(server.respond(call).await) })
    }
}
