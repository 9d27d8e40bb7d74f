//! Real time beside virtual time, for waits that must end.
//!
//! Paused time moves only when everything rests. Operators that write for ever without a pause let it stand still, so
//! whoever waits for them looks at the machine's time, too. Nothing that a test sees depends on it, unless it fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tokio::sync::Notify;

/// How often it ticks.
const EVERY: Duration = Duration::from_millis(100);
/// Ticks after which nobody should wait any longer: two minutes.
const MOST: u32 = 1200;

/// Ticks in real time while it lives.
pub(super) struct Ticker {
    notify: Arc<Notify>,
    count: Arc<AtomicU32>,
    /// Its thread ends when this is dropped.
    _alive: Sender<()>,
}

impl Ticker {
    pub(super) fn start() -> Self {
        let (alive, ended) = channel::<()>();
        let ticker = Self { notify: Arc::default(), count: Arc::default(), _alive: alive };
        let (notify, count) = (ticker.notify.clone(), ticker.count.clone());
        // No blocking task of the runtime's: while one runs, paused time doesn't move.
        std::thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                count.fetch_add(1, Ordering::Relaxed);
                notify.notify_one();
            }
        });
        ticker
    }

    /// Waits for the next tick.
    pub(super) async fn tick(&self) {
        self.notify.notified().await;
    }

    /// Waits so long, or until the next tick.
    pub(super) async fn nap(&self, most: Duration) {
        tokio::select! { biased;
            () = self.tick() => {}
            () = tokio::time::sleep(most) => {}
        }
    }

    /// Whether it has been so long that a wait should end.
    pub(super) fn is_exhausted(&self) -> bool {
        self.count.load(Ordering::Relaxed) > MOST
    }
}
