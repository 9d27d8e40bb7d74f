//! What a manager shows over HTTP: `/healthz`, `/readyz`, and `/metrics`.

use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::health::Health;
use crate::metrics::{CONTENT_TYPE, Exposed};
use crate::serve::{self, Answer, text};

const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves until `stop`. With `metrics`, `/metrics` too.
pub(crate) async fn serve(
    listener: TcpListener,
    health: Health,
    metrics: Option<impl Fn() -> Exposed + Send + Sync + 'static>,
    stop: CancellationToken,
) {
    let answer: Answer = Arc::new(move |request| {
        let response = respond(&request, &health, metrics.as_ref().map(|m| m as &dyn Fn() -> Exposed));
        async move { response }.boxed()
    });
    serve::serve(listener, None, answer, stop).await;
}

fn respond(
    request: &Request<Incoming>,
    health: &Health,
    metrics: Option<&dyn Fn() -> Exposed>,
) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET\n");
    }
    let verbose =
        request.uri().query().is_some_and(|q| q.split('&').any(|p| p.split('=').next() == Some("verbose")));
    match (request.uri().path(), metrics) {
        ("/healthz" | "/livez", _) => text(StatusCode::OK, PLAIN, "ok"),
        ("/readyz", _) => ready(health, verbose),
        ("/metrics", Some(metrics)) => text(StatusCode::OK, CONTENT_TYPE, metrics().text()),
        _ => text(StatusCode::NOT_FOUND, PLAIN, "nothing here\n"),
    }
}

fn ready(health: &Health, verbose: bool) -> Response<Full<Bytes>> {
    let ready = health.ready();
    let code = if ready { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
    if ready && !verbose {
        return text(code, PLAIN, "ok");
    }
    let waiting = health.waiting();
    let mut lines = String::new();
    for name in health.names() {
        let mark = if waiting.contains(&name) { "[-]" } else { "[+]" };
        let _ = writeln!(lines, "{mark}{name}");
    }
    let _ = writeln!(lines, "readyz check {}", if ready { "passed" } else { "failed" });
    text(code, PLAIN, lines)
}
