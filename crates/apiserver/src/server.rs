//! [`ApiServer`]: the chain that every request goes through, whatever transport it came by.
//!
//! Panic isolation → request info → authentication → audit → impersonation → limits → authorization → handler →
//! response.
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
use http::{HeaderName, HeaderValue, Request, Response, header, request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::admission::Hooks;
use crate::audit::Trail;
use crate::authority::{self, Authority};
use crate::body::{Body, BoxError, Incoming};
use crate::computed::Sources;
use crate::config::{Config, InFlight};
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
/// The header that names a request: the client's, or one that the server makes up.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

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
    pub(crate) computed: Sources,
    impersonation: Impersonation,
    limits: Slots,
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
    /// The request's name; the answer repeats it.
    pub(crate) audit_id: HeaderValue,
    /// Present where somebody is told of this request.
    pub(crate) trail: Option<Trail>,
    /// A long-running request's place among those; it keeps it as long as its body.
    slot: Option<OwnedSemaphorePermit>,
}

/// Warnings of one request, gathered by whoever has one.
pub(crate) type Warnings = Arc<Mutex<Vec<String>>>;

impl Call {
    /// Notes the object that the request's body is, for whoever is told of the request.
    pub(crate) fn asks(&self, object: &serde_json::Value) {
        if let Some(trail) = &self.trail {
            trail.request(object);
        }
    }

    /// Notes the patch that the request's body is.
    pub(crate) fn asks_by_patch(&self, body: &[u8]) {
        if let Some(trail) = &self.trail {
            trail.patch(body);
        }
    }

    /// A header as text; `None` where absent or not printable.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|v| v.to_str().ok())
    }
}

/// Places for requests that may be under way at a time.
struct Slots {
    reading: Arc<Semaphore>,
    writing: Arc<Semaphore>,
    watching: Arc<Semaphore>,
}

impl Slots {
    fn new(most: InFlight) -> Self {
        let slots = |n: usize| Arc::new(Semaphore::new(n.min(Semaphore::MAX_PERMITS)));
        Self { reading: slots(most.reading), writing: slots(most.writing), watching: slots(most.watching) }
    }

    fn enter(&self, info: &RequestInfo) -> Result<Option<OwnedSemaphorePermit>> {
        let slots = match (info.long_running(), info.read_only()) {
            (true, _) => &self.watching,
            // Health and discovery are answered however many others are under way.
            (false, true) if !info.is_resource => return Ok(None),
            (false, true) => &self.reading,
            (false, false) => &self.writing,
        };
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
        let computed = Sources::new(&config.computed, &registry);
        let authority = Authority::new(&config);
        let server = Arc::new(Server {
            stop: CancellationToken::new(),
            registry,
            authority,
            services: Allocator::default(),
            hooks: Hooks::default(),
            computed,
            impersonation: Impersonation::default(),
            limits: Slots::new(config.most),
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
        let panicked = result.is_err();
        let result = result.unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            tracing::error!(panic = text, "a request made the server panic");
            if let Some(trail) = &call.trail {
                trail.panicked(text);
            }
            Err(Status::new(
                500,
                "InternalError",
                "This request caused apiserver to panic. Look in the logs for details.",
            ))
        });
        let mut warnings = std::mem::take(&mut *warnings.lock().unwrap_or_else(PoisonError::into_inner));
        let trail = call.trail.take();
        let mut response = match result {
            Ok(mut answer) => {
                answer.warnings.append(&mut warnings);
                if let Some(trail) = &trail {
                    answer = trail.answered(answer).await;
                }
                respond::response(answer, shape).await
            }
            Err(status) => {
                if let Some(trail) = trail.as_ref().filter(|_| !panicked) {
                    trail.failed(&status);
                }
                let mut r = respond::error(&status, shape).await;
                respond::add_warnings(r.headers_mut(), &warnings);
                r
            }
        };
        response.headers_mut().insert(AUDIT_ID, call.audit_id);
        if let Some(trail) = trail {
            let ending = trail.ending(long, panicked);
            response = response.map(|body| body.holding(ending));
        }
        match call.slot {
            None => response,
            Some(slot) => response.map(|body| body.holding(slot)),
        }
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
        let came = server.config.clock.now();
        let user = authority::authenticate(server, call).inspect_err(|_| {
            call.trail = Trail::begin(server, call, None, came);
        })?;
        call.trail = Trail::begin(server, call, Some(&user), came);
        call.user = self.impersonate(call, user)?;
        let mut slot = server.limits.enter(&call.info)?;
        if call.info.long_running() {
            call.slot = slot.take();
        }
        authority::authorize_request(server, call)?;
        if call.info.is_resource {
            return dispatch::resource(server, call, accepted).await;
        }
        nonresource::serve(server, call).await
    }

    /// In whose name the request is made.
    fn impersonate(&self, call: &Call, user: User) -> Result<User> {
        let server = &self.0;
        let headers = call.parts.headers.iter().filter_map(|(k, v)| Some((k.as_str(), v.to_str().ok()?)));
        let Some(wanted) = impersonation::wanted(headers)? else { return Ok(user) };
        let policy = server.authority.policy(server.config.store.as_ref());
        let other = server.impersonation.resolve(&policy, &authority::attributes(call, &user), &wanted)?;
        if let Some(trail) = &call.trail {
            trail.impersonated(&other);
        }
        Ok(other)
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
        let audit_id =
            parts.headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned().unwrap_or_else(|| {
                HeaderValue::try_from(self.0.config.entropy.uid()).unwrap_or(HeaderValue::from_static(""))
            });
        let call = Call {
            info,
            query,
            parts,
            body: Mutex::new(Some(Incoming::new(body))),
            user: User::default(),
            warnings: Warnings::default(),
            audit_id,
            trail: None,
            slot: None,
        };
        let server = self.clone();
        Box::pin(async move { Ok(server.respond(call).await) })
    }
}
