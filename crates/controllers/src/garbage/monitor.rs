//! The watch of one resource, by metadata, into the graph.
//!
//! It never gives up: a watch that fails waits and begins anew. Objects that a new list no longer shows are gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use homeostat_sdk::CancellationToken;
use homeostat_sdk::queue::Backoff;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher::{self, Event};
use tokio::time::Instant;
use tracing::debug;

use super::Shared;
use super::graph::Uid;
use crate::common::served::Served;

const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(20),
    max: Duration::from_secs(30),
    changed: Duration::from_secs(1),
};

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
    (handle, Monitor { shared, resource, synced, listing: BTreeSet::new() }.run(stop))
}

struct Monitor {
    shared: Arc<Shared>,
    resource: Arc<Served>,
    synced: Arc<AtomicBool>,
    /// What the list in progress has shown.
    listing: BTreeSet<Uid>,
}

impl Monitor {
    async fn run(mut self, stop: CancellationToken) {
        let api: Api<PartialObjectMeta<DynamicObject>> =
            Api::all_with(self.shared.cx.client().clone(), &self.resource.api_resource());
        let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
        let mut failures = 0;
        loop {
            let event = tokio::select! { biased;
                () = stop.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                None => return,
                Some(Ok(event)) => {
                    if !matches!(event, Event::Init) {
                        failures = 0;
                    }
                    self.take(event);
                }
                Some(Err(error)) => {
                    failures += 1;
                    let delay = BACKOFF.delay(failures);
                    debug!(resource = self.resource.plural, %error, ?delay, "watch failed");
                    tokio::select! { biased;
                        () = stop.cancelled() => return,
                        () = tokio::time::sleep(delay) => {}
                    }
                }
            }
        }
    }

    fn take(&mut self, event: Event<PartialObjectMeta<DynamicObject>>) {
        match event {
            Event::Init => self.listing.clear(),
            Event::InitApply(object) => {
                self.listing.extend(object.metadata.uid.as_deref().map(Uid::from));
                self.observe(&object.metadata);
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listing);
                let missing: Vec<Uid> =
                    self.shared.graph().of(&self.resource).difference(&listed).cloned().collect();
                missing.iter().for_each(|uid| self.gone(uid));
                self.synced.store(true, Ordering::Release);
                self.kinds_may_have_changed();
            }
            Event::Apply(object) => {
                self.observe(&object.metadata);
                self.kinds_may_have_changed();
            }
            Event::Delete(object) => {
                if let Some(uid) = object.metadata.uid.as_deref() {
                    self.gone(&uid.into());
                }
                self.kinds_may_have_changed();
            }
        }
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
