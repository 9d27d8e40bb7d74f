//! The fence: until when this process may write.
//!
//! It is a point in time and not a flag, so that a process that was stopped for a while (a suspended machine, a
//! debugger) finds it closed when it goes on, before anything has told it so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Milliseconds that never come.
const FOR_EVER: u64 = u64::MAX;

#[derive(Debug)]
struct Inner {
    origin: Instant,
    /// Milliseconds from the origin until which writes are let through.
    open_until: AtomicU64,
}

/// Lets writes through, or not. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Fence(Arc<Inner>);

/// A write that was not sent.
#[derive(Debug, thiserror::Error)]
#[error("this process no longer holds its lease, so it writes nothing")]
pub(crate) struct Fenced;

impl Fence {
    /// Open for ever.
    pub(crate) fn open() -> Self {
        Self(Arc::new(Inner { origin: Instant::now(), open_until: AtomicU64::new(FOR_EVER) }))
    }

    /// Closed until somebody opens it.
    pub(crate) fn closed() -> Self {
        Self(Arc::new(Inner { origin: Instant::now(), open_until: AtomicU64::new(0) }))
    }

    /// Lets writes through until `until`.
    pub(crate) fn open_until(&self, until: Instant) {
        let millis = until.saturating_duration_since(self.0.origin).as_millis();
        self.0.open_until.store(u64::try_from(millis).unwrap_or(FOR_EVER - 1), Ordering::Release);
    }

    /// Lets nothing through any more.
    pub(crate) fn close(&self) {
        self.0.open_until.store(0, Ordering::Release);
    }

    /// Whether a write may be sent now.
    pub(crate) fn check(&self) -> Result<(), Fenced> {
        let until = self.0.open_until.load(Ordering::Acquire);
        if until == FOR_EVER || Instant::now() < self.0.origin + Duration::from_millis(until) {
            Ok(())
        } else {
            Err(Fenced)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_alone_closes_it() {
        let fence = Fence::closed();
        assert!(fence.check().is_err());
        fence.open_until(Instant::now() + Duration::from_secs(10));
        assert!(fence.check().is_ok());
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(fence.check().is_ok());
        tokio::time::advance(Duration::from_millis(2)).await;
        assert!(fence.check().is_err());
        fence.open_until(Instant::now() + Duration::from_secs(10));
        fence.close();
        assert!(fence.check().is_err());
        tokio::time::advance(Duration::from_secs(86_400)).await;
        assert!(Fence::open().check().is_ok());
    }
}
