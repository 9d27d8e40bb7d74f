//! ReplicaSets as a Deployment sees them: sizes, revisions, and which one is the new one.
//!
//! The numbers that a Deployment keeps on its sets are annotations with the reference's names, since `kubectl rollout`
//! reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;

use crate::common::scaled;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
pub(super) const HASH_LABEL: &str = "pod-template-hash";
/// Annotations of a Deployment that its sets don't get.
const OWN: [&str; 5] = [REVISION, HISTORY, DESIRED, MAX, "kubectl.kubernetes.io/last-applied-configuration"];
/// The longest text of [`HISTORY`].
const HISTORY_LIMIT: usize = 2000;

/// What the strategy of a Deployment allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) replicas: i32,
    pub(super) rolling: bool,
    pub(super) max_surge: i32,
    pub(super) max_unavailable: i32,
}

impl Limits {
    pub(super) fn of(spec: &DeploymentSpec) -> Self {
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.as_ref();
        let rolling = strategy.and_then(|s| s.type_.as_deref()) != Some("Recreate");
        if !rolling {
            return Self { replicas, rolling, max_surge: 0, max_unavailable: 0 };
        }
        let roll = strategy.and_then(|s| s.rolling_update.as_ref());
        let surge = roll.and_then(|r| r.max_surge.as_ref()).and_then(|v| scaled::of(v, replicas, true));
        let unavailable =
            roll.and_then(|r| r.max_unavailable.as_ref()).and_then(|v| scaled::of(v, replicas, false));
        let (surge, mut unavailable) = (surge.unwrap_or(0), unavailable.unwrap_or(0));
        if surge == 0 && unavailable == 0 {
            // Both may round to nothing; then one at a time keeps the update going.
            unavailable = 1;
        }
        Self { replicas, rolling, max_surge: surge, max_unavailable: unavailable.min(replicas) }
    }

    /// The most pods at a time.
    pub(super) fn most(&self) -> i32 {
        self.replicas.saturating_add(self.max_surge)
    }

    /// The fewest available pods at a time.
    pub(super) fn least_available(&self) -> i32 {
        self.replicas - self.max_unavailable
    }
}

/// Questions about a ReplicaSet.
pub(super) trait Set {
    fn name(&self) -> &str;
    fn size(&self) -> i32;
    fn pods(&self) -> i32;
    fn ready(&self) -> i32;
    fn available(&self) -> i32;
    fn annotation(&self, name: &str) -> Option<&str>;
    fn number(&self, annotation: &str) -> Option<i64>;
    fn created(&self) -> (Option<Timestamp>, &str);
}

impl Set for ReplicaSet {
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn size(&self) -> i32 {
        self.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1)
    }

    fn pods(&self) -> i32 {
        self.status.as_ref().map_or(0, |s| s.replicas)
    }

    fn ready(&self) -> i32 {
        self.status.as_ref().and_then(|s| s.ready_replicas).unwrap_or(0)
    }

    fn available(&self) -> i32 {
        self.status.as_ref().and_then(|s| s.available_replicas).unwrap_or(0)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    fn number(&self, annotation: &str) -> Option<i64> {
        self.annotation(annotation)?.parse().ok()
    }

    fn created(&self) -> (Option<Timestamp>, &str) {
        (self.metadata.creation_timestamp.as_ref().map(|t| t.0), self.name())
    }
}

/// Whether two templates are the same but for the hash label.
pub(super) fn same_template(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    let without = |t: &PodTemplateSpec| {
        let mut t = t.clone();
        if let Some(labels) = t.metadata.as_mut().and_then(|m| m.labels.as_mut()) {
            labels.remove(HASH_LABEL);
        }
        t
    };
    let (a, b) = (without(a), without(b));
    let labels = |t: &PodTemplateSpec| t.metadata.as_ref().and_then(|m| m.labels.clone()).unwrap_or_default();
    let annotations =
        |t: &PodTemplateSpec| t.metadata.as_ref().and_then(|m| m.annotations.clone()).unwrap_or_default();
    a.spec == b.spec && labels(&a) == labels(&b) && annotations(&a) == annotations(&b)
}

/// The new set, the oldest one with the Deployment's template, and the old ones from old to new.
pub(super) fn split<'a>(
    spec: &DeploymentSpec,
    sets: &'a [Arc<ReplicaSet>],
) -> (Option<&'a ReplicaSet>, Vec<&'a ReplicaSet>) {
    let mut all: Vec<&ReplicaSet> = sets.iter().map(|s| &**s).collect();
    all.sort_by_key(|s| s.created());
    let is_new = |s: &&ReplicaSet| {
        s.spec.as_ref().and_then(|s| s.template.as_ref()).is_some_and(|t| same_template(t, &spec.template))
    };
    let new = all.iter().position(is_new).map(|at| all.remove(at));
    (new, all)
}

/// The annotations that the new set should have; only those that differ.
///
/// `next` is the revision that comes after all old sets: a set that becomes the new one again takes it and keeps its
/// former one in its history.
pub(super) fn annotations(
    deployment: &Deployment,
    set: Option<&ReplicaSet>,
    next: i64,
    limits: &Limits,
) -> BTreeMap<String, String> {
    let has = |k: &str| set.and_then(|s| s.annotation(k));
    let mut want: BTreeMap<String, String> = BTreeMap::new();
    for (k, v) in deployment.metadata.annotations.iter().flatten() {
        if !OWN.contains(&k.as_str()) && has(k) != Some(v) {
            want.insert(k.clone(), v.clone());
        }
    }
    let old = set.and_then(|s| s.number(REVISION));
    if old.unwrap_or(0) < next {
        want.insert(REVISION.into(), next.to_string());
        if let Some(old) = old {
            let history = has(HISTORY).unwrap_or_default();
            want.insert(HISTORY.into(), remember(history, old));
        }
    }
    if set.is_none() {
        want.extend(sizes(limits));
    }
    want
}

/// The history with one more revision, without its oldest ones where it gets too long.
fn remember(history: &str, revision: i64) -> String {
    let mut all: Vec<&str> = history.split(',').filter(|r| !r.is_empty()).collect();
    let revision = revision.to_string();
    all.push(&revision);
    while all.len() > 1 && all.iter().map(|r| r.len() + 1).sum::<usize>() > HISTORY_LIMIT {
        all.remove(0);
    }
    all.join(",")
}

/// The sizes of the Deployment that its sets are scaled by.
pub(super) fn sizes(limits: &Limits) -> [(String, String); 2] {
    [(DESIRED.into(), limits.replicas.to_string()), (MAX.into(), limits.most().to_string())]
}
