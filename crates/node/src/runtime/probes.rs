//! Probes: when they ask, and when enough equal answers in a row turn their result.
//!
//! Between two changes of what a container would answer nothing happens that anyone could see, so a probe is simulated
//! only while its answers contradict its result: an unready container costs nothing while it stays unready.
//! Source: kubelet's `prober.worker`.

use std::time::Duration;

use homeostat_model::Timestamp;

use super::{ProbePlan, after, since};
use crate::behavior::script::{Script, Step};

/// Which probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has it started?
    Startup,
    /// Can it serve?
    Readiness,
    /// Does it still work?
    Liveness,
}

/// What a probe remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The result in force.
    pub result: bool,
    /// Answers in a row that contradict it.
    pub streak: u16,
    /// When it next asks something that matters; `None`: it has nothing to find out.
    pub next: Option<Timestamp>,
    /// Whether a failure of this run was told.
    pub told: bool,
}

/// What became of one asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The container answered as it should not.
    pub(crate) failed: bool,
    /// The result has turned.
    pub(crate) turned: bool,
}

impl Kind {
    fn answer(self, step: &Step) -> bool {
        match self {
            Self::Startup => step.started,
            Self::Readiness => step.ready,
            Self::Liveness => step.live,
        }
    }
}

impl Probe {
    /// Begins anew for a run that started at `started`; it first asks at `from`. Without a plan the result is `true`
    /// at once.
    pub(crate) fn begin(
        kind: Kind,
        plan: Option<&ProbePlan>,
        script: &Script,
        started: Timestamp,
        from: Timestamp,
    ) -> Self {
        let Some(plan) = plan else { return Self { result: true, ..Self::default() } };
        let mut probe = Self { result: kind == Kind::Liveness, ..Self::default() };
        let first = after(started, plan.initial_delay).max(from);
        // A container that starts unready or unstarted is told of once.
        probe.next = match kind {
            Kind::Liveness => probe.find(kind, plan, script, started, first, first),
            Kind::Startup | Kind::Readiness => Some(first),
        };
        probe
    }

    /// The first asking from `from` on whose answer contradicts the result; askings are a period apart from `first`.
    fn find(
        &self,
        kind: Kind,
        plan: &ProbePlan,
        script: &Script,
        started: Timestamp,
        first: Timestamp,
        from: Timestamp,
    ) -> Option<Timestamp> {
        let mut from = from;
        // An answer may change and change back between two askings; after so many turns of a script it is as good as
        // never.
        for _ in 0..1000 {
            let changes = script.next(since(from, started), |s| kind.answer(s) != self.result)?;
            let asked = tick(first, plan.period, after(started, changes));
            if kind.answer(&script.step(since(asked, started))) != self.result {
                return Some(asked);
            }
            from = after(asked, Duration::from_nanos(1));
        }
        None
    }

    /// Asks at `now`, which is `next`.
    pub(crate) fn ask(
        &mut self,
        kind: Kind,
        plan: &ProbePlan,
        script: &Script,
        started: Timestamp,
        now: Timestamp,
    ) -> Asked {
        let answer = kind.answer(&script.step(since(now, started)));
        let then = after(now, plan.period);
        let mut turned = false;
        // A startup probe has no result yet: failures count, and the first success is the end of it.
        let contradicts = answer != self.result || (kind == Kind::Startup && !answer);
        if contradicts {
            self.streak = self.streak.saturating_add(1);
            let enough = if answer { plan.success } else { plan.failure };
            if u32::from(self.streak) >= enough {
                self.result = answer;
                self.streak = 0;
                turned = true;
            }
        } else {
            self.streak = 0;
        }
        let goes_on = self.streak > 0;
        self.next = match kind {
            Kind::Startup if turned => None,
            Kind::Startup => Some(then),
            _ if goes_on => Some(then),
            _ => self.find(kind, plan, script, started, now, then),
        };
        let failed = !answer && (contradicts || !self.told);
        self.told |= failed;
        Asked { failed, turned }
    }

    /// The plan or the script has changed at `now`: what it would ask next is found out again.
    pub(crate) fn again(
        &mut self,
        kind: Kind,
        plan: Option<&ProbePlan>,
        script: &Script,
        started: Timestamp,
        now: Timestamp,
    ) {
        let Some(plan) = plan else { return };
        if self.next.is_none_or(|next| next > now) && !(kind == Kind::Startup && self.result) {
            let first = after(started, plan.initial_delay);
            let from = first.max(now);
            self.next = match kind {
                Kind::Startup => Some(tick(first, plan.period, from)),
                _ => self.find(kind, plan, script, started, first, from),
            };
        }
    }
}

/// The first of `first`, `first` + `period` … that isn't before `t`.
fn tick(first: Timestamp, period: Duration, t: Timestamp) -> Timestamp {
    let behind = since(t, first).as_nanos();
    let periods = behind.div_ceil(period.as_nanos().max(1));
    let periods = u32::try_from(periods).unwrap_or(u32::MAX);
    after(first, period.saturating_mul(periods))
}
