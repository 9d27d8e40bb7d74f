//! A run of a container, resolved: which stage holds after how long, and when and how it ends.
//!
//! Times are counted from the container's start. Nothing here knows how the stages were chosen.
//! Invariant: a script that repeats takes at least a second per turn, so that no run is a hot loop.

use std::time::Duration;

use super::{Exit, Run, Stage};

/// What probes find, and what is used, during a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it begins.
    pub at: Duration,
    /// What a startup probe finds.
    pub started: bool,
    /// What a readiness probe finds.
    pub ready: bool,
    /// What a liveness probe finds.
    pub live: bool,
    /// The stage that it comes from, by number; one that there isn't where nothing says what happens.
    pub stage: usize,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    steps: Vec<Step>,
    /// How long a turn takes, where the steps repeat.
    turn: Option<Duration>,
    end: Option<(Duration, Exit)>,
}

/// A container that runs on, and is well.
const WELL: Step = Step { at: Duration::ZERO, started: true, ready: true, live: true, stage: usize::MAX };

impl Script {
    /// Runs on for ever.
    pub fn forever() -> Self {
        Self { steps: vec![WELL], turn: None, end: None }
    }

    /// Ends after `delay`.
    pub fn ends(delay: Duration, exit: Exit) -> Self {
        Self { steps: vec![WELL], turn: None, end: Some((delay, exit)) }
    }

    /// The stages with their jitter, which `jitter` gives by the stage's number.
    pub fn new(run: &Run, jitter: impl Fn(usize, Duration) -> Duration) -> Self {
        let (mut at, mut steps, mut endless) = (Duration::ZERO, Vec::new(), false);
        for (i, stage) in run.stages.iter().enumerate() {
            let Stage { started, ready, live, .. } = *stage;
            steps.push(Step { at, started, ready, live, stage: i });
            let most = stage.jitter.map_or(Duration::ZERO, |j| j.0);
            match (stage.lasts, &stage.exit) {
                (None, None) => {
                    endless = true;
                    break;
                }
                (lasts, exit) => {
                    at += lasts.map_or(Duration::ZERO, |l| l.0) + jitter(i, most);
                    if let Some(exit) = exit {
                        return Self { steps, turn: None, end: Some((at, exit.clone())) };
                    }
                }
            }
        }
        if steps.is_empty() {
            return Self::forever();
        }
        let turn = (run.repeat && !endless).then(|| at.max(Duration::from_secs(1)));
        if turn.is_none() && !endless {
            // The last stage is over: from here on all is well.
            steps.push(Step { at, ..WELL });
        }
        Self { steps, turn, end: None }
    }

    /// Ends with `exit` in the first stage of which `over` says so, `after` its beginning, where it doesn't end before.
    #[must_use]
    pub fn cut(mut self, over: impl Fn(usize) -> bool, after: Duration, exit: Exit) -> Self {
        let ends = self.end.as_ref().map(|(at, _)| *at);
        if let Some(step) = self.steps.iter().find(|s| over(s.stage)) {
            let at = step.at + after;
            if ends.is_none_or(|end| at < end) {
                self.end = Some((at, exit));
            }
        }
        self
    }

    /// When and how it ends.
    pub fn end(&self) -> Option<(Duration, &Exit)> {
        self.end.as_ref().map(|(at, exit)| (*at, exit))
    }

    fn in_turn(&self, elapsed: Duration) -> Duration {
        match self.turn {
            Some(turn) => nanos(elapsed.as_nanos() % turn.as_nanos().max(1)),
            None => elapsed,
        }
    }

    /// What holds after `elapsed`.
    pub fn step(&self, elapsed: Duration) -> Step {
        let within = self.in_turn(elapsed);
        self.steps.iter().rev().find(|s| s.at <= within).copied().unwrap_or(WELL)
    }

    /// The first moment from `elapsed` on at which `holds` is true of the step; `None` where there is none.
    pub fn next(&self, elapsed: Duration, holds: impl Fn(&Step) -> bool) -> Option<Duration> {
        if holds(&self.step(elapsed)) {
            return Some(elapsed);
        }
        let within = self.in_turn(elapsed);
        let begin = elapsed - within;
        if let Some(step) = self.steps.iter().find(|s| s.at > within && holds(s)) {
            return Some(begin + step.at);
        }
        let turn = self.turn?;
        self.steps.iter().find(|s| holds(s)).map(|s| begin + turn + s.at)
    }
}

fn nanos(n: u128) -> Duration {
    Duration::from_nanos(u64::try_from(n).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behavior::Span;

    fn stage(lasts: Option<u64>, ready: bool, code: Option<i32>) -> Stage {
        Stage {
            lasts: lasts.map(|s| Span(Duration::from_secs(s))),
            ready,
            exit: code.map(|code| Exit { code, ..Exit::default() }),
            ..Stage::default()
        }
    }

    fn script(stages: Vec<Stage>, repeat: bool) -> Script {
        Script::new(&Run { stages, repeat }, |_, _| Duration::ZERO)
    }

    /// Readiness after 0, 1, 2 … seconds, and the end.
    #[track_caller]
    fn check(script: &Script, ready: &str, end: Option<u64>) {
        let got: String = (0..ready.len())
            .map(|s| if script.step(Duration::from_secs(s as u64)).ready { 'r' } else { '-' })
            .collect();
        assert_eq!((got.as_str(), script.end().map(|(d, _)| d.as_secs())), (ready, end));
    }

    #[test]
    fn stages_follow_each_other() {
        check(&Script::forever(), "rrr", None);
        check(&script(vec![], false), "rrr", None);
        check(&script(vec![stage(Some(2), false, None), stage(None, true, None)], false), "--rrr", None);
        check(&script(vec![stage(Some(2), false, None)], false), "--rrr", None);
        check(&script(vec![stage(Some(3), true, Some(1)), stage(None, false, None)], false), "rrrr", Some(3));
        check(&script(vec![stage(Some(1), true, None), stage(Some(2), false, None)], true), "r--r--r-", None);
    }

    #[test]
    fn a_repeated_script_of_no_length_turns_once_a_second() {
        let script = script(vec![stage(Some(0), false, None), stage(Some(0), true, None)], true);
        check(&script, "rrr", None);
    }

    #[test]
    fn the_next_moment_is_found_across_turns() {
        let script = script(vec![stage(Some(1), true, None), stage(Some(2), false, None)], true);
        let at = |s| Duration::from_secs(s);
        assert_eq!(script.next(at(0), |s| !s.ready), Some(at(1)));
        assert_eq!(script.next(at(2), |s| s.ready), Some(at(3)));
        assert_eq!(script.next(at(4), |s| s.ready), Some(at(6)));
        assert_eq!(script.next(at(4), |s| !s.live), None);
    }
}
