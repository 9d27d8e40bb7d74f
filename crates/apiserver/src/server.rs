//! [`ApiServer`]: the chain that every request goes through, whatever transport it came by.
//!
//! Panic isolation → request info → limits → authentication → impersonation → authorization → handler → response.
//! Invariant: the service never errs; what goes wrong becomes a `Status` response.

use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use homeostat_access::User;
use homeostat_access::impersonation::{self, Impersonation};
use homeostat_model::Status;
use homeostat_model::status::Result;
use http::{Request, Response, header, request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::admission::Hooks;
use crate::audit::Event;
use crate::authority::{self, Authority};
use crate::body::{Body, BoxError, Incoming};
use crate::config::Config;
use crate::negotiate::{self, Accepted, Format};
use crate::nonresource;
use crate::options::Query;
use crate::registry::Registry;
use crate::request_info::RequestInfo;
use crate::respond::{self, Answer, Shape};
use crate::services::Allocator;
use crate::{bootstrap, crds, dispatch, upkeep};

/// Time that a request other than a watch may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Reading requests at a time, watches aside; the reference's default.
const READING: usize = 400;
/// Writing requests at a time; the reference's default.
const WRITING: usize = 200;

/// An API server. Clones share everything; each is a tower service.
#[derive(Clone)]
pub struct ApiServer(pub(crate) Arc<Server>);

/// What all requests share.
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) stop: CancellationToken,
    pub(crate) registry: Registry,
    pub(crate) authority: Authority,
    pub(crate) services: Allocator,
    pub(crate) hooks: Hooks,
    impersonation: Impersonation,
    limits: InFlight,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// One request on its way to a handler.
pub(crate) struct Call {
    pub(crate) parts: request::Parts,
    pub(crate) info: RequestInfo,
    pub(crate) query: Query,
    /// The body, until it is read. (The lock makes a call shareable; nobody contends for it.)
    pub(crate) body: Mutex<Option<Incoming>>,
    /// Who asks; known once the request is authenticated.
    pub(crate) user: User,
    /// What the answer is to warn of, be it good or bad.
    pub(crate) warnings: Warnings,
}

/// Warnings of one request, gathered by whoever has one.
pub(crate) type Warnings = Arc<Mutex<Vec<String>>>;

impl Call {
    /// A header as text; `None` where absent or not printable.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|v| v.to_str().ok())
    }
}

/// Requests that may be under way at a time, long-running ones aside.
struct InFlight {
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
}

impl InFlight {
    fn enter(&self, info: &RequestInfo) -> Result<Option<OwnedSemaphorePermit>> {
        if info.long_running() || (!info.is_resource && info.read_only()) {
            return Ok(None);
        }
        let slots = if info.read_only() { &self.reading } else { &self.writing };
        slots.clone().try_acquire_owned().map(Some).map_err(|_| {
            Status::new(429, "TooManyRequests", "Too many requests, please try again later.").retry_after(1)
        })
    }
}

impl ApiServer {
    /// A server on a store, with the objects that a fresh cluster has. Must be called within a tokio runtime: a task
    /// brings custom resources to life. Takes no time to speak of: what a first request can do is left to it.
    pub fn new(config: Config) -> Self {
        let registry = Registry::new(homeostat_resources::builtin::resources());
        let authority = Authority::new(&config);
        let server = Arc::new(Server {
            stop: CancellationToken::new(),
            registry,
            authority,
            services: Allocator::default(),
            hooks: Hooks::default(),
            impersonation: Impersonation::default(),
            limits: InFlight {
                reading: Arc::new(Semaphore::new(READING)),
                writing: Arc::new(Semaphore::new(WRITING)),
            },
            config,
        });
        bootstrap::write(&server);
        let seen = crds::load(&server);
        tokio::spawn(crds::run(Arc::downgrade(&server), server.stop.clone(), seen));
        tokio::spawn(upkeep::run(Arc::downgrade(&server), server.stop.clone()));
        Self(server)
    }

    /// Ends all watches, and new ones at once; other requests are still served.
    pub fn drain(&self) {
        self.0.stop.cancel();
    }

    async fn respond(self, mut call: Call) -> Response<Body> {
        let mut shape = Shape {
            format: Format::Json,
            gzip: negotiate::takes_gzip(call.header(header::ACCEPT_ENCODING))
                && call.info.read_only()
                && call.info.verb != "watch",
            head: call.parts.method == http::Method::HEAD,
        };
        let accepted = negotiate::accept(
            call.header(header::ACCEPT),
            call.query.get("pretty"),
            call.header(header::USER_AGENT).unwrap_or_default(),
            true,
            self.packed(&call.info),
        );
        if let Ok(a) = &accepted {
            shape.format = a.format;
        }
        let long = call.info.long_running();
        let warnings = call.warnings.clone();
        let work = AssertUnwindSafe(self.handle(&mut call, accepted)).catch_unwind();
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
        let mut warnings = std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner));
        let response = match result {
            Ok(mut answer) => {
                answer.warnings.append(&mut warnings);
                respond::response(answer, shape).await
            }
            Err(status) => {
                let mut r = respond::error(&status, shape).await;
                respond::add_warnings(r.headers_mut(), &warnings);
                r
            }
        };
        if let Some(audit) = &self.0.config.audit {
            let code = response.status().as_u16();
            audit.answered(&Event { user: &call.user, info: &call.info, code });
        }
        response
    }

    /// Whether what a request names has a form in protobuf, views aside.
    fn packed(&self, info: &RequestInfo) -> bool {
        let table = self.0.registry.table();
        let target = table.target(&info.group, &info.version, &info.resource);
        // The Scale of a custom resource is of a built-in type.
        info.is_resource && target.is_some_and(|t| t.built_in() || info.subresource == "scale")
    }

    async fn handle(&self, call: &mut Call, accepted: Result<Accepted>) -> Result<Answer> {
        let server = &self.0;
        let _slot = server.limits.enter(&call.info)?;
        call.user = self.user(call)?;
        authority::authorize(server, &authority::attributes(call, &call.user))?;
        if call.info.is_resource {
            return dispatch::resource(server, call, accepted).await;
        }
        nonresource::serve(server, call).await
    }

    /// Whose request it is, impersonation included.
    fn user(&self, call: &Call) -> Result<User> {
        let server = &self.0;
        let user = authority::authenticate(server, call)?;
        let headers = call.parts.headers.iter().filter_map(|(k, v)| Some((k.as_str(), v.to_str().ok()?)));
        let Some(wanted) = impersonation::wanted(headers)? else { return Ok(user) };
        let policy = server.authority.policy(server.config.store.as_ref());
        server.impersonation.resolve(&policy, &authority::attributes(call, &user), &wanted)
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
        let call = Call {
            info,
            query,
            parts,
            body: Mutex::new(Some(Incoming::new(body))),
            user: User::default(),
            warnings: Warnings::default(),
        };
        let server = self.clone();
        Box::pin(async move { Ok(server.respond(call).await) })
    }
}
