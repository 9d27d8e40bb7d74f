//! The only door to the machine's time.
//!
//! A clock gives wall time; waiting is tokio's business (`tokio::time`), so that paused time works. A virtual
//! clock follows tokio's time from a fixed start, which makes ninety days pass in a test in a moment.
//! Invariant: wall time and tokio's time advance together.

use std::sync::Arc;
use std::time::Duration;

/// An instant, printed as RFC 3339.
pub type Timestamp = jiff::Timestamp;

/// Wall time, cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Virtual { start: Timestamp, origin: Arc<tokio::time::Instant> },
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that reads `start` now and from here follows tokio's time, paused or not.
    pub fn starting_at(start: Timestamp) -> Self {
        Self(Source::Virtual { start, origin: Arc::new(tokio::time::Instant::now()) })
    }

    /// The present time.
    #[expect(clippy::disallowed_methods, reason = "the one place that may ask the machine")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Virtual { start, origin } => {
                start.saturating_add(origin.elapsed()).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// The present time as `metav1.Time` prints it: whole seconds, `2026-01-02T03:04:05Z`.
    pub fn now_seconds(&self) -> String {
        seconds(self.now())
    }

    /// How long ago `then` was; zero where it lies ahead.
    pub fn since(&self, then: Timestamp) -> Duration {
        Duration::try_from(self.now().duration_since(then)).unwrap_or(Duration::ZERO)
    }
}

/// `metav1.Time`: whole seconds in UTC.
pub fn seconds(t: Timestamp) -> String {
    Timestamp::from_second(t.as_second()).map(|t| t.to_string()).unwrap_or_default()
}

/// `metav1.MicroTime`: always six fraction digits, `2026-01-02T03:04:05.000000Z`.
pub fn micros(t: Timestamp) -> String {
    format!("{t:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn virtual_time_follows_tokio() {
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        assert_eq!(clock.now_seconds(), "2026-01-02T03:04:05Z");
        tokio::time::sleep(Duration::from_secs(90 * 86_400)).await;
        assert_eq!(clock.now_seconds(), "2026-04-02T03:04:05Z");
    }

    #[test]
    fn times_print_as_the_api_prints_them() {
        let t: Timestamp = "2026-01-02T03:04:05.6789Z".parse().unwrap();
        assert_eq!(seconds(t), "2026-01-02T03:04:05Z");
        assert_eq!(micros(t), "2026-01-02T03:04:05.678900Z");
    }
}
