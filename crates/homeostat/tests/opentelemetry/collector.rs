//! A collector that keeps what it is sent, and finds nothing wrong with it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// One request.
#[derive(Clone)]
pub(crate) struct Export {
    pub(crate) path: String,
    /// Of the content.
    pub(crate) kind: String,
    pub(crate) tenant: String,
    pub(crate) body: Bytes,
}

pub(crate) struct Collector {
    url: String,
    received: Arc<Mutex<Vec<Export>>>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::<Mutex<Vec<Export>>>::default();
        let kept = received.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let kept = kept.clone();
                let service = service_fn(move |request| keep(request, kept.clone()));
                tokio::spawn(async move {
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self { url, received }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn received(&self) -> Vec<Export> {
        self.received.lock().unwrap().clone()
    }
}

async fn keep(
    request: Request<Incoming>,
    kept: Arc<Mutex<Vec<Export>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let header =
        |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let export = Export {
        path: parts.uri.path().to_owned(),
        kind: header("content-type"),
        tenant: header("x-tenant"),
        body: body.collect().await.unwrap().to_bytes(),
    };
    kept.lock().unwrap().push(export);
    // An empty message: all was accepted.
    Ok(Response::new(Full::default()))
}
