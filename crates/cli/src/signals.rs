//! Ctrl-C and SIGTERM.

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at the first Ctrl-C or SIGTERM. Where the system refuses handlers it never does.
pub(crate) async fn stop() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
