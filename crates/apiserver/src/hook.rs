//! Calling webhooks: one POST of JSON over TLS of its own, with limits on time and size.
//!
//! What is asked and what the answer means is the caller's. It keeps no connections. Invariant: a webhook that is
//! slow, endless or gone costs its caller the timeout and nobody else anything. Errors are in Go's words.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use homeostat_schema::decode::{parse_json, parse_yaml};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::server::Server;

/// Levels of nesting of an answer.
const DEPTH: usize = 128;
/// Most bytes of an answer.
const MOST: usize = 3 * 1024 * 1024;

/// Where a webhook is.
struct Place {
    /// As errors show it.
    url: String,
    /// Name that its certificate must have.
    name: String,
    /// Where to connect to.
    address: String,
    path: String,
}

/// Posts `body` to the webhook of a `clientConfig`; its answer as JSON. The error is what Go's client says.
pub(crate) async fn call(
    server: &Server,
    config: &Value,
    body: Bytes,
    timeout: Duration,
) -> Result<Value, String> {
    let seconds = timeout.as_secs();
    let place = place(server, config, seconds)?;
    let url = place.url.clone();
    let post = |why: String| format!("Post \"{url}\": {why}");
    let work = exchange(&place, config, body);
    match tokio::time::timeout(timeout, work).await {
        Err(_) => Err(post("context deadline exceeded".to_owned())),
        Ok(Err(Failed::Transport(why))) => Err(post(why)),
        Ok(Err(Failed::Answer(why))) => Err(why),
        Ok(Ok(bytes)) => read(&bytes),
    }
}

/// The answer's object: JSON, or YAML, as the reference takes it.
fn read(bytes: &[u8]) -> Result<Value, String> {
    let wrong = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let parsed = parse_json(bytes, DEPTH).or_else(|e| parse_yaml(bytes, DEPTH).map_err(|_| e));
    match parsed.map_err(|e| wrong(e.to_string()))?.0 {
        v @ Value::Object(_) => Ok(v),
        other => {
            let what = match other {
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                _ => "null",
            };
            Err(wrong(format!(
                "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
            )))
        }
    }
}

enum Failed {
    Transport(String),
    Answer(String),
}

fn place(server: &Server, config: &Value, seconds: u64) -> Result<Place, String> {
    if let Some(text) = config["url"].as_str() {
        let uri: http::Uri = text.parse().map_err(|e| format!("parse \"{text}\": {e}"))?;
        let host = uri.host().unwrap_or_default().to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let path = uri.path_and_query().map_or("/", |p| p.as_str());
        let join = if path.contains('?') { '&' } else { '?' };
        return Ok(Place {
            url: format!("{text}{join}timeout={seconds}s"),
            name: host.trim_matches(['[', ']']).to_owned(),
            address: format!("{host}:{port}"),
            path: format!("{path}{join}timeout={seconds}s"),
        });
    }
    let service = &config["service"];
    let text = |key: &str| service[key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let port = service["port"].as_u64().unwrap_or(443);
    let path = format!("{}?timeout={seconds}s", if text("path").is_empty() { "/" } else { text("path") });
    let url = format!("https://{name}.{namespace}.svc:{port}{path}");
    let store = &server.config.store;
    if store.get("services", &format!("{namespace}/{name}")).is_none() {
        return Err(format!("Post \"{url}\": service \"{name}\" not found"));
    }
    // The server is its own network: it goes where the Service's endpoints say.
    let endpoints = store.get("endpoints", &format!("{namespace}/{name}"));
    let endpoints: Value = endpoints.and_then(|r| serde_json::from_slice(&r.bytes).ok()).unwrap_or_default();
    let found =
        endpoints["subsets"].as_array().into_iter().flatten().find_map(|s| {
            Some((s["addresses"][0]["ip"].as_str()?.to_owned(), s["ports"][0]["port"].as_u64()?))
        });
    match found {
        Some((ip, port)) => {
            Ok(Place { url, name: format!("{name}.{namespace}.svc"), address: format!("{ip}:{port}"), path })
        }
        None => Err(format!("Post \"{url}\": no endpoints available for service \"{name}\"")),
    }
}

async fn exchange(place: &Place, config: &Value, body: Bytes) -> Result<Bytes, Failed> {
    let tcp = TcpStream::connect(&place.address).await.map_err(|e| {
        let why = match e.kind() {
            io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
            _ => e.to_string(),
        };
        Failed::Transport(format!("dial tcp {}: {why}", place.address))
    })?;
    let _ = tcp.set_nodelay(true);
    let name = ServerName::try_from(place.name.clone()).map_err(|e| Failed::Transport(e.to_string()))?;
    let tls = TlsConnector::from(Arc::new(client(config))).connect(name, tcp).await.map_err(|e| {
        // An authority of the same name with another key is as unknown as one of another name.
        let unknown = ["UnknownIssuer", "BadSignature"].iter().any(|why| e.to_string().contains(why));
        let why =
            if unknown { "x509: certificate signed by unknown authority".to_owned() } else { e.to_string() };
        Failed::Transport(format!("tls: failed to verify certificate: {why}"))
    })?;
    send(TokioIo::new(tls), place, body).await
}

fn client(config: &Value) -> ClientConfig {
    let bundle = config["caBundle"].as_str().and_then(|b| STANDARD.decode(b).ok()).unwrap_or_default();
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(&bundle).flatten() {
        // A certificate that cannot be a root leaves the others.
        let _ = roots.add(cert);
    }
    ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

async fn send<S>(io: TokioIo<S>, place: &Place, body: Bytes) -> Result<Bytes, Failed>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |e: hyper::Error| {
        let cause = std::error::Error::source(&e).and_then(|s| s.downcast_ref::<io::Error>());
        let ended = cause.is_some_and(|c| c.kind() == io::ErrorKind::UnexpectedEof);
        Failed::Transport(if e.is_incomplete_message() || ended { "EOF".to_owned() } else { e.to_string() })
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.map_err(broken)?;
    let driver = tokio::spawn(connection);
    let request = http::Request::post(&place.path)
        .header("Host", &place.name)
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, */*")
        .header("User-Agent", "kube-apiserver-admission")
        .body(Full::new(body))
        .map_err(|e| Failed::Transport(e.to_string()))?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let bytes = Limited::new(response.into_body(), MOST).collect().await;
    driver.abort();
    let bytes = bytes.map_err(|e| Failed::Transport(e.to_string()))?.to_bytes();
    if !status.is_success() {
        let text = String::from_utf8_lossy(&bytes);
        return Err(Failed::Answer(match text.trim() {
            // Only a Status would say more.
            "" => "an error on the server (\"unknown\") has prevented the request from succeeding".to_owned(),
            text if text.starts_with('{') => {
                "an error on the server (\"unknown\") has prevented the request from succeeding".to_owned()
            }
            text => format!("an error on the server (\"{text}\") has prevented the request from succeeding"),
        }));
    }
    Ok(bytes)
}
