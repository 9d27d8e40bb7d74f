//! Moves a sandbox from event to event until the present.
//!
//! Each event happens at its own time: what follows from it begins there, not when somebody looked. What can happen
//! at once (the next init container after the one before it) is settled after each event.

use std::time::Duration;

use homeostat_model::Timestamp;

use super::probes::Kind;
use super::{Cause, Phase, Plan, Probe, Record, Sandbox, Termination, Why, after};
use crate::behavior::Exit;
use crate::behavior::choice::Part;
use crate::status::Pending;

/// Events that one call goes through; a caller that is so late goes on from there at once.
const MOST_EVENTS: usize = 20_000;
/// News that one call brings; older ones are no news.
const MOST_NEWS: usize = 64;

/// A mount that failed is tried again after the first, and twice as long each time up to the last (the volume
/// manager's `exponentialbackoff`).
const MOUNTS: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(122));
/// A kubelet that could not start a container looks at its pod again (`backOffPeriod`).
const AGAIN: Duration = Duration::from_secs(10);

/// What came of advancing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advance {
    /// When the next event is due.
    pub next: Option<Timestamp>,
    /// What happened, in order.
    pub news: Vec<News>,
}

/// Something that a kubelet tells.
#[derive(Clone, Debug, PartialEq)]
pub struct News {
    /// When.
    pub at: Timestamp,
    /// The container's number in the plan.
    pub container: usize,
    /// What.
    pub what: What,
}

/// What happened to a container.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Its image is being pulled.
    Pulling,
    /// Its image was pulled, in this time.
    Pulled(Duration),
    /// Its image was there.
    Present,
    /// The pull failed.
    PullFailed,
    /// The pull failed before, and is not tried yet.
    PullBackOff,
    /// The image is not there and must not be pulled.
    NeverPull,
    /// A volume of the pod could not be mounted.
    FailedMount,
    /// What it is configured with isn't there.
    Misconfigured,
    /// It was made and started.
    Started,
    /// It was made and could not start.
    StartFailed,
    /// It is told to stop.
    Killing(Why),
    /// It ended, and is not started again yet.
    BackOff,
    /// A probe failed.
    Unhealthy(Kind),
    /// The pod is past its active deadline.
    Deadline,
    /// The pod's node is short of something.
    Evicted,
    /// The pod gets other resources.
    ResizeStarted,
    /// It has them.
    ResizeCompleted,
    /// It doesn't get them, now or ever.
    ResizePending(Pending),
}

impl What {
    /// Whether it is about the whole pod, not about one container.
    pub fn is_of_pod(&self) -> bool {
        use What::{Deadline, Evicted, FailedMount, ResizeCompleted, ResizePending, ResizeStarted};
        matches!(self, Deadline | Evicted | FailedMount | ResizeStarted | ResizeCompleted | ResizePending(_))
    }
}

impl Sandbox {
    /// Does all that is due by `now`. `restarts` gives what a new container begins with: its restarts, and a
    /// fingerprint of its resources.
    pub fn advance(
        &mut self,
        plan: &Plan<'_>,
        now: Timestamp,
        begins_with: impl Fn(usize) -> (i32, u64),
    ) -> Advance {
        for i in self.containers.len()..plan.containers.len() {
            let (restarts, allocated) = begins_with(i);
            self.containers.push(Record::new(self.clock, restarts, allocated));
        }
        let mut news = Vec::new();
        self.settle(plan, self.clock, &mut news);
        for _ in 0..MOST_EVENTS {
            let Some((due, event)) = self.due(plan) else {
                return Advance { next: None, news: newest(news) };
            };
            let due = due.max(self.clock);
            if due > now {
                return Advance { next: Some(due), news: newest(news) };
            }
            self.clock = due;
            self.fire(plan, event, due, &mut news);
            self.settle(plan, due, &mut news);
        }
        Advance { next: Some(now), news: newest(news) }
    }

    /// The behavior of its containers changed at `now`.
    pub fn replan(&mut self, plan: &Plan<'_>, now: Timestamp) {
        self.touch(now);
        for (i, record) in self.containers.iter_mut().enumerate() {
            let Some(p) = plan.containers.get(i).filter(|_| record.phase == Phase::Running) else { continue };
            let act = plan.act(i, record.restarts);
            let (script, started) = (&act.script, record.started);
            record.startup.again(Kind::Startup, p.startup.as_ref(), script, started, now);
            if record.begun && record.startup.result {
                record.readiness.again(Kind::Readiness, p.readiness.as_ref(), script, started, now);
                record.liveness.again(Kind::Liveness, p.liveness.as_ref(), script, started, now);
            }
        }
    }

    fn due(&self, plan: &Plan<'_>) -> Option<(Timestamp, Event)> {
        let mut first: Option<(Timestamp, Event)> = None;
        let mut take = |t: Option<Timestamp>, event: Event| {
            if let Some(t) = t
                && first.as_ref().is_none_or(|(f, _)| t < *f)
            {
                first = Some((t, event));
            }
        };
        if self.teardown.is_none() {
            if self.made.is_none() {
                take(self.mounts.1.or(Some(after(self.created, plan.delays.sandbox))), Event::Made);
            }
            take(plan.deadline.map(|d| after(self.created, d)), Event::Deadline);
        }
        if let Some(until) = self.resizing {
            take(Some(until), Event::Resized);
        }
        for (i, record) in self.containers.iter().enumerate().take(plan.containers.len()) {
            let (t, what) = self.due_of(plan, i, record);
            take(t, Event::Container(i, what));
        }
        if let Some(teardown) = self.teardown
            && self.containers.iter().any(|r| r.phase == Phase::Stopping { exit_at: None, killed: false })
        {
            take(Some(teardown.kill_at), Event::KillSidecars);
        }
        first
    }

    fn due_of(&self, plan: &Plan<'_>, i: usize, record: &Record) -> (Option<Timestamp>, Moment) {
        let ending = self.teardown.is_some();
        let Some(p) = plan.containers.get(i) else { return (None, Moment::Next) };
        let act = || plan.act(i, record.run());
        let notice = plan.delays.notice;
        let end = || plan.act(i, record.restarts).script.end().map(|(d, _)| after(record.started, d));
        match record.phase {
            Phase::Waiting | Phase::NeverPull => (None, Moment::Next),
            Phase::Running => {
                let mut first = (end(), Moment::End);
                let probes = [
                    (record.startup.next, Kind::Startup),
                    (record.readiness.next, Kind::Readiness),
                    (record.liveness.next, Kind::Liveness),
                ];
                for (next, kind) in probes {
                    if next.is_some_and(|n| first.0.is_none_or(|f| n < f)) {
                        first = (next, Moment::Probe(kind));
                    }
                }
                first
            }
            Phase::Stopping { exit_at, .. } => match (exit_at, end()) {
                (Some(exit), Some(end)) if end < exit => (Some(end), Moment::End),
                (None, Some(end)) => (Some(end), Moment::End),
                (exit, _) => (exit, Moment::Stopped),
            },
            _ if ending => (None, Moment::Next),
            Phase::Pulling => (Some(after(record.since, act().pull)), Moment::Next),
            Phase::PullFailed => (Some(after(record.since, notice)), Moment::Next),
            Phase::PullBackOff => (record.pulls.until(), Moment::Next),
            Phase::Starting => (Some(after(record.since, act().start)), Moment::Next),
            Phase::Misconfigured => (Some(after(record.since, AGAIN)), Moment::Next),
            Phase::Exited => {
                let again = record.end.as_ref().filter(|e| p.restarts_after(e.code));
                (again.map(|e| after(e.finished, notice)), Moment::Next)
            }
            Phase::BackOff => {
                let until = record.end.as_ref().map(|e| after(e.finished, record.backoff.after(e.finished)));
                (until, Moment::Next)
            }
        }
    }

    fn fire(&mut self, plan: &Plan<'_>, event: Event, t: Timestamp, news: &mut Vec<News>) {
        match event {
            Event::Made if plan.lacking.volume.is_some() => {
                let (tries, _) = self.mounts;
                let wait = MOUNTS.0.saturating_mul(1 << tries.min(16)).min(MOUNTS.1);
                self.mounts = (tries.saturating_add(1), Some(after(t, wait)));
                news.push(News { at: t, container: 0, what: What::FailedMount });
            }
            Event::Made => self.made = Some(t),
            Event::Deadline => {
                news.push(News { at: t, container: 0, what: What::Deadline });
                self.begin_teardown(plan, t, Cause::Deadline, plan.grace, news);
            }
            Event::Resized => {
                self.resizing = None;
                news.push(News { at: t, container: 0, what: What::ResizeCompleted });
                for record in &mut self.containers {
                    record.held = None;
                }
            }
            Event::KillSidecars => self.signal_sidecars(plan, t),
            Event::Container(i, Moment::Probe(kind)) => self.probe(plan, i, kind, t, news),
            Event::Container(i, moment) => {
                let Some(record) = self.containers.get_mut(i) else { return };
                match (moment, record.phase) {
                    (Moment::End, _) => {
                        let act = plan.act(i, record.restarts);
                        let exit = act.script.end().map(|(_, e)| e.clone()).unwrap_or_default();
                        record.exit(t, &exit);
                    }
                    (Moment::Stopped, Phase::Stopping { killed, .. }) => {
                        let code = if killed { 137 } else { plan.act(i, record.restarts).stop_code };
                        record.exit(t, &Exit { code, ..Exit::default() });
                    }
                    _ => record.next(plan, i, t, news),
                }
            }
        }
    }

    fn probe(&mut self, plan: &Plan<'_>, i: usize, kind: Kind, t: Timestamp, news: &mut Vec<News>) {
        let (Some(record), Some(p)) = (self.containers.get_mut(i), plan.containers.get(i)) else { return };
        let act = plan.act(i, record.restarts);
        let started = record.started;
        let (probe, of) = match kind {
            Kind::Startup => (&mut record.startup, &p.startup),
            Kind::Readiness => (&mut record.readiness, &p.readiness),
            Kind::Liveness => (&mut record.liveness, &p.liveness),
        };
        let Some(of) = of else {
            probe.next = None;
            return;
        };
        let asked = probe.ask(kind, of, &act.script, started, t);
        if asked.failed {
            news.push(News { at: t, container: i, what: What::Unhealthy(kind) });
        }
        if !asked.turned {
            return;
        }
        let why = match (kind, probe.result) {
            (Kind::Startup, true) => return record.passed_startup(plan, i, t),
            (Kind::Startup, false) => Why::Startup,
            (Kind::Liveness, false) => Why::Liveness,
            _ => return,
        };
        news.push(News { at: t, container: i, what: What::Killing(why) });
        self.kill(plan, i, t, of.grace);
    }

    /// Begins whatever has a free way.
    fn settle(&mut self, plan: &Plan<'_>, t: Timestamp, news: &mut Vec<News>) {
        if self.teardown.is_some() {
            return self.signal_sidecars(plan, t);
        }
        if self.made.is_none() {
            return;
        }
        for i in plan.of(Part::Ephemeral) {
            self.begin(plan, i, t, news);
        }
        let inits = plan.containers.iter().take_while(|p| matches!(p.part, Part::Init | Part::Sidecar));
        for (i, p) in inits.enumerate() {
            self.begin(plan, i, t, news);
            let record = &self.containers[i];
            if failed_for_good(record, p) {
                return self.begin_teardown(plan, t, Cause::InitFailed, plan.grace, news);
            }
            if !record.lets_others_begin(p) {
                return;
            }
        }
        let (mut mains, mut over) = (0, 0);
        for i in plan.of(Part::Main) {
            self.begin(plan, i, t, news);
            let record = &self.containers[i];
            let ended = record.end.as_ref().filter(|_| record.phase == Phase::Exited);
            mains += 1;
            over += usize::from(ended.is_some_and(|e| !plan.containers[i].restarts_after(e.code)));
        }
        if mains > 0 && over == mains {
            self.begin_teardown(plan, t, Cause::Finished, plan.grace, news);
        }
    }

    fn begin(&mut self, plan: &Plan<'_>, i: usize, t: Timestamp, news: &mut Vec<News>) {
        if let Some(record) = self.containers.get_mut(i).filter(|r| r.phase == Phase::Waiting) {
            record.begin(plan, i, t, news);
        }
    }
}

/// Whether an init container stands in the way for ever.
fn failed_for_good(record: &Record, plan: &super::ContainerPlan<'_>) -> bool {
    let ended = record.end.as_ref().filter(|_| record.phase == Phase::Exited);
    plan.part == Part::Init && ended.is_some_and(|e| e.code != 0 && !plan.restarts_after(e.code))
}

#[derive(Clone, Copy)]
enum Event {
    Made,
    Deadline,
    Resized,
    KillSidecars,
    Container(usize, Moment),
}

#[derive(Clone, Copy)]
enum Moment {
    /// The present phase is over.
    Next,
    /// The run ends by itself.
    End,
    /// It ends as it was told to.
    Stopped,
    Probe(Kind),
}

fn newest(mut news: Vec<News>) -> Vec<News> {
    let old = news.len().saturating_sub(MOST_NEWS);
    news.drain(..old);
    news
}

impl Record {
    fn become_(&mut self, phase: Phase, t: Timestamp) {
        self.phase = phase;
        self.since = t;
    }

    /// Takes the first step to a run: the image.
    fn begin(&mut self, plan: &Plan<'_>, i: usize, t: Timestamp, news: &mut Vec<News>) {
        let Some(p) = plan.containers.get(i) else { return };
        let act = plan.act(i, self.run());
        let absent = act.pull_error.as_ref().is_some_and(|(_, n)| n.is_none_or(|n| self.failed_pulls < n));
        let mut tell = |what| news.push(News { at: t, container: i, what });
        if p.never_pull {
            if absent {
                tell(What::NeverPull);
                return self.become_(Phase::NeverPull, t);
            }
        } else if p.always_pull || absent || !(p.present || self.pulled) {
            tell(What::Pulling);
            return self.become_(Phase::Pulling, t);
        }
        tell(What::Present);
        self.become_(Phase::Starting, t);
    }

    /// The present phase is over.
    fn next(&mut self, plan: &Plan<'_>, i: usize, t: Timestamp, news: &mut Vec<News>) {
        match self.phase {
            Phase::Pulling => {
                let act = plan.act(i, self.run());
                let fails = |(_, n): &(String, Option<i32>)| n.is_none_or(|n| self.failed_pulls < n);
                if act.pull_error.as_ref().is_some_and(fails) {
                    self.failed_pulls = self.failed_pulls.saturating_add(1);
                    self.pulls.next(t, t);
                    news.push(News { at: t, container: i, what: What::PullFailed });
                    return self.become_(Phase::PullFailed, t);
                }
                self.pulled = true;
                news.push(News { at: t, container: i, what: What::Pulled(super::since(t, self.since)) });
                self.become_(Phase::Starting, t);
            }
            Phase::PullFailed => {
                news.push(News { at: t, container: i, what: What::PullBackOff });
                self.become_(Phase::PullBackOff, t);
            }
            Phase::Misconfigured if plan.misconfigured(i).is_some() => {
                news.push(News { at: t, container: i, what: What::Misconfigured });
                self.since = t;
            }
            Phase::PullBackOff | Phase::Misconfigured => self.begin(plan, i, t, news),
            Phase::Starting => self.start(plan, i, t, news),
            Phase::Exited => {
                let Some(finished) = self.end.as_ref().map(|e| e.finished) else { return };
                if t < after(finished, self.backoff.after(finished)) {
                    news.push(News { at: t, container: i, what: What::BackOff });
                    return self.become_(Phase::BackOff, t);
                }
                self.backoff.next(finished, t);
                self.begin(plan, i, t, news);
            }
            Phase::BackOff => {
                let finished = self.end.as_ref().map_or(t, |e| e.finished);
                self.backoff.next(finished, t);
                self.begin(plan, i, t, news);
            }
            Phase::Waiting | Phase::NeverPull | Phase::Running | Phase::Stopping { .. } => {}
        }
    }

    fn start(&mut self, plan: &Plan<'_>, i: usize, t: Timestamp, news: &mut Vec<News>) {
        if plan.misconfigured(i).is_some() {
            news.push(News { at: t, container: i, what: What::Misconfigured });
            return self.become_(Phase::Misconfigured, t);
        }
        let act = plan.act(i, self.run());
        if let Some(end) = self.end.take() {
            self.last = Some(end);
            self.restarts = self.restarts.saturating_add(1);
        }
        self.started = t;
        if let Some(why) = &act.start_error {
            news.push(News { at: t, container: i, what: What::StartFailed });
            let reason = Some("StartError".to_owned());
            return self.exit(t, &Exit { code: 128, reason, message: Some(why.clone()) });
        }
        news.push(News { at: t, container: i, what: What::Started });
        self.become_(Phase::Running, t);
        let startup = plan.containers.get(i).and_then(|p| p.startup.as_ref());
        self.startup = Probe::begin(Kind::Startup, startup, &act.script, t, t);
        if self.startup.result {
            self.passed_startup(plan, i, t);
        }
    }

    fn passed_startup(&mut self, plan: &Plan<'_>, i: usize, t: Timestamp) {
        let Some(p) = plan.containers.get(i) else { return };
        let act = plan.act(i, self.restarts);
        let begin = |kind, of: Option<&_>| Probe::begin(kind, of, &act.script, self.started, t);
        (self.readiness, self.liveness) =
            (begin(Kind::Readiness, p.readiness.as_ref()), begin(Kind::Liveness, p.liveness.as_ref()));
        self.begun = true;
    }

    fn exit(&mut self, t: Timestamp, exit: &Exit) {
        let by_code = if exit.code == 0 { "Completed" } else { "Error" };
        self.end = Some(Box::new(Termination {
            started: self.started,
            finished: t,
            code: exit.code,
            reason: exit.reason.as_deref().unwrap_or(by_code).into(),
            message: exit.message.as_deref().map(Into::into),
            run: self.restarts,
        }));
        (self.startup, self.readiness, self.liveness) = Default::default();
        self.become_(Phase::Exited, t);
    }
}
