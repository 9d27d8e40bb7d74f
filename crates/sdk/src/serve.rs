//! A small HTTP server for what a manager shows and is asked: HTTP/1.1 and HTTP/2, plain or over TLS.
//!
//! Each connection is a task of its own with limits on its handshake, head and silence. It decides nothing about
//! requests. Invariant: [`serve`] returns when every connection is closed, at the latest after [`DRAIN`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Connections at a time; further ones wait in the kernel's queue.
const CONNECTIONS: usize = 1000;
/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time for a request's head, and that a kept-alive connection may stay silent.
const SILENCE: Duration = Duration::from_secs(90);
/// Most bytes of a request's head.
const HEAD: usize = 64 * 1024;
/// Time for open requests once the server stops.
pub(crate) const DRAIN: Duration = Duration::from_secs(4);

/// Answers requests.
pub(crate) type Answer =
    Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Full<Bytes>>> + Send + Sync>;

/// An answer of plain text.
pub(crate) fn text(
    code: http::StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = code;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

/// Serves on `listener` until `stop`; then open requests finish.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    answer: Answer,
    stop: CancellationToken,
) {
    let acceptor = tls.map(tokio_rustls::TlsAcceptor::from);
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let cut = CancellationToken::new();
    loop {
        let accepted = tokio::select! { biased;
            () = stop.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, slot)) = accepted else {
            // Out of descriptors, or the client went away: give others a moment to close.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let (answer, acceptor, watcher, cut) =
            (answer.clone(), acceptor.clone(), graceful.watcher(), cut.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let work = async {
                match acceptor {
                    None => connection(stream, answer, watcher).await,
                    Some(acceptor) => {
                        if let Ok(Ok(tls)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                            connection(tls, answer, watcher).await;
                        }
                    }
                }
            };
            tokio::select! { biased;
                () = cut.cancelled() => {}
                () = work => {}
            }
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    cut.cancel();
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = slots.clone().acquire_owned().await.ok()?;
    let (stream, _) = listener.accept().await.ok()?;
    let _: io::Result<()> = stream.set_nodelay(true);
    Some((stream, slot))
}

async fn connection<S>(stream: S, answer: Answer, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .max_buf_size(HEAD)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .max_header_list_size(u32::try_from(HEAD).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let conn = builder.serve_connection(TokioIo::new(stream), service);
    // A client that breaks off or speaks nonsense ends its connection; there is nobody to tell.
    let _ = watcher.watch(conn).await;
}
