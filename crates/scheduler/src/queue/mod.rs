//! The scheduling queue: pods to try now, pods that back off, pods that wait for something to change.
//!
//! A pod that no node takes remembers which plugins refused it. It comes back when an event happens of which one of
//! them says that it may help, at the earliest after a backoff that doubles from 1 s to 10 s, and at the latest after
//! five minutes. Events that happen while a pod is being tried count when it comes back. Pure but for the caller's
//! clock: every method is told the time.
//! Invariant: a pod is in exactly one place, and in none once it is done or gone.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::framework::{Event, Framework};
use crate::snapshot::{PodInfo, Snapshot};

/// A pod that waits is tried again after this long even if nothing has happened.
const FLUSH: Duration = Duration::from_secs(300);
/// Events remembered for pods that are being tried; with more, they are tried again whatever happened.
const MOST_EVENTS: usize = 10_000;

type Uid = Arc<str>;
/// The order of trying: rank, then who came or was put back first.
type Place = (Reverse<i64>, u64, Uid);

#[derive(Clone, Debug)]
enum State {
    Active(Place),
    /// Until then; `error` backs off whatever happens.
    Backoff {
        until: Instant,
        error: bool,
    },
    Unschedulable {
        since: Instant,
    },
    /// A plugin doesn't let it in.
    Gated(&'static str),
    /// Is being tried; events from this number on happened meanwhile.
    Trying {
        from: u64,
    },
}

#[derive(Debug)]
struct Entry {
    pod: Arc<PodInfo>,
    framework: Arc<Framework>,
    state: State,
    /// When it came, or was last put back, as a number.
    ticket: u64,
    /// Attempts that found no node.
    refusals: u32,
    /// Attempts in a row in which something broke.
    errors: u32,
    /// Who refused it last.
    refused_by: BTreeSet<&'static str>,
    /// It is up to somebody outside: no backoff.
    pending: bool,
    /// The end of its backoff.
    until: Option<Instant>,
}

/// How an attempt ended that did not bind the pod.
#[derive(Clone, Debug, Default)]
pub struct Failure {
    /// The plugins that refused it; none where something broke.
    pub refused_by: BTreeSet<&'static str>,
    /// Whether it is up to somebody outside.
    pub pending: bool,
    /// Whether something broke.
    pub error: bool,
}

/// How many pods are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// To be tried now.
    pub active: usize,
    /// Backing off.
    pub backoff: usize,
    /// Waiting for something to change.
    pub unschedulable: usize,
    /// Not let in.
    pub gated: usize,
    /// Being tried, or bound.
    pub trying: usize,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    initial: Duration,
    most: Duration,
    entries: BTreeMap<Uid, Entry>,
    active: BTreeSet<Place>,
    backoff: BTreeSet<(Instant, Uid)>,
    waiting: BTreeSet<(Instant, Uid)>,
    gated: BTreeSet<Uid>,
    trying: BTreeSet<(u64, Uid)>,
    events: VecDeque<Event>,
    /// The number of the first of `events`.
    first_event: u64,
    tickets: u64,
}

impl Queue {
    /// An empty queue with these backoffs.
    pub fn new(initial: Duration, most: Duration) -> Self {
        Self {
            initial,
            most,
            entries: BTreeMap::new(),
            active: BTreeSet::new(),
            backoff: BTreeSet::new(),
            waiting: BTreeSet::new(),
            gated: BTreeSet::new(),
            trying: BTreeSet::new(),
            events: VecDeque::new(),
            first_event: 0,
            tickets: 0,
        }
    }

    fn next_event(&self) -> u64 {
        self.first_event + self.events.len() as u64
    }

    /// Takes an entry out of the set that its state stands for.
    fn detach(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.get(uid) else { return };
        match &entry.state {
            State::Active(place) => drop(self.active.remove(place)),
            State::Backoff { until, .. } => drop(self.backoff.remove(&(*until, uid.clone()))),
            State::Unschedulable { since } => drop(self.waiting.remove(&(*since, uid.clone()))),
            State::Gated(_) => drop(self.gated.remove(uid)),
            State::Trying { from } => {
                self.trying.remove(&(*from, uid.clone()));
                self.forget_events();
            }
        }
    }

    /// Events that nobody who is being tried needs any more.
    fn forget_events(&mut self) {
        let needed = self.trying.first().map_or(u64::MAX, |(from, _)| *from);
        while self.first_event < needed && self.events.pop_front().is_some() {
            self.first_event += 1;
        }
    }

    fn attach(&mut self, uid: &Uid, state: State) {
        match &state {
            State::Active(place) => drop(self.active.insert(place.clone())),
            State::Backoff { until, .. } => drop(self.backoff.insert((*until, uid.clone()))),
            State::Unschedulable { since } => drop(self.waiting.insert((*since, uid.clone()))),
            State::Gated(_) => drop(self.gated.insert(uid.clone())),
            State::Trying { from } => drop(self.trying.insert((*from, uid.clone()))),
        }
        if let Some(entry) = self.entries.get_mut(uid) {
            entry.state = state;
        }
    }

    fn move_to(&mut self, uid: &Uid, state: State) {
        self.detach(uid);
        self.attach(uid, state);
    }

    /// Lets a pod in, where its plugins do.
    fn activate(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.get(uid) else { return };
        let state = match entry.framework.pre_enqueue(&entry.pod) {
            Ok(()) => {
                let rank = entry.framework.rank(&entry.pod);
                State::Active((Reverse(rank), entry.ticket, uid.clone()))
            }
            Err(status) => State::Gated(status.plugin),
        };
        self.move_to(uid, state);
    }

    /// An event may have helped: now, or when the backoff is over.
    fn wake(&mut self, uid: &Uid, now: Instant) {
        let Some(entry) = self.entries.get(uid) else { return };
        match entry.until {
            Some(until) if until > now && !entry.pending => {
                self.move_to(uid, State::Backoff { until, error: false });
            }
            _ => self.activate(uid),
        }
    }

    /// A pod without a node came, or changed.
    pub fn put(&mut self, pod: Arc<PodInfo>, framework: &Arc<Framework>, snapshot: &Snapshot, now: Instant) {
        let uid = pod.uid.clone();
        let Some(entry) = self.entries.get_mut(&uid) else {
            self.tickets += 1;
            let entry = Entry {
                pod,
                framework: framework.clone(),
                state: State::Gated(""),
                ticket: self.tickets,
                refusals: 0,
                errors: 0,
                refused_by: BTreeSet::new(),
                pending: false,
                until: None,
            };
            self.entries.insert(uid.clone(), entry);
            self.gated.insert(uid.clone());
            self.activate(&uid);
            return;
        };
        let old = std::mem::replace(&mut entry.pod, pod.clone());
        // Claims of devices are made after the pod, and named in its status.
        let rest = |p: &PodInfo| {
            let claims = p.pod.status.as_ref().and_then(|s| s.resource_claim_statuses.clone());
            (p.pod.metadata.annotations.clone(), claims)
        };
        if old.spec() == pod.spec() && old.class == pod.class && rest(&old) == rest(&pod) {
            return;
        }
        match &entry.state {
            // Its rank may be another.
            State::Active(_) | State::Gated(_) => self.activate(&uid),
            State::Unschedulable { .. } => {
                let event = Event::PodUpdated { old, new: pod.clone() };
                if entry.framework.helps(&event, &pod, &entry.refused_by, snapshot) {
                    self.wake(&uid, now);
                }
            }
            State::Backoff { .. } | State::Trying { .. } => {}
        }
    }

    /// A pod has a node, or is gone.
    pub fn remove(&mut self, uid: &Uid) {
        self.detach(uid);
        self.entries.remove(uid);
    }

    /// Whether a pod is in the queue, or being tried.
    pub fn has(&self, uid: &Uid) -> bool {
        self.entries.contains_key(uid)
    }

    /// The next pod to try, with its profile. It is the caller's until [`remove`](Self::remove) or
    /// [`failed`](Self::failed).
    ///
    /// Where nothing else is to do, a pod is tried before its backoff is over, unless something broke for it.
    pub fn pop(&mut self) -> Option<(Arc<PodInfo>, Arc<Framework>)> {
        let uid = match self.active.first() {
            Some((_, _, uid)) => uid.clone(),
            None => {
                let early = |uid: &&Uid| {
                    let state = self.entries.get(*uid).map(|e| &e.state);
                    matches!(state, Some(State::Backoff { error: false, .. }))
                };
                self.backoff.iter().map(|(_, uid)| uid).find(early)?.clone()
            }
        };
        self.move_to(&uid, State::Trying { from: self.next_event() });
        let entry = self.entries.get(&uid)?;
        Some((entry.pod.clone(), entry.framework.clone()))
    }

    /// An attempt did not bind the pod. It waits, backs off, or comes back at once if something happened meanwhile.
    ///
    /// It then stands behind pods of its rank that came while it was tried: it had its turn.
    pub fn failed(&mut self, uid: &Uid, failure: Failure, snapshot: &Snapshot, now: Instant) {
        let (initial, most) = (self.initial, self.most);
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let State::Trying { from } = entry.state else { return };
        self.tickets += 1;
        entry.ticket = self.tickets;
        if failure.error {
            entry.errors = entry.errors.saturating_add(1);
        } else {
            entry.errors = 0;
            entry.refusals = entry.refusals.saturating_add(1);
        }
        let times = if failure.error { entry.errors } else { entry.refusals };
        let wait = initial.saturating_mul(1 << times.saturating_sub(1).min(16)).min(most);
        entry.until = Some(now + wait);
        entry.refused_by = failure.refused_by;
        entry.pending = failure.pending;
        if failure.error {
            self.move_to(uid, State::Backoff { until: now + wait, error: true });
            return;
        }
        let missed = from < self.first_event;
        let skip = usize::try_from(from.saturating_sub(self.first_event)).unwrap_or(usize::MAX);
        let helped = missed
            || self
                .events
                .iter()
                .skip(skip)
                .any(|e| entry.framework.helps(e, &entry.pod, &entry.refused_by, snapshot));
        self.move_to(uid, State::Unschedulable { since: now });
        if helped {
            self.wake(uid, now);
        }
    }

    /// Something happened: pods that it may help come back.
    pub fn event(&mut self, event: Event, snapshot: &Snapshot, now: Instant) {
        let helped: Vec<Uid> = self
            .waiting
            .iter()
            .map(|(_, uid)| uid)
            .chain(&self.gated)
            .filter(|uid| {
                self.entries.get(*uid).is_some_and(|e| match e.state {
                    State::Gated(plugin) => {
                        e.framework.helps(&event, &e.pod, &BTreeSet::from([plugin]), snapshot)
                    }
                    _ => e.framework.helps(&event, &e.pod, &e.refused_by, snapshot),
                })
            })
            .cloned()
            .collect();
        for uid in &helped {
            self.wake(uid, now);
        }
        // That one waits helps those that wait already; one that was refused with it would only follow it for ever.
        if !self.trying.is_empty() && !matches!(event, Event::PodWaits(_)) {
            self.events.push_back(event);
            if self.events.len() > MOST_EVENTS {
                self.events.pop_front();
                self.first_event += 1;
            }
        }
    }

    /// Brings back pods whose backoff is over or that have waited long.
    pub fn flush(&mut self, now: Instant) {
        while let Some((until, uid)) = self.backoff.first().cloned()
            && until <= now
        {
            self.activate(&uid);
        }
        while let Some((since, uid)) = self.waiting.first().cloned()
            && since + FLUSH <= now
        {
            self.activate(&uid);
        }
    }

    /// When [`flush`](Self::flush) next has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let backoff = self.backoff.first().map(|(until, _)| *until);
        let waiting = self.waiting.first().map(|(since, _)| *since + FLUSH);
        [backoff, waiting].into_iter().flatten().min()
    }

    /// How many pods are where.
    pub fn depth(&self) -> Depth {
        Depth {
            active: self.active.len(),
            backoff: self.backoff.len(),
            unschedulable: self.waiting.len(),
            gated: self.gated.len(),
            trying: self.trying.len(),
        }
    }
}
