//! A webhook in the test's process, over TLS, that answers whatever a test makes up.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What a webhook answers.
pub enum Reply {
    /// 200 with JSON.
    Json(Value),
    /// This code with these bytes.
    Bytes(u16, Vec<u8>),
    /// This, once everybody whom the barrier waits for is asked.
    Together(Arc<Barrier>, Value),
    /// Nothing, ever.
    Silence,
    /// A body without an end.
    Endless,
    /// The connection is closed.
    Close,
}

/// A running webhook; it ends when it is dropped.
pub struct Hook {
    pub url: String,
    /// The `caBundle` that its certificate is signed by.
    pub bundle: String,
    /// How often it has been asked.
    pub asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Body = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Infallible> + Send>>;

impl Hook {
    pub async fn start(answer: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let root = ca.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        let pair = KeyPair::generate().unwrap();
        let leaf =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&pair, &issuer).unwrap();
        let tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivatePkcs8KeyDer::from(pair.serialize_der()).into())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/convert", listener.local_addr().unwrap());
        let (answer, asked) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
        let counter = asked.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, answer, counter) = (acceptor.clone(), answer.clone(), counter.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                        let (answer, counter) = (answer.clone(), counter.clone());
                        async move {
                            let body = request
                                .into_body()
                                .collect()
                                .await
                                .map_err(std::io::Error::other)?
                                .to_bytes();
                            counter.fetch_add(1, Ordering::Relaxed);
                            respond(answer(&serde_json::from_slice(&body).unwrap())).await
                        }
                    });
                    // A client that gives up is what some tests are about.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { url, bundle: STANDARD.encode(root.pem()), asked, task }
    }

    /// As a `clientConfig`.
    pub fn config(&self) -> Value {
        json!({"url": self.url, "caBundle": self.bundle})
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn respond(reply: Reply) -> Result<Response<Body>, std::io::Error> {
    let (code, body): (u16, Body) = match reply {
        Reply::Json(v) => (200, Box::pin(Full::new(Bytes::from(v.to_string())))),
        Reply::Bytes(code, bytes) => (code, Box::pin(Full::new(Bytes::from(bytes)))),
        Reply::Together(barrier, v) => {
            barrier.wait().await;
            (200, Box::pin(Full::new(Bytes::from(v.to_string()))))
        }
        Reply::Silence => std::future::pending().await,
        Reply::Endless => {
            let chunk = Bytes::from(vec![b' '; 64 * 1024]);
            let chunks = stream::repeat(chunk).map(|c| Ok::<_, Infallible>(Frame::data(c)));
            (200, Box::pin(StreamBody::new(chunks)))
        }
        Reply::Close => return Err(std::io::Error::other("closed")),
    };
    Ok(Response::builder().status(code).header("content-type", "application/json").body(body).unwrap())
}

/// The honest answer to a ConversionReview: the same objects with another `apiVersion`, and what `change` makes of each.
pub fn converted(review: &Value, change: impl Fn(&mut Value)) -> Value {
    let request = &review["request"];
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        change(object);
    }
    json!({
        "apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects},
    })
}
