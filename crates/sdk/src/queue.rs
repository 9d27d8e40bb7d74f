//! The work queue: which keys want a reconcile, which are in one, and when failed ones may try again.
//!
//! It is client-go's rate-limited work queue as one structure, in tokio's time: a key waits at most once, is with at
//! most one worker, and comes back when it is added while a worker has it. It knows nothing of objects.
//! Invariants: a key that was added is handed out after that; two workers never have the same key; the n-th failure
//! in a row waits `base * 2^(n-1)`, at most `max`; where changes are gathered, a key that ended well isn't handed out
//! again before that time has passed, and what it was added for not later than after five times as long.
//!
//! One thing differs from client-go on purpose: there, a key that changed while its reconcile failed comes back at
//! once, so a reconcile that writes before it fails runs as fast as it can for ever. Here it waits for its backoff,
//! but at most [`Backoff::changed`], since what changed may have been the cure.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How soon a key may come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// A change that just happened.
    Normal,
    /// The initial list and resyncs: handed out when nothing normal waits, and now and then all the same, so that keys
    /// that come back all the time don't keep the rest waiting for ever.
    Low,
}

/// The delays after failures: exponential from `base` to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub base: Duration,
    /// At most this.
    pub max: Duration,
    /// At most this where the key changed while its reconcile failed.
    pub changed: Duration,
}

impl Default for Backoff {
    /// controller-runtime's and client-go's 5 ms to 1000 s.
    fn default() -> Self {
        Self {
            base: Duration::from_millis(5),
            max: Duration::from_secs(1000),
            changed: Duration::from_secs(1),
        }
    }
}

impl Backoff {
    /// The delay after `failures` failures in a row (from 1).
    pub fn delay(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1);
        match 1u32.checked_shl(doublings).filter(|_| doublings < 31) {
            Some(factor) => self.base.saturating_mul(factor).min(self.max),
            None => self.max,
        }
    }
}

/// How a worker ended with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well; the key rests until it is added again.
    Done,
    /// Well; the key comes back after this, or earlier when it is added.
    After(Duration),
    /// Failed; the key comes back after its backoff.
    Failed,
}

#[derive(Debug)]
enum State {
    /// In `ready` under this ticket, since then.
    Ready { priority: Priority, ticket: u64, since: Instant },
    /// In `delayed` under this instant and ticket.
    Delayed { at: Instant, ticket: u64 },
    /// With a worker since then; `again` says that it was added meanwhile.
    Running { again: Option<Again>, since: Instant },
    /// In `delayed`: it was with a worker lately, and what it is added for until then is gathered in `again`; while more
    /// comes, until `longest`.
    Resting { again: Option<Again>, added: Instant, longest: Instant },
}

#[derive(Clone, Copy, Debug)]
enum Again {
    Now(Priority),
    At(Instant),
}

/// Added for now, too.
fn now(again: Option<Again>, priority: Priority) -> Again {
    Again::Now(match again {
        Some(Again::Now(p)) => p.min(priority),
        _ => priority,
    })
}

/// Added for later, too.
fn later(again: Option<Again>, when: Instant) -> Again {
    match again {
        None => Again::At(when),
        Some(Again::At(at)) => Again::At(at.min(when)),
        Some(now @ Again::Now(_)) => now,
    }
}

#[derive(Debug)]
struct Entry {
    failures: u32,
    state: State,
}

#[derive(Debug)]
struct Inner<K> {
    /// Only looked up, never iterated: its order is not observable.
    entries: HashMap<K, Entry>,
    /// By priority. An item whose ticket isn't its entry's is left over from before a change of state.
    ready: [VecDeque<(K, u64)>; 2],
    delayed: BTreeMap<(Instant, u64), K>,
    ticket: u64,
    waiting: [usize; 2],
    running: usize,
    adds: u64,
    retries: u64,
    /// Normal keys handed out since the last low one.
    streak: usize,
    closed: bool,
}

/// A key that rests while more and more comes for it comes back after so many times the time it rests at least.
const LONGEST: u32 = 5;

/// While low keys wait, so many normal ones are handed out for each of them.
const STREAK: usize = 7;

/// A queue of keys for any number of workers.
#[derive(Debug)]
pub struct Queue<K> {
    inner: Mutex<Inner<K>>,
    wake: Notify,
    backoff: Backoff,
    gather: Duration,
}

/// A key that a worker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<K> {
    /// The key.
    pub key: K,
    /// How long it was ready before it was taken.
    pub waited: Duration,
}

/// What is under way at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// How long workers have had their keys so far, together.
    pub total: Duration,
    /// How long the worker that takes longest has had its key.
    pub longest: Duration,
}

/// Sizes at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Keys that a worker could take now.
    pub ready: usize,
    /// Keys that were added for now, and rest until more of their changes may have come.
    pub gathered: usize,
    /// Keys that wait for a time.
    pub delayed: usize,
    /// Keys with workers.
    pub running: usize,
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        Self::new(Backoff::default())
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new(backoff: Backoff) -> Self {
        Self {
            inner: Mutex::new(Inner {
                entries: HashMap::new(),
                ready: [VecDeque::new(), VecDeque::new()],
                delayed: BTreeMap::new(),
                ticket: 0,
                waiting: [0; 2],
                running: 0,
                adds: 0,
                retries: 0,
                streak: 0,
                closed: false,
            }),
            wake: Notify::new(),
            backoff,
            gather: Duration::ZERO,
        }
    }

    /// A key that ended well comes again after `time` at the earliest, however often it is added, and while it is added
    /// again within that time, not before five times as long: what happens meanwhile is one.
    #[must_use]
    pub fn gathering(mut self, time: Duration) -> Self {
        self.gather = time;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds `key` for now. A key that waits already is not added twice, but gets the higher of the two priorities; a
    /// delayed key comes forward; one that a worker has comes back after it.
    pub fn add(&self, key: K, priority: Priority) {
        if self.lock().add(key, priority) {
            self.wake.notify_one();
        }
    }

    /// Adds `key` for later. Where it waits for an earlier time already, that time stays.
    pub fn add_after(&self, key: K, delay: Duration) {
        let added = if delay.is_zero() {
            self.lock().add(key, Priority::Normal)
        } else {
            self.lock().add_at(key, Instant::now() + delay)
        };
        if added {
            self.wake.notify_one();
        }
    }

    /// Waits for a key. `None` when the queue is closed.
    ///
    /// The caller has the key until [`Queue::finish`].
    pub async fn next(&self) -> Option<K> {
        self.take().await.map(|taken| taken.key)
    }

    /// As [`next`](Self::next), with how long the key waited.
    pub async fn take(&self) -> Option<Taken<K>> {
        loop {
            let mut notified = pin!(self.wake.notified());
            // Registered before looking: an add in between is not lost.
            notified.as_mut().enable();
            let deadline = {
                let mut inner = self.lock();
                if inner.closed {
                    return None;
                }
                inner.promote(self.gather);
                if let Some(taken) = inner.take() {
                    let more = inner.waiting != [0; 2];
                    drop(inner);
                    if more {
                        self.wake.notify_one();
                    }
                    return Some(taken);
                }
                inner.delayed.first_key_value().map(|(&(at, _), _)| at)
            };
            match deadline {
                Some(at) => {
                    tokio::select! { biased;
                        () = notified => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => notified.await,
            }
        }
    }

    /// Gives `key` back. Returns how long it waits before it comes again, where that is known.
    pub fn finish(&self, key: &K, outcome: Outcome) -> Option<Duration> {
        let mut inner = self.lock();
        let entry = inner.entries.get_mut(key)?;
        let State::Running { again, .. } = entry.state else { return None };
        entry.failures = if outcome == Outcome::Failed { entry.failures.saturating_add(1) } else { 0 };
        let failures = entry.failures;
        inner.running -= 1;
        inner.retries += u64::from(outcome == Outcome::Failed);
        let now = Instant::now();
        if !self.gather.is_zero() && outcome != Outcome::Failed {
            let again = match outcome {
                Outcome::After(delay) => Some(later(again, now + delay)),
                _ => again,
            };
            inner.rest(key.clone(), now, self.gather, again);
            drop(inner);
            self.wake.notify_one();
            return again.map(|again| match again {
                Again::Now(_) => self.gather,
                Again::At(at) => at.saturating_duration_since(now).max(self.gather),
            });
        }
        let delay = match (outcome, again) {
            (Outcome::Failed, Some(Again::Now(_))) => {
                Some(self.backoff.delay(failures).min(self.backoff.changed))
            }
            (Outcome::Failed, _) => Some(self.backoff.delay(failures)),
            (_, Some(Again::Now(_))) => Some(Duration::ZERO),
            (Outcome::After(d), Some(Again::At(at))) => Some(d.min(at.saturating_duration_since(now))),
            (Outcome::After(d), None) => Some(d),
            (Outcome::Done, Some(Again::At(at))) => Some(at.saturating_duration_since(now)),
            (Outcome::Done, None) => None,
        };
        match delay {
            None => {
                inner.entries.remove(key);
            }
            Some(delay) if delay.is_zero() => {
                let priority = if let Some(Again::Now(p)) = again { p } else { Priority::Normal };
                inner.ready(key.clone(), priority);
                drop(inner);
                self.wake.notify_one();
            }
            Some(delay) => {
                inner.delay(key.clone(), now + delay);
                drop(inner);
                self.wake.notify_one();
            }
        }
        delay
    }

    /// Gives `key` back for good, whatever was added meanwhile: it is somebody else's.
    pub fn forget(&self, key: &K) {
        let mut inner = self.lock();
        if matches!(inner.entries.get(key), Some(Entry { state: State::Running { .. }, .. })) {
            inner.entries.remove(key);
            inner.running -= 1;
        }
    }

    /// How many keys were added so far, those left out that waited already; and how many failed and were tried again.
    pub fn counts(&self) -> (u64, u64) {
        let inner = self.lock();
        (inner.adds, inner.retries)
    }

    /// How long workers have had what they have.
    pub fn unfinished(&self) -> Unfinished {
        let inner = self.lock();
        let now = Instant::now();
        let mut all = Unfinished::default();
        if inner.running == 0 {
            return all;
        }
        for entry in inner.entries.values() {
            if let State::Running { since, .. } = entry.state {
                let so_far = now.saturating_duration_since(since);
                all.total += so_far;
                all.longest = all.longest.max(so_far);
            }
        }
        all
    }

    /// How often `key` failed in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().entries.get(key).map_or(0, |e| e.failures)
    }

    /// Sizes now.
    pub fn depth(&self) -> Depth {
        let inner = self.lock();
        let mut depth =
            Depth { ready: inner.waiting.iter().sum(), gathered: 0, delayed: 0, running: inner.running };
        if self.gather.is_zero() {
            depth.delayed = inner.delayed.len();
            return depth;
        }
        for key in inner.delayed.values() {
            match inner.entries.get(key).map(|e| &e.state) {
                Some(State::Resting { again: None, .. }) => {}
                Some(State::Resting { again: Some(Again::Now(_)), .. }) => depth.gathered += 1,
                _ => depth.delayed += 1,
            }
        }
        depth
    }

    /// How many keys are ready with normal priority, and with low.
    pub fn ready_by_priority(&self) -> [usize; 2] {
        self.lock().waiting
    }

    /// Hands out nothing more. Workers keep what they have.
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_waiters();
        // And whoever is about to wait.
        self.wake.notify_one();
    }
}

impl<K: Clone + Eq + Hash> Inner<K> {
    fn ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    /// Makes `key` ready, whatever it was; its entry's failures stay.
    fn ready(&mut self, key: K, priority: Priority) {
        let ticket = self.ticket();
        self.adds += 1;
        let state = State::Ready { priority, ticket, since: Instant::now() };
        match self.entries.get_mut(&key) {
            Some(entry) => entry.state = state,
            None => {
                self.entries.insert(key.clone(), Entry { failures: 0, state });
            }
        }
        self.ready[priority as usize].push_back((key, ticket));
        self.waiting[priority as usize] += 1;
    }

    fn delay(&mut self, key: K, at: Instant) {
        let ticket = self.ticket();
        let state = State::Delayed { at, ticket };
        match self.entries.get_mut(&key) {
            Some(entry) => entry.state = state,
            None => {
                self.entries.insert(key.clone(), Entry { failures: 0, state });
            }
        }
        self.delayed.insert((at, ticket), key);
    }

    fn rest(&mut self, key: K, now: Instant, gather: Duration, again: Option<Again>) {
        let ticket = self.ticket();
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.state = State::Resting { again, added: now, longest: now + gather * LONGEST };
            self.delayed.insert((now + gather, ticket), key);
        }
    }

    /// Whether a worker should wake.
    fn add(&mut self, key: K, priority: Priority) -> bool {
        if self.closed {
            return false;
        }
        match self.entries.get_mut(&key).map(|e| &mut e.state) {
            None => self.ready(key, priority),
            Some(State::Ready { priority: has, .. }) if *has <= priority => return false,
            Some(State::Ready { priority: has, .. }) => {
                // The lower item stays behind with an old ticket.
                let has = *has;
                self.waiting[has as usize] -= 1;
                self.ready(key, priority);
            }
            Some(State::Delayed { at, ticket }) => {
                let place = (*at, *ticket);
                self.delayed.remove(&place);
                self.ready(key, priority);
            }
            Some(State::Running { again, .. }) => {
                *again = Some(now(*again, priority));
                return false;
            }
            Some(State::Resting { again, added, .. }) => {
                (*again, *added) = (Some(now(*again, priority)), Instant::now());
                return false;
            }
        }
        true
    }

    fn add_at(&mut self, key: K, when: Instant) -> bool {
        if self.closed {
            return false;
        }
        match self.entries.get_mut(&key).map(|e| &mut e.state) {
            None => self.delay(key, when),
            Some(State::Ready { .. }) => return false,
            Some(State::Delayed { at, .. }) if *at <= when => return false,
            Some(State::Delayed { at, ticket }) => {
                let place = (*at, *ticket);
                self.delayed.remove(&place);
                self.delay(key, when);
            }
            Some(State::Running { again, .. } | State::Resting { again, .. }) => {
                *again = Some(later(*again, when));
                return false;
            }
        }
        true
    }

    /// Makes ready what is due.
    fn promote(&mut self, gather: Duration) {
        if self.delayed.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(first) = self.delayed.first_entry() {
            if first.key().0 > now {
                break;
            }
            let key = first.remove();
            let again = match self.entries.get(&key).map(|e| &e.state) {
                Some(State::Resting { again: Some(Again::Now(_)), added, longest })
                    if *added + gather > now && *longest > now =>
                {
                    let at = (*added + gather).min(*longest);
                    let ticket = self.ticket();
                    self.delayed.insert((at, ticket), key);
                    continue;
                }
                Some(State::Resting { again, .. }) => *again,
                _ => Some(Again::Now(Priority::Normal)),
            };
            match again {
                None => drop(self.entries.remove(&key)),
                Some(Again::Now(priority)) => self.ready(key, priority),
                Some(Again::At(at)) => self.delay(key, at),
            }
        }
    }

    fn take(&mut self) -> Option<Taken<K>> {
        let turn_of_low = self.streak >= STREAK && self.waiting[Priority::Low as usize] > 0;
        let order =
            if turn_of_low { [Priority::Low, Priority::Normal] } else { [Priority::Normal, Priority::Low] };
        for priority in order {
            if let Some(taken) = self.take_of(priority) {
                self.streak = if priority == Priority::Low { 0 } else { self.streak.saturating_add(1) };
                return Some(taken);
            }
        }
        None
    }

    fn take_of(&mut self, priority: Priority) -> Option<Taken<K>> {
        while let Some((key, ticket)) = self.ready[priority as usize].pop_front() {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let waited = match entry.state {
                State::Ready { ticket: t, since, .. } if t == ticket => since.elapsed(),
                _ => continue,
            };
            entry.state = State::Running { again: None, since: Instant::now() };
            self.waiting[priority as usize] -= 1;
            self.running += 1;
            return Some(Taken { key, waited });
        }
        None
    }
}

#[cfg(test)]
mod tests;
