//! The simulated container runtime: what runs where, since when, with which address.
//!
//! It is the state that a kubelet finds in containerd; nothing here knows the API. Containers start and stop after
//! fixed delays and don't end by themselves. Invariant: [`Sandbox::advance`] depends only on its arguments, and called
//! late does what it would have done in time.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_model::Timestamp;

/// How long the parts of a pod's life take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// From binding to a sandbox with an address.
    pub sandbox: Duration,
    /// From a free way to a running container (its image is there).
    pub start: Duration,
    /// An init container's run.
    pub init: Duration,
    /// From the signal to the exit.
    pub stop: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self { sandbox: ms(30), start: ms(60), init: ms(40), stop: ms(40) }
    }
}

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started yet.
    Waiting,
    /// Running since then.
    Running {
        /// The start.
        since: Timestamp,
    },
    /// Ended.
    Exited {
        /// The start.
        since: Timestamp,
        /// The end.
        at: Timestamp,
        /// Exit code.
        code: i32,
    },
}

/// How a container of the spec behaves, reduced to what the runtime needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Name.
    pub name: String,
    /// Its part in the pod's life.
    pub role: Role,
    /// From the start to ready: the probes' initial delays.
    pub ready_after: Duration,
}

/// A container's part in the pod's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Runs to its end before the next begins.
    Init,
    /// An init container with restartPolicy Always: the next begins when it has started.
    Sidecar,
    /// Runs as long as the pod.
    Main,
}

/// One pod's sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// When the pod was first seen.
    pub created: Timestamp,
    /// The pod's address.
    pub address: String,
    /// Containers by name.
    pub containers: BTreeMap<String, State>,
    /// When the signal to stop came.
    pub stopping: Option<Timestamp>,
    /// Restarts that all its containers begin with: a runtime that lost a running pod starts it anew.
    pub restarts: i32,
}

impl Sandbox {
    /// A sandbox that is about to be made.
    pub fn new(now: Timestamp, address: String, restarts: i32) -> Self {
        Self { created: now, address, containers: BTreeMap::new(), stopping: None, restarts }
    }

    /// What a container does now.
    pub fn state(&self, name: &str) -> State {
        self.containers.get(name).copied().unwrap_or(State::Waiting)
    }

    /// Whether the sandbox itself is there, with its address.
    pub fn is_made(&self, delays: &Delays, now: Timestamp) -> bool {
        now >= after(self.created, delays.sandbox)
    }

    /// Whether every container has ended, or never began, after the signal to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopping.is_some() && !self.containers.values().any(|s| matches!(s, State::Running { .. }))
    }

    /// Does all that is due by `now`; returns when the next thing is due. `plans` are init containers in order, then
    /// main containers.
    pub fn advance(&mut self, plans: &[Plan], delays: &Delays, now: Timestamp) -> Option<Timestamp> {
        if let Some(signal) = self.stopping {
            return self.stop(after(signal, delays.stop), now);
        }
        // Each step begins where the one before it ended, not at `now`: a late call catches up.
        let mut free = after(self.created, delays.sandbox);
        if now < free {
            return Some(free);
        }
        let mut next: Option<Timestamp> = None;
        let mut soonest = |t: Timestamp| {
            if t > now {
                next = Some(next.map_or(t, |n| n.min(t)));
            }
        };
        for plan in plans {
            let begin = match self.state(&plan.name) {
                State::Waiting => after(free, delays.start),
                State::Running { since } | State::Exited { since, .. } => since,
            };
            if now < begin {
                soonest(begin);
                // A main container does not hold up the others; an init container does.
                if plan.role == Role::Main {
                    continue;
                }
                return next;
            }
            match plan.role {
                Role::Init => {
                    let end = after(begin, delays.init);
                    if now < end {
                        self.containers.insert(plan.name.clone(), State::Running { since: begin });
                        soonest(end);
                        return next;
                    }
                    self.containers
                        .insert(plan.name.clone(), State::Exited { since: begin, at: end, code: 0 });
                    free = end;
                }
                Role::Sidecar | Role::Main => {
                    self.containers.insert(plan.name.clone(), State::Running { since: begin });
                    soonest(after(begin, plan.ready_after));
                    if plan.role == Role::Sidecar {
                        free = begin;
                    }
                }
            }
        }
        next
    }

    fn stop(&mut self, end: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let mut running = false;
        for state in self.containers.values_mut() {
            if let State::Running { since } = *state {
                running = true;
                if now >= end {
                    *state = State::Exited { since, at: end, code: 0 };
                }
            }
        }
        (running && now < end).then_some(end)
    }
}

/// `t` + `d`, or the end of time.
pub(crate) fn after(t: Timestamp, d: Duration) -> Timestamp {
    t.checked_add(d).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap()
    }

    fn plan(name: &str, role: Role) -> Plan {
        Plan { name: name.into(), role, ready_after: Duration::ZERO }
    }

    /// The states at a moment, as letters: waiting, running, exited.
    #[track_caller]
    fn check(plans: &[Plan], ms: i64, want: &str, next: Option<i64>) {
        let mut sandbox = Sandbox::new(at(0), "10.0.0.1".into(), 0);
        let due = sandbox.advance(plans, &Delays::default(), at(ms));
        let letters: String = plans
            .iter()
            .map(|p| match sandbox.state(&p.name) {
                State::Waiting => 'w',
                State::Running { .. } => 'r',
                State::Exited { .. } => 'x',
            })
            .collect();
        assert_eq!((letters.as_str(), due), (want, next.map(at)), "at {ms} ms");
    }

    #[test]
    fn main_containers_start_together() {
        let plans = [plan("a", Role::Main), plan("b", Role::Main)];
        check(&plans, 0, "ww", Some(30));
        check(&plans, 30, "ww", Some(90));
        check(&plans, 90, "rr", None);
    }

    #[test]
    fn init_containers_run_one_by_one_and_sidecars_go_on() {
        let plans = [plan("i", Role::Init), plan("s", Role::Sidecar), plan("m", Role::Main)];
        check(&plans, 90, "rww", Some(130));
        check(&plans, 130, "xww", Some(190));
        check(&plans, 190, "xrw", Some(250));
        check(&plans, 250, "xrr", None);
    }

    #[test]
    fn a_late_call_does_what_was_due() {
        let plans = [plan("i", Role::Init), plan("m", Role::Main)];
        let mut late = Sandbox::new(at(0), String::new(), 0);
        late.advance(&plans, &Delays::default(), at(5_000));
        let mut punctual = Sandbox::new(at(0), String::new(), 0);
        let mut now = at(0);
        while let Some(next) = punctual.advance(&plans, &Delays::default(), now) {
            now = next;
        }
        assert_eq!(late, punctual);
    }

    #[test]
    fn a_signal_ends_every_container() {
        let plans = [plan("a", Role::Main)];
        let mut sandbox = Sandbox::new(at(0), String::new(), 0);
        sandbox.advance(&plans, &Delays::default(), at(100));
        sandbox.stopping = Some(at(200));
        assert_eq!(sandbox.advance(&plans, &Delays::default(), at(200)), Some(at(240)));
        assert!(!sandbox.is_stopped());
        assert_eq!(sandbox.advance(&plans, &Delays::default(), at(240)), None);
        assert!(sandbox.is_stopped());
    }
}
