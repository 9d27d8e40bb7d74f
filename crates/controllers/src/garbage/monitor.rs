//! The watch of one resource, by metadata, into the graph.
//!
//! Objects that a new list no longer shows are gone.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use homeostat_sdk::{CancellationToken, Observer};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::time::Instant;

use super::Shared;
use super::graph::Uid;
use crate::common::served::Served;

/// What the collector keeps of a running monitor.
pub(super) struct Handle {
    synced: Arc<AtomicBool>,
    since: Instant,
    stop: CancellationToken,
}

impl Handle {
    pub(super) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

/// A monitor of a resource, and the future that runs it.
pub(super) fn start(
    shared: Arc<Shared>,
    resource: Arc<Served>,
    stop: &CancellationToken,
) -> (Handle, impl Future<Output = ()> + Send + 'static) {
    let stop = stop.child_token();
    let synced = Arc::new(AtomicBool::new(false));
    let handle = Handle { synced: synced.clone(), since: Instant::now(), stop: stop.clone() };
    let (cx, api_resource) = (shared.cx.clone(), resource.api_resource());
    (handle, cx.observe(api_resource, Monitor { shared, resource, synced, listing: Mutex::default() }, stop))
}

struct Monitor {
    shared: Arc<Shared>,
    resource: Arc<Served>,
    synced: Arc<AtomicBool>,
    /// What the list in progress has shown.
    listing: Mutex<BTreeSet<Uid>>,
}

impl Observer for Monitor {
    fn begin(&self) {
        self.listing().clear();
    }

    fn listed(&self, meta: &ObjectMeta) {
        self.listing().extend(meta.uid.as_deref().map(Uid::from));
        self.observe(meta);
    }

    fn complete(&self) {
        let listed = std::mem::take(&mut *self.listing());
        let missing: Vec<Uid> = self.shared.graph().of(&self.resource).difference(&listed).cloned().collect();
        missing.iter().for_each(|uid| self.gone(uid));
        self.synced.store(true, Ordering::Release);
        self.kinds_may_have_changed();
    }

    fn applied(&self, meta: &ObjectMeta) {
        self.observe(meta);
        self.kinds_may_have_changed();
    }

    fn deleted(&self, meta: &ObjectMeta) {
        if let Some(uid) = meta.uid.as_deref() {
            self.gone(&uid.into());
        }
        self.kinds_may_have_changed();
    }
}

impl Monitor {
    fn listing(&self) -> MutexGuard<'_, BTreeSet<Uid>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe(&self, meta: &ObjectMeta) {
        let work = self.shared.graph().observe(&self.resource, meta);
        self.shared.add(work);
    }

    fn gone(&self, uid: &Uid) {
        let work = self.shared.graph().gone(uid);
        self.shared.add(work);
    }

    fn kinds_may_have_changed(&self) {
        let (group, plural) = (self.resource.group.as_str(), self.resource.plural.as_str());
        if matches!(
            (group, plural),
            ("apiextensions.k8s.io", "customresourcedefinitions") | ("apiregistration.k8s.io", "apiservices")
        ) {
            self.shared.kinds_changed.notify_one();
        }
    }
}
