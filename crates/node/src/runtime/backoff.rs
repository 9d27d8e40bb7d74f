//! The kubelet's delays between restarts, and between pulls: 10 s, doubling to 300 s.
//!
//! The first restart comes at once. A run of more than ten minutes (twice the longest delay) begins anew. Source:
//! client-go's `flowcontrol.Backoff` with kubelet's `backOffPeriod` and `MaxCrashLoopBackOff`.

use std::time::Duration;

use homeostat_model::Timestamp;

use super::since;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);

/// How often it happened, and when last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    times: u8,
    last: Option<Timestamp>,
}

impl Backoff {
    /// The delay that is in force.
    pub fn delay(self) -> Duration {
        match self.times {
            0 => Duration::ZERO,
            n => FIRST.saturating_mul(1 << (n - 1).min(6)).min(LONGEST),
        }
    }

    /// Whether so much time lies between the last time and `end` that it begins anew.
    fn is_over(self, end: Timestamp) -> bool {
        self.last.is_none_or(|last| since(end, last) > LONGEST * 2)
    }

    /// The delay after what ended at `end`.
    pub fn after(self, end: Timestamp) -> Duration {
        if self.is_over(end) { Duration::ZERO } else { self.delay() }
    }

    /// When the delay since the last time is over.
    pub fn until(self) -> Option<Timestamp> {
        self.last.map(|last| super::after(last, self.delay()))
    }

    /// It happens again at `now`, after what ended at `end`.
    pub fn next(&mut self, end: Timestamp, now: Timestamp) {
        self.times = if self.is_over(end) { 1 } else { self.times.saturating_add(1) };
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(s: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + s).unwrap()
    }

    #[test]
    fn delays_double_and_begin_anew_after_ten_minutes() {
        let (mut backoff, mut now) = (Backoff::default(), 0);
        let mut delays = Vec::new();
        for _ in 0..8 {
            let delay = backoff.after(second(now)).as_secs() as i64;
            delays.push(delay);
            now += delay;
            backoff.next(second(now), second(now));
        }
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff.after(second(now + 600)).as_secs(), 300);
        assert_eq!(backoff.after(second(now + 601)).as_secs(), 0);
    }
}
