//! How containers end: one by itself, or all of a pod, sidecars last and in reverse order.
//!
//! A container is told to stop, its preStop hook sleeps, and it ends when it likes, or is killed at the end of the
//! grace period. Source: kubelet's `killContainer` and `terminationOrdering`.

use std::time::Duration;

use homeostat_model::Timestamp;

use super::advance::{News, What};
use super::{Phase, Plan, Record, Sandbox, after};
use crate::behavior::choice::Part;

/// What a container gets at least, whatever of the grace period is left (kubelet's `minimumGracePeriodInSeconds`).
const LEAST: Duration = Duration::from_secs(2);

/// What an evicted pod gets (kubelet's `immediateEvictionGracePeriodSeconds`).
const EVICTED: Duration = Duration::from_secs(1);

/// Why a pod ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is being deleted.
    Deleted,
    /// Its main containers have all ended, for good.
    Finished,
    /// An init container has failed for good.
    InitFailed,
    /// It was active for longer than it may be.
    Deadline,
    /// Its node is short of something.
    Evicted,
}

/// The end of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teardown {
    /// When it began.
    pub at: Timestamp,
    /// When whatever still runs is killed.
    pub kill_at: Timestamp,
    /// Why.
    pub cause: Cause,
}

impl Sandbox {
    /// The pod is being deleted and has `grace` to end, from `now`. Told again, it may get less, never more.
    pub fn delete(&mut self, plan: &Plan<'_>, now: Timestamp, grace: Duration, news: &mut Vec<News>) {
        self.touch(now);
        let kill_at = after(now, grace);
        match &mut self.teardown {
            None => self.begin_teardown(plan, now, Cause::Deleted, grace, news),
            Some(teardown) if kill_at < teardown.kill_at => {
                teardown.kill_at = kill_at;
                for record in &mut self.containers {
                    if let Phase::Stopping { exit_at: Some(exit_at), killed } = &mut record.phase
                        && *exit_at > kill_at
                    {
                        (*exit_at, *killed) = (kill_at, true);
                    }
                }
            }
            Some(_) => {}
        }
    }

    /// The pod's node wants it to go: it does, where it doesn't end anyway.
    pub fn evict(&mut self, plan: &Plan<'_>, now: Timestamp, news: &mut Vec<News>) {
        if self.eviction.is_some() && self.teardown.is_none() {
            self.touch(now);
            news.push(News { at: now, container: 0, what: What::Evicted });
            self.begin_teardown(plan, now, Cause::Evicted, EVICTED, news);
        }
    }

    pub(super) fn begin_teardown(
        &mut self,
        plan: &Plan<'_>,
        t: Timestamp,
        cause: Cause,
        grace: Duration,
        news: &mut Vec<News>,
    ) {
        let teardown = Teardown { at: t, kill_at: after(t, grace), cause };
        self.teardown = Some(teardown);
        for (i, p) in plan.containers.iter().enumerate() {
            let Some(record) = self.containers.get_mut(i).filter(|r| r.is_up()) else { continue };
            if record.phase == Phase::Running {
                news.push(News { at: t, container: i, what: What::Killing(Why::Stopping) });
            }
            if p.part == Part::Sidecar {
                record.phase = Phase::Stopping { exit_at: None, killed: false };
                record.since = t;
            } else if record.phase == Phase::Running {
                signal(record, plan, i, t, t, teardown.kill_at);
            }
        }
        self.signal_sidecars(plan, t);
    }

    /// Signals the sidecars whose turn it is: those after which nothing runs any more.
    pub(super) fn signal_sidecars(&mut self, plan: &Plan<'_>, t: Timestamp) {
        let Some(Teardown { at, kill_at, .. }) = self.teardown else { return };
        for i in plan.of(Part::Sidecar).collect::<Vec<_>>().into_iter().rev() {
            let blocked = self.containers.iter().skip(i + 1).any(Record::is_up);
            let Some(record) = self.containers.get_mut(i) else { return };
            if record.phase == (Phase::Stopping { exit_at: None, killed: false }) {
                if blocked && t < kill_at {
                    return;
                }
                signal(record, plan, i, at, t, kill_at.max(after(t, LEAST)));
            }
        }
    }

    /// Tells one container to stop, so that it starts anew.
    pub(super) fn kill(&mut self, plan: &Plan<'_>, i: usize, t: Timestamp, grace: Option<Duration>) {
        let kill_at = after(t, grace.unwrap_or(plan.grace));
        if let Some(record) = self.containers.get_mut(i).filter(|r| r.phase == Phase::Running) {
            signal(record, plan, i, t, t, kill_at);
        }
    }

    /// Restarts a running container at `now`, for what it needs a new process for.
    pub fn restart(&mut self, plan: &Plan<'_>, i: usize, now: Timestamp, news: &mut Vec<News>) {
        self.touch(now);
        if self.teardown.is_none() && self.containers.get(i).is_some_and(|r| r.phase == Phase::Running) {
            news.push(News { at: now, container: i, what: What::Killing(Why::Resize) });
            self.kill(plan, i, now, None);
        }
    }
}

/// Why a container is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The pod ends.
    Stopping,
    /// Its liveness probe failed.
    Liveness,
    /// Its startup probe failed.
    Startup,
    /// It needs a new process for its new resources.
    Resize,
}

/// The order to stop came at `ordered` (the preStop hook runs from then on), its turn is at `t`.
fn signal(
    record: &mut Record,
    plan: &Plan<'_>,
    i: usize,
    ordered: Timestamp,
    t: Timestamp,
    kill_at: Timestamp,
) {
    let hook = plan.containers.get(i).map_or(Duration::ZERO, |p| p.pre_stop);
    let begin = after(ordered, hook).max(t);
    let by_itself = plan.act(i, record.restarts).stop.map(|d| after(begin, d));
    let killed = by_itself.is_none_or(|at| at > kill_at);
    let exit_at = Some(by_itself.map_or(kill_at, |at| at.min(kill_at)));
    record.phase = Phase::Stopping { exit_at, killed };
    record.since = t;
}
