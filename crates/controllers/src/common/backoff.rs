//! Delays between repeated failures of the same thing, where only this process can know of the earlier ones.
//!
//! Forgetting them (a restart) makes the next try sooner, nothing worse.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use homeostat_model::Timestamp;

/// Failures by name: doubling delays from `base` to `max`, forgotten after twice `max` of peace.
pub(crate) struct Backoffs {
    base: Duration,
    max: Duration,
    entries: Mutex<BTreeMap<String, Entry>>,
}

struct Entry {
    delay: Duration,
    since: Timestamp,
}

impl Backoffs {
    pub(crate) fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, entries: Mutex::default() }
    }

    /// Another failure of `name` is to be dealt with: zero, and the delay grows, where it may be now; else how long
    /// to wait.
    pub(crate) fn try_now(&self, name: &str, now: Timestamp) -> Duration {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = |e: &Entry| Duration::try_from(now.duration_since(e.since)).unwrap_or_default();
        entries.retain(|_, e| passed(e) < 2 * self.max);
        match entries.get_mut(name) {
            None => {
                entries.insert(name.to_owned(), Entry { delay: self.base, since: now });
                Duration::ZERO
            }
            Some(e) if passed(e) >= e.delay => {
                *e = Entry { delay: (2 * e.delay).min(self.max), since: now };
                Duration::ZERO
            }
            Some(e) => e.delay - passed(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_are_forgotten() {
        let at = |s| Timestamp::from_second(s).unwrap();
        let backoffs = Backoffs::new(Duration::from_secs(1), Duration::from_secs(10));
        let tries: Vec<u64> =
            [0, 0, 1, 2, 3, 6, 7].map(|s| backoffs.try_now("a", at(s)).as_secs()).into_iter().collect();
        assert_eq!(tries, [0, 1, 0, 1, 0, 1, 0]);
        assert_eq!(backoffs.try_now("b", at(7)), Duration::ZERO);
        assert_eq!(backoffs.try_now("a", at(100)), Duration::ZERO);
        assert_eq!(backoffs.try_now("a", at(100)).as_secs(), 1);
    }
}
