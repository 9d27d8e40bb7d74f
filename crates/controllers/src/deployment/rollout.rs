//! Which ReplicaSet gets how many pods: rolling and recreating updates, scaling, pause. Pure.
//!
//! One plan is one stage: a new set first, then its growth, then the shrinking of the old ones. Each stage changes the
//! sets, which brings the Deployment back for the next one.
//! Invariants of a rolling update: the sizes of all sets together never exceed `replicas + maxSurge` by growing, and
//! no set is shrunk while fewer than `replicas - maxUnavailable` pods would stay available.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ReplicaSet;

use super::sets::{DESIRED, Limits, MAX, Set};

/// The sizes that sets should get, by name. Sets that aren't in it stay as they are.
pub(super) type Sizes<'a> = Vec<(&'a ReplicaSet, i32)>;

/// What a plan is made from.
#[derive(Clone)]
pub(super) struct Sets<'a> {
    pub(super) new: Option<&'a ReplicaSet>,
    /// From old to new.
    pub(super) old: Vec<&'a ReplicaSet>,
    pub(super) limits: Limits,
    /// `status.replicas` of the Deployment.
    pub(super) replicas_before: i32,
    /// Pods of old sets exist, even if only on their way out.
    pub(super) old_pods: bool,
}

/// What is next.
#[derive(Debug, PartialEq)]
pub(super) enum Stage<'a> {
    /// Make the new set, of this size.
    Create(i32),
    /// Change the sizes of sets.
    Scale(Sizes<'a>),
    /// Nothing to change.
    Rest,
}

impl<'a> Sets<'a> {
    fn all(&self) -> impl Iterator<Item = &'a ReplicaSet> + Clone + use<'a, '_> {
        self.old.iter().copied().chain(self.new)
    }

    fn active(&self) -> Vec<&'a ReplicaSet> {
        self.all().filter(|s| s.size() > 0).collect()
    }

    fn size(&self) -> i32 {
        self.all().map(Set::size).sum()
    }

    /// The Deployment's size changed since its sets were scaled.
    pub(super) fn is_scaling(&self) -> bool {
        let differs =
            |s: &&ReplicaSet| s.number(DESIRED).is_some_and(|d| d != i64::from(self.limits.replicas));
        self.active().iter().any(differs)
    }

    /// A changed size, without an update: one set takes it all, several share it.
    pub(super) fn scale(&self) -> Stage<'a> {
        let replicas = self.limits.replicas;
        let active = self.active();
        let only = match active.as_slice() {
            [] => self.new.or_else(|| self.old.last().copied()),
            [one] => Some(*one),
            _ => None,
        };
        if active.len() < 2 {
            return only.map_or(Stage::Rest, |set| Stage::Scale(vec![(set, replicas)]));
        }
        if self.is_saturated() {
            return Stage::Scale(self.old.iter().filter(|s| s.size() > 0).map(|s| (*s, 0)).collect());
        }
        if !self.limits.rolling {
            // Several sets share nothing where an update recreates: the old ones go first.
            return self.recreate();
        }
        Stage::Scale(self.proportions(active))
    }

    /// The new set has all pods, available.
    fn is_saturated(&self) -> bool {
        let replicas = self.limits.replicas;
        self.new.is_some_and(|s| {
            s.size() == replicas
                && s.number(DESIRED) == Some(i64::from(replicas))
                && s.available() == replicas
        })
    }

    /// Shares what is to be added or removed among the sets by their sizes; the largest one gets the rest.
    fn proportions(&self, mut active: Vec<&'a ReplicaSet>) -> Sizes<'a> {
        let allowed = if self.limits.replicas > 0 { self.limits.most() } else { 0 };
        let to_add = allowed - self.size();
        // The largest first; among equals the newest gains and the oldest loses.
        if to_add > 0 {
            active.sort_by_key(|s| (Reverse(s.size()), Reverse(s.created())));
        } else {
            active.sort_by_key(|s| (Reverse(s.size()), s.created()));
        }
        let mut added = 0;
        let mut sizes: Sizes<'a> = Vec::new();
        for set in active {
            let left = to_add - added;
            let share = match left.cmp(&0) {
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Greater => self.fraction(set).min(left),
                std::cmp::Ordering::Less => self.fraction(set).max(left),
            };
            added += share;
            sizes.push((set, set.size() + share));
        }
        if let Some((_, size)) = sizes.first_mut() {
            *size = (*size + to_add - added).max(0);
        }
        sizes
    }

    /// How much a set would grow (or shrink) if all sets did in the same measure.
    fn fraction(&self, set: &ReplicaSet) -> i32 {
        if self.limits.replicas == 0 {
            return -set.size();
        }
        let before = set.number(MAX).filter(|m| *m > 0).unwrap_or(i64::from(self.replicas_before)).max(1);
        let size = i64::from(set.size()) * i64::from(self.limits.most());
        // To the nearest; both are positive.
        let size = (2 * size + before) / (2 * before);
        i32::try_from(size).unwrap_or(i32::MAX) - set.size()
    }

    /// The next stage of an update.
    pub(super) fn update(&self) -> Stage<'a> {
        if self.limits.rolling { self.roll() } else { self.recreate() }
    }

    fn roll(&self) -> Stage<'a> {
        let Some(new) = self.new else {
            return Stage::Create(self.new_size(0));
        };
        let size =
            if new.size() > self.limits.replicas { self.limits.replicas } else { self.new_size(new.size()) };
        if size != new.size() {
            return Stage::Scale(vec![(new, size)]);
        }
        let sizes = self.shrink(new);
        if sizes.is_empty() { Stage::Rest } else { Stage::Scale(sizes) }
    }

    /// How large the new set, now `has`, may be.
    fn new_size(&self, has: i32) -> i32 {
        let room = (self.limits.most() - self.size()).max(0);
        has + room.min(self.limits.replicas - has).max(0)
    }

    /// Which old sets may shrink: first by pods that aren't available anyway, then as availability allows.
    fn shrink(&self, new: &ReplicaSet) -> Sizes<'a> {
        let old: Vec<&ReplicaSet> = self.old.iter().copied().filter(|s| s.size() > 0).collect();
        let least = self.limits.least_available();
        let unavailable = new.size() - new.available();
        let may = self.size() - least - unavailable;
        if may <= 0 {
            return Vec::new();
        }
        let mut sizes: BTreeMap<&str, i32> = old.iter().map(|s| (s.name(), s.size())).collect();
        let mut cleaned = 0;
        for set in &old {
            let broken = (set.size() - set.available()).max(0);
            let n = broken.min(may - cleaned);
            if n > 0 {
                cleaned += n;
                sizes.insert(set.name(), set.size() - n);
            }
        }
        // A set that was just shrunk may still report pods that are about to go: they don't count.
        let available: i32 = self.all().map(|s| s.available().min(s.size())).sum();
        let mut spare = available - least;
        for set in &old {
            let size = sizes.get(set.name()).copied().unwrap_or(0);
            let n = size.min(spare);
            if n > 0 {
                spare -= n;
                sizes.insert(set.name(), size - n);
            }
        }
        old.into_iter()
            .filter_map(|s| sizes.get(s.name()).filter(|n| **n != s.size()).map(|n| (s, *n)))
            .collect()
    }

    fn recreate(&self) -> Stage<'a> {
        let shrunk: Sizes<'a> = self.old.iter().filter(|s| s.size() > 0).map(|s| (*s, 0)).collect();
        if !shrunk.is_empty() {
            return Stage::Scale(shrunk);
        }
        if self.old_pods || self.old.iter().any(|s| s.pods() > 0) {
            return Stage::Rest;
        }
        match self.new {
            None => Stage::Create(self.limits.replicas),
            Some(new) if new.size() != self.limits.replicas => {
                Stage::Scale(vec![(new, self.limits.replicas)])
            }
            Some(_) => Stage::Rest,
        }
    }

    /// The old sets that the history has no room for, oldest revision first.
    pub(super) fn surplus(&self, limit: i32) -> Vec<&'a ReplicaSet> {
        let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
        let mut old: Vec<&ReplicaSet> =
            self.old.iter().copied().filter(|s| s.metadata.deletion_timestamp.is_none()).collect();
        old.sort_by_key(|s| (s.number(super::sets::REVISION).unwrap_or(0), s.created()));
        old.truncate(old.len().saturating_sub(limit));
        let idle = |s: &&ReplicaSet| {
            let observed = s.status.as_ref().and_then(|s| s.observed_generation).unwrap_or(0);
            s.size() == 0 && s.pods() == 0 && s.metadata.generation.unwrap_or(0) <= observed
        };
        old.into_iter().filter(idle).collect()
    }
}
