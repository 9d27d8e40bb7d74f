//! The server that API servers ask: TLS with a certificate that can be exchanged while it serves, and the way from a
//! path to a webhook.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use kube::Client;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::Value;
use tokio::time::Instant;

use super::{Role, Webhook};
use crate::metrics::{Common, count};
use crate::serve::{Answer, text};

/// Most bytes of a review: twice an object's limit (old and new), as the API server sends at most.
const MOST: usize = 3 * 1024 * 1024;
/// Most time to read one.
const PATIENCE: Duration = Duration::from_secs(30);

/// The certificate that is served now.
#[derive(Debug, Default)]
pub(super) struct Served(RwLock<Option<Arc<CertifiedKey>>>);

impl Served {
    /// Serves this one from now on. Open connections go on with theirs.
    pub(super) fn set(&self, key: Arc<CertifiedKey>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(key);
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// TLS 1.2 and 1.3 with the certificate of `served`.
pub(super) fn tls(served: Arc<Served>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(served);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Answers reviews by their paths.
pub(super) fn answers(webhooks: &[Webhook], client: Client, metrics: Arc<Common>) -> Answer {
    // Conversions of all kinds have one path.
    let mut by_path: BTreeMap<String, Vec<Webhook>> = BTreeMap::new();
    for webhook in webhooks {
        by_path.entry(webhook.path()).or_default().push(webhook.clone());
    }
    let by_path = Arc::new(by_path);
    Arc::new(move |request| {
        let (by_path, client, metrics) = (by_path.clone(), client.clone(), metrics.clone());
        answer(by_path, client, metrics, request).boxed()
    })
}

async fn answer(
    by_path: Arc<BTreeMap<String, Vec<Webhook>>>,
    client: Client,
    metrics: Arc<Common>,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let Some(webhooks) = by_path.get(&path) else {
        return refuse(StatusCode::NOT_FOUND, "no webhook of this path");
    };
    let began = Instant::now();
    metrics.asked(&path);
    let response = review(webhooks, client, &metrics, request).await;
    metrics.answered(&path, response.status().as_u16(), began.elapsed());
    response
}

fn refuse(code: StatusCode, why: &str) -> Response<Full<Bytes>> {
    text(code, "text/plain; charset=utf-8", format!("{why}\n"))
}

async fn review(
    webhooks: &[Webhook],
    client: Client,
    metrics: &Common,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    if request.method() != Method::POST {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "reviews are posted");
    }
    let kind = request.headers().get(http::header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind != "application/json" {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "reviews are application/json");
    }
    let body = Limited::new(request.into_body(), MOST).collect();
    let body = match tokio::time::timeout(PATIENCE, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(e)) if e.is::<http_body_util::LengthLimitError>() => {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, "a review has at most 3 MiB");
        }
        Ok(Err(_)) => return refuse(StatusCode::BAD_REQUEST, "the body broke off"),
        Err(_) => return refuse(StatusCode::REQUEST_TIMEOUT, "the body didn't come"),
    };
    let review: Value = match serde_json::from_slice(&body) {
        Ok(review) => review,
        Err(e) => return refuse(StatusCode::BAD_REQUEST, &format!("not JSON: {e}")),
    };
    let expected = match webhooks.first().map(|w| w.role) {
        Some(Role::Converting) => ("apiextensions.k8s.io/v1", "ConversionReview"),
        _ => ("admission.k8s.io/v1", "AdmissionReview"),
    };
    if review["apiVersion"] != expected.0 || review["kind"] != expected.1 || !review["request"].is_object() {
        return refuse(StatusCode::BAD_REQUEST, &format!("not a {} of {}", expected.1, expected.0));
    }
    let Some(webhook) = choose(webhooks, &review) else {
        return refuse(StatusCode::BAD_REQUEST, "no conversion of such objects");
    };
    let (answer, panicked) = super::review::answer(webhook, review, Some(client)).await;
    if panicked {
        count(&metrics.webhook_panics);
    }
    text(StatusCode::OK, "application/json", answer.to_string())
}

/// Of the webhooks of one path the one that is about the review's objects.
fn choose<'a>(webhooks: &'a [Webhook], review: &Value) -> Option<&'a Webhook> {
    let object = &review["request"]["objects"][0];
    if object.is_null() || webhooks.len() == 1 {
        return webhooks.first();
    }
    let group = object["apiVersion"].as_str()?.split_once('/').map_or("", |(group, _)| group);
    webhooks.iter().find(|w| w.target.group == group && object["kind"] == w.target.kind.as_str())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hyper::client::conn::http1::{SendRequest, handshake};
    use hyper_util::rt::TokioIo;
    use k8s_openapi::api::core::v1::ConfigMap;
    use rustls::{ClientConfig, RootCertStore};
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, ServerName};
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::super::Validator;
    use super::super::certificates::Bundle;
    use super::*;
    use crate::serve::serve;

    struct Anything;

    impl Validator for Anything {
        type Resource = ConfigMap;
    }

    struct World {
        address: SocketAddr,
        served: Arc<Served>,
        stop: CancellationToken,
    }

    async fn start() -> World {
        let client = Client::new(
            tower::service_fn(|_: Request<kube::client::Body>| async {
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default()))
            }),
            "default",
        );
        let served = Arc::new(Served::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let answers = answers(&[Webhook::validating(Anything)], client, Arc::default());
        tokio::spawn(serve(listener, Some(tls(served.clone()).unwrap()), answers, stop.clone()));
        World { address, served, stop }
    }

    impl World {
        /// A connection of a client that trusts the roots of `bundle`.
        async fn connect(&self, bundle: &Bundle) -> std::io::Result<SendRequest<Full<Bytes>>> {
            let mut roots = RootCertStore::empty();
            for root in CertificateDer::pem_slice_iter(bundle.roots.as_bytes()) {
                roots.add(root.unwrap()).unwrap();
            }
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let stream = tokio::net::TcpStream::connect(self.address).await?;
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
            let (sender, connection) = handshake(TokioIo::new(tls)).await.unwrap();
            tokio::spawn(connection);
            Ok(sender)
        }
    }

    async fn ask(sender: &mut SendRequest<Full<Bytes>>, path: &str, body: String) -> (u16, Value) {
        let request = Request::post(path)
            .header("host", "x")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        sender.ready().await.unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    fn review() -> String {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request":
            {"uid": "u", "operation": "CREATE", "object": {"metadata": {"name": "a"}}}})
        .to_string()
    }

    const PATH: &str = "/validate--v1-configmap";

    #[tokio::test]
    async fn a_certificate_is_exchanged_without_dropping_connections() {
        let world = start().await;
        let now = homeostat_model::Clock::system().now();
        let (first, second) =
            (Bundle::new("127.0.0.1", now).unwrap(), Bundle::new("127.0.0.1", now).unwrap());
        // Nothing to serve yet: no handshake succeeds.
        assert!(world.connect(&first).await.is_err());
        world.served.set(first.certified().unwrap());
        let mut old = world.connect(&first).await.unwrap();
        assert_eq!(ask(&mut old, PATH, review()).await.1["response"]["allowed"], true);
        world.served.set(second.certified().unwrap());
        assert_eq!(
            ask(&mut old, PATH, review()).await.1["response"]["allowed"],
            true,
            "the connection goes on"
        );
        let mut new = world.connect(&second).await.unwrap();
        assert_eq!(ask(&mut new, PATH, review()).await.0, 200);
        assert!(world.connect(&first).await.is_err(), "the old roots don't know it");
        world.stop.cancel();
    }

    #[tokio::test]
    async fn what_is_no_review_is_refused() {
        let world = start().await;
        let bundle = Bundle::new("127.0.0.1", homeostat_model::Clock::system().now()).unwrap();
        world.served.set(bundle.certified().unwrap());
        for (path, body, code) in [
            ("/validate", review(), 404),
            (PATH, "{".into(), 400),
            (PATH, "[]".into(), 400),
            (PATH, json!({"apiVersion": "v1", "kind": "Pod"}).to_string(), 400),
            (PATH, review().replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1"), 400),
            (PATH, format!("{}{}", review(), " ".repeat(MOST)), 413),
            (PATH, review(), 200),
        ] {
            let mut sender = world.connect(&bundle).await.unwrap();
            assert_eq!(ask(&mut sender, path, body).await.0, code, "{path}");
        }
        world.stop.cancel();
    }
}
