//! Time that passes faster than the machine's, at an even pace, with sockets open to the outside.
//!
//! A simulation's time jumps to whatever is due next; a person who looks on, or a program outside, needs time that
//! passes. Tokio's time is paused, and a thread moves it on each millisecond by as much as has passed, multiplied.
//! Invariant: while a paced runtime lives, its time moves only by its pacer.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use homeostat_model::Clock;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use crate::simulation::paused;

/// How often time is moved on, in the machine's time.
const TICK: Duration = Duration::from_millis(1);

/// How many times faster than the machine's time, from 1 to [`Pace::MOST`]. Written `60x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(u32);

/// A pace that can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no pace; write one from 1x to {most}x, such as 60x", most = Pace::MOST)]
pub struct PaceError(String);

impl Pace {
    /// A day in 24 seconds. Faster, leases would expire between two ticks of a busy machine.
    pub const MOST: u32 = 3600;

    /// A length of the machine's time, in a cluster's: what people and connections outside are given.
    pub(crate) fn outside(self, time: Duration) -> Duration {
        time.saturating_mul(self.0)
    }

    /// A runtime of one thread whose time passes at this pace.
    ///
    /// # Errors
    /// If the operating system gives no runtime.
    pub fn runtime(self) -> std::io::Result<Runtime> {
        let runtime = paused()?;
        let (passed, mut passing) = mpsc::channel::<Duration>(1);
        runtime.spawn(async move {
            while let Some(time) = passing.recv().await {
                tokio::time::advance(time * self.0).await;
            }
        });
        // As long as a blocking task runs, tokio does not move paused time by itself.
        runtime.spawn_blocking(move || {
            let clock = Clock::system();
            let mut last = clock.now();
            loop {
                pause(TICK);
                let time = clock.since(last);
                last = clock.now();
                if passed.blocking_send(time).is_err() {
                    return;
                }
            }
        });
        Ok(runtime)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one thread that lives in the machine's time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

impl Default for Pace {
    /// The machine's own.
    fn default() -> Self {
        Self(1)
    }
}

impl FromStr for Pace {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Self, PaceError> {
        let factor = text.strip_suffix('x').unwrap_or(text).parse().ok();
        factor.filter(|f| (1..=Self::MOST).contains(f)).map(Self).ok_or_else(|| PaceError(text.to_owned()))
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_factor() {
        for (text, want) in [
            ("60x", Some("60x")),
            ("1", Some("1x")),
            ("3600x", Some("3600x")),
            ("3601x", None),
            ("0x", None),
            ("-1x", None),
            ("1.5x", None),
            ("fast", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Pace>().ok().map(|p| p.to_string()).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn time_passes_faster_but_does_not_jump() {
        let machine = Clock::system();
        let begin = machine.now();
        let runtime = Pace(600).runtime().unwrap();
        let passed = runtime.block_on(async {
            let clock = Clock::starting_at(begin);
            tokio::time::sleep(Duration::from_secs(60)).await;
            clock.since(begin)
        });
        assert!(passed >= Duration::from_secs(60), "{passed:?}");
        // A jump would have taken no time at all.
        assert!(machine.since(begin) >= Duration::from_millis(90), "{:?}", machine.since(begin));
    }
}
