//! The way to the collector: one HTTP request at a time, on the program's runtime.
//!
//! The library sends from a thread that has no runtime, and says of an error only that there was one; so requests are
//! spawned, and errors told here: once when the collector gets out of reach, once when it is back. It doesn't try again,
//! the library does. Invariant: what it says is said outside of any span, so it is never exported itself.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::runtime::Handle;
use tracing::{info, warn};

use super::settings::Settings;

/// A client of one collector.
#[derive(Debug)]
pub(super) struct Client {
    http: HyperClient<HttpsConnector<HttpConnector>>,
    runtime: Handle,
    endpoint: Uri,
    failing: AtomicBool,
}

impl Client {
    pub(super) fn new(settings: &Settings, runtime: Handle) -> Result<Self, String> {
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls(settings)?).https_or_http().enable_http1();
        Ok(Self {
            http: HyperClient::new(connector.build(), settings.timeout, None),
            runtime,
            endpoint: settings.endpoint.clone(),
            failing: AtomicBool::new(false),
        })
    }

    fn tell(&self, answer: &Result<Response<Bytes>, HttpError>) {
        let why = match answer {
            Ok(response) if response.status().is_success() => {
                if self.failing.swap(false, Ordering::Relaxed) {
                    info!("traces are exported to {} again", self.endpoint);
                }
                return;
            }
            Ok(response) => format!("it answers {}", response.status()),
            Err(error) => all(&**error),
        };
        if !self.failing.swap(true, Ordering::Relaxed) {
            warn!("traces can't be exported to {}, and get lost: {why}", self.endpoint);
        }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let http = self.http.clone();
        let sent = self.runtime.spawn(async move { http.send_bytes(request).await });
        let answer = sent.await.unwrap_or_else(|stopped| Err(stopped.into()));
        self.tell(&answer);
        answer
    }
}

/// Whom to trust. Reading the machine's authorities takes a while, so they are read only where they are needed.
fn tls(settings: &Settings) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if settings.endpoint.scheme_str() == Some("https") {
        match &settings.certificate {
            Some(path) => {
                let failed = |why: &dyn Error| format!("the certificates of {}: {why}", path.display());
                for certificate in CertificateDer::pem_file_iter(path).map_err(|e| failed(&e))? {
                    roots.add(certificate.map_err(|e| failed(&e))?).map_err(|e| failed(&e))?;
                }
            }
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() {
            return Err("no certificate authority is known here; name one's file with \
                        OTEL_EXPORTER_OTLP_CERTIFICATE, or export over http://"
                .to_owned());
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(config.map_err(|e| e.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

/// An error and its causes in one line, each text once.
fn all(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text
}
