//! An HTTPS server that answers admission and conversion webhooks by fixed rules and keeps what it was asked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

#[derive(Default)]
struct State {
    rules: BTreeMap<String, Value>,
    asked: BTreeMap<String, Vec<(Value, String)>>,
}

/// The running server.
pub(super) struct Hooks {
    /// Where it listens on 127.0.0.1.
    pub(super) port: u16,
    /// Its CA's certificate, PEM in base64, as a `caBundle` has it.
    pub(super) ca: String,
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hooks {
    /// Starts it on a free port.
    pub(super) async fn start() -> Result<Self, String> {
        let (ca, tls) = certificates().map_err(|e| e.to_string())?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (tls, state) = (tls.clone(), shared.clone());
                tokio::spawn(async move {
                    let Ok(stream) = tls.accept(tcp).await else { return };
                    let service = hyper::service::service_fn(move |request| serve(state.clone(), request));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Ok(Self { port, ca, state, task })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a hook's rule and forgets what it was asked.
    pub(super) fn rule(&self, name: &str, rule: Value) {
        let mut state = self.lock();
        state.rules.insert(name.to_owned(), rule);
        state.asked.insert(name.to_owned(), Vec::new());
    }

    /// What a hook was asked since its rule was set, each with its text.
    pub(super) fn asked(&self, name: &str) -> Vec<(Value, String)> {
        self.lock().asked.get(name).cloned().unwrap_or_default()
    }
}

async fn serve(
    state: Arc<Mutex<State>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let name = request.uri().path().trim_matches('/').to_owned();
    let body = request.into_body().collect().await.map(|b| b.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let rule = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .asked
            .entry(name.clone())
            .or_default()
            .push((review.clone(), String::from_utf8_lossy(&body).into_owned()));
        state.rules.get(&name).cloned().unwrap_or_else(|| json!({"allowed": true}))
    };
    if let Some(seconds) = rule["sleep"].as_f64() {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    }
    let (status, body) = answer(&rule, &review);
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert("Content-Type", http::HeaderValue::from_static("application/json"));
    Ok(response)
}

fn answer(rule: &Value, review: &Value) -> (u16, String) {
    if let (Some(status), Some(raw)) = (rule["status"].as_u64(), rule.get("raw")) {
        let text = raw.as_str().map_or_else(|| raw.to_string(), str::to_owned);
        return (status as u16, text);
    }
    let request = &review["request"];
    if rule.get("convert").is_some() {
        return (200, convert(rule, review).to_string());
    }
    let allowed = rule.get("allowed").cloned().unwrap_or(true.into());
    let mut response = json!({"uid": request["uid"], "allowed": allowed});
    for key in ["warnings", "auditAnnotations"] {
        if let Some(v) = rule.get(key) {
            response[key] = v.clone();
        }
    }
    if let Some(deny) = rule.get("deny") {
        response["status"] = deny.clone();
    }
    if let Some(patch) = rule.get("patch") {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    for (k, v) in rule["response"].as_object().into_iter().flatten() {
        response[k] = v.clone();
    }
    (
        200,
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
            .to_string(),
    )
}

/// A conversion webhook that renames fields of `spec` by a table for each desired version.
fn convert(rule: &Value, review: &Value) -> Value {
    let request = &review["request"];
    let desired = &request["desiredAPIVersion"];
    let table = desired.as_str().and_then(|v| rule["convert"].get(v)).and_then(Value::as_object);
    let converted: Vec<Value> = request["objects"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|object| {
            let mut object = object.clone();
            for (old, new) in table.into_iter().flatten() {
                if let (Some(spec), Some(new)) = (object["spec"].as_object_mut(), new.as_str())
                    && let Some(value) = spec.remove(old)
                {
                    spec.insert(new.to_owned(), value);
                }
            }
            object["apiVersion"] = desired.clone();
            object
        })
        .collect();
    let result = rule.get("result").cloned().unwrap_or_else(|| json!({"status": "Success"}));
    json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {"uid": request["uid"], "convertedObjects": converted, "result": result}})
}

fn certificates() -> Result<(String, TlsAcceptor), Box<dyn std::error::Error>> {
    let ca_key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "fidelity-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&ca_key)?;
    let issuer = Issuer::new(params, ca_key);
    let key = KeyPair::generate()?;
    let cert = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?
        .signed_by(&key, &issuer)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![cert.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )?;
    Ok((STANDARD.encode(ca.pem()), TlsAcceptor::from(Arc::new(config))))
}
