//! A plain HTTPS client that trusts any certificate: the replayer tests the API, not the TLS chain.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use serde_json::Value;
use tokio_rustls::TlsConnector;

use super::spacing;

/// What the recorder leaves as it is in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'?')
    .remove(b'&')
    .remove(b'=')
    .remove(b'%')
    .remove(b':')
    .remove(b',')
    .remove(b'(')
    .remove(b')')
    .remove(b'!')
    .remove(b'+')
    .remove(b'*')
    .remove(b'@')
    .remove(b'~')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_');

const PATIENCE: Duration = Duration::from_secs(40);

/// The server under test and who we are there.
pub(crate) struct Client {
    authority: String,
    token: String,
    tls: TlsConnector,
}

/// One whole answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) raw: Bytes,
}

impl Answer {
    /// The body as JSON, where it is JSON.
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.raw).ok()
    }
}

impl Client {
    /// For a server such as `https://127.0.0.1:6443`.
    pub(crate) fn new(server: &str, token: &str) -> Result<Self, String> {
        let authority = server.strip_prefix("https://").ok_or("the server's URL must begin with https://")?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TrustAll(provider)))
            .with_no_client_auth();
        Ok(Self {
            authority: authority.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Sends a request on a connection of its own; the body of the answer still streams.
    pub(super) async fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &Value,
    ) -> Result<Response<Incoming>, String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let tcp = tokio::net::TcpStream::connect(&self.authority).await.map_err(|e| text(&e))?;
        let host = self.authority.rsplit_once(':').map_or(&*self.authority, |(h, _)| h);
        let name = ServerName::try_from(host.to_owned()).map_err(|e| text(&e))?;
        let stream = self.tls.connect(name, tcp).await.map_err(|e| text(&e))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| text(&e))?;
        tokio::spawn(connection);
        let request = self.request(method, path, body, headers)?;
        sender.send_request(request).await.map_err(|e| text(&e))
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &Value,
    ) -> Result<Request<Full<Bytes>>, String> {
        let data = match body {
            None => None,
            Some(Value::String(s)) => Some(Bytes::from(s.clone())),
            Some(other) => Some(Bytes::from(spacing::text(other)?)),
        };
        let mut all: Vec<(String, Option<String>)> = vec![
            ("Accept".into(), Some("application/json".into())),
            ("User-Agent".into(), Some("fidelity/1.0".into())),
        ];
        if !self.token.is_empty() {
            all.push(("Authorization".into(), Some(format!("Bearer {}", self.token))));
        }
        for (name, value) in headers.as_object().into_iter().flatten() {
            all.retain(|(n, _)| n != name);
            all.push((name.clone(), value.as_str().map(str::to_owned)));
        }
        if data.is_some() && !all.iter().any(|(n, _)| n == "Content-Type") {
            all.push(("Content-Type".into(), Some("application/json".into())));
        }
        let uri = utf8_percent_encode(path, PATH).to_string();
        let mut request = Request::builder().method(method).uri(uri).header("Host", &self.authority);
        for (name, value) in &all {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        request.body(Full::new(data.unwrap_or_default())).map_err(|e| e.to_string())
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &Value,
    ) -> Result<Answer, String> {
        let exchange = async {
            let response = self.open(method, path, body, headers).await?;
            let (parts, body) = response.into_parts();
            let raw = body.collect().await.map_err(|e| e.to_string())?.to_bytes();
            Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, raw })
        };
        tokio::time::timeout(PATIENCE, exchange).await.map_err(|_| "no answer within 40 s".to_owned())?
    }
}

/// Accepts every certificate; signatures are still checked.
#[derive(Debug)]
struct TrustAll(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for TrustAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
