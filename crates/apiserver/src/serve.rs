//! The edge: HTTP/1.1 and HTTP/2 over TLS in front of an [`ApiServer`].
//!
//! It decides nothing about requests. Each connection is a task of its own with limits on its handshake, header
//! size and idle time, so that a slow, silent or broken client costs one task and nobody else anything.
//! Invariant: [`serve`] returns only when every connection is closed, at the latest at the deadline.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::ApiServer;

/// The client certificate of a connection, verified against the CA by TLS; a request extension.
#[derive(Clone, Debug)]
pub struct PeerCertificate(pub CertificateDer<'static>);

/// The address that a connection comes from; a request extension.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub IpAddr);

/// Limits of the edge.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; further ones wait in the kernel's queue.
    pub connections: usize,
    /// Time for a TLS handshake.
    pub handshake: Duration,
    /// Time for a request's head, and that a kept-alive connection may stay silent.
    pub head: Duration,
    /// Most bytes of a request's head.
    pub head_bytes: usize,
    /// Concurrent requests on one HTTP/2 connection.
    pub streams: u32,
    /// Time for open requests once the server stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(90),
            head_bytes: 64 * 1024,
            streams: 1000,
            drain: Duration::from_secs(4),
        }
    }
}

/// Serves on `listener` until `stop` is cancelled; then watches end, open requests finish, and what is left after
/// [`Limits::drain`] is cut off. Without `tls` it speaks plain HTTP, which is for tests only.
///
/// `tls` should offer `h2` and `http/1.1` by ALPN and make client certificates optional.
///
/// # Errors
/// Only if the listener itself breaks.
pub async fn serve(
    server: ApiServer,
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    limits: Limits,
    stop: CancellationToken,
) -> io::Result<()> {
    let acceptor = tls.map(tokio_rustls::TlsAcceptor::from);
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(limits.connections));
    let cut = CancellationToken::new();
    let result = loop {
        let slot = tokio::select! {
            biased;
            () = stop.cancelled() => break Ok(()),
            slot = slots.clone().acquire_owned() => slot,
        };
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break Ok(()),
            a = listener.accept() => a,
        };
        let (stream, from) = match accepted {
            Ok((stream, address)) => (stream, PeerAddress(address.ip().to_canonical())),
            Err(e) if transient(&e) => {
                // Out of descriptors or the client went away: give others a moment to close.
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            Err(e) => break Err(e),
        };
        let _ = stream.set_nodelay(true);
        let (server, acceptor, watcher, cut) =
            (server.clone(), acceptor.clone(), graceful.watcher(), cut.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let work = async {
                match acceptor {
                    None => connection(server, stream, (from, None), limits, watcher).await,
                    Some(acceptor) => {
                        let Ok(Ok(tls)) =
                            tokio::time::timeout(limits.handshake, acceptor.accept(stream)).await
                        else {
                            return;
                        };
                        let peer = tls.get_ref().1.peer_certificates().and_then(<[_]>::first);
                        let peer = peer.map(|c| PeerCertificate(c.clone().into_owned()));
                        connection(server, tls, (from, peer), limits, watcher).await;
                    }
                }
            };
            tokio::select! {
                biased;
                () = cut.cancelled() => {}
                () = work => {}
            }
        });
    };
    drop(listener);
    server.drain();
    let _ = tokio::time::timeout(limits.drain, graceful.shutdown()).await;
    cut.cancel();
    result
}

fn transient(e: &io::Error) -> bool {
    use io::ErrorKind as K;
    matches!(
        e.kind(),
        K::ConnectionAborted | K::ConnectionReset | K::Interrupted | K::WouldBlock | K::OutOfMemory
    ) || matches!(e.raw_os_error(), Some(23 | 24))
}

async fn connection<S>(
    server: ApiServer,
    stream: S,
    (from, peer): (PeerAddress, Option<PeerCertificate>),
    limits: Limits,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.head_bytes.max(8192))
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20))
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024);
    let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(from);
        if let Some(peer) = &peer {
            request.extensions_mut().insert(peer.clone());
        }
        let mut server = server.clone();
        async move { server.call(request).await }
    });
    let conn = builder.serve_connection(TokioIo::new(stream), service);
    // A client that breaks off or speaks nonsense ends its connection; there is nobody to tell.
    let _ = watcher.watch(conn).await;
}
