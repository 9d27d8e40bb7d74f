//! The task that feeds a cache: one watch, with a backoff of its own.
//!
//! A watch that fails, is forbidden, or asks for a kind that isn't served yet (a CRD that comes later) waits and tries
//! again without holding up any other. It never gives up.

use std::time::Duration;

use futures::{Stream, StreamExt};
use homeostat_model::Entropy;
use kube::Client;
use kube::core::Request;
use kube::core::params::GetParams;
use kube::runtime::watcher::{self, Event};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::Cache;
use crate::key::Key;
use crate::object::{Watched, display_resource};

/// The first delay, and the longest where the kind isn't served yet, and else.
const FIRST: Duration = Duration::from_millis(20);
const LONGEST_UNSERVED: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// Everything a feed needs besides its cache.
pub(super) struct Feed<K: Watched> {
    pub(super) client: Client,
    pub(super) dt: K::DynamicType,
    pub(super) entropy: Entropy,
    pub(super) stop: CancellationToken,
}

impl<K: Watched> Feed<K> {
    pub(super) async fn run(
        self,
        cache: Cache<K>,
        events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
    ) {
        let mut events = std::pin::pin!(events);
        let what = display_resource::<K>(&self.dt);
        let mut failures = 0;
        loop {
            let event = tokio::select! { biased;
                () = self.stop.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                None => return,
                Some(Ok(event)) => {
                    // `Init` comes before the first request and proves nothing.
                    if !matches!(event, Event::Init) {
                        failures = 0;
                    }
                    self.take(&cache, event, &what).await;
                }
                Some(Err(error)) => {
                    failures += 1;
                    let delay = self.delay(&error, failures);
                    report(&what, &error, failures, delay);
                    tokio::select! { biased;
                        () = self.stop.cancelled() => return,
                        () = tokio::time::sleep(delay) => {}
                    }
                }
            }
        }
    }

    async fn take(&self, cache: &Cache<K>, event: Event<K>, what: &str) {
        let done = matches!(event, Event::InitDone);
        let (changes, doubtful) = cache.write().event(event);
        cache.tell(changes);
        for key in doubtful {
            self.settle(cache, &key).await;
        }
        if done {
            debug!(resource = what, objects = cache.len(), "cache synced");
            cache.0.synced.send_replace(true);
        }
    }

    /// An own write that a list, taken around the same time, doesn't show: was it before the write or after a
    /// deletion? Only the server knows.
    async fn settle(&self, cache: &Cache<K>, key: &Key) {
        let request = Request::new(K::url_path(&self.dt, key.namespace()));
        let Ok(request) = request.get(key.name(), &GetParams::default()) else { return };
        match self.client.request::<K>(request).await {
            Ok(object) => cache.wrote(object),
            Err(kube::Error::Api(status)) if status.code == 404 => cache.deleted(key, None),
            // It stays until the watch or the next list says more.
            Err(error) => debug!(%key, %error, "could not ask for an object that a list left in doubt"),
        }
    }

    fn delay(&self, error: &watcher::Error, failures: u32) -> Duration {
        let longest = if unserved(error) { LONGEST_UNSERVED } else { LONGEST };
        let full = FIRST.saturating_mul(1 << (failures - 1).min(16)).min(longest);
        // Up to a quarter less, so that the watches of many processes spread.
        let quarter = u64::try_from(full.as_micros() / 4).unwrap_or(0);
        full - Duration::from_micros(self.entropy.below(quarter))
    }
}

fn status(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(s))
        | watcher::Error::WatchStartFailed(kube::Error::Api(s))
        | watcher::Error::WatchFailed(kube::Error::Api(s)) => Some(s),
        watcher::Error::WatchError(s) => Some(s),
        _ => None,
    }
}

fn unserved(error: &watcher::Error) -> bool {
    status(error).is_some_and(|s| s.code == 404)
}

fn report(what: &str, error: &watcher::Error, failures: u32, delay: Duration) {
    let status = status(error);
    let code = status.map_or(0, |s| s.code);
    match code {
        410 => debug!(resource = what, "watch expired; listing again"),
        404 if failures == 1 => info!(resource = what, "not served yet; waiting for it"),
        404 => debug!(resource = what, ?delay, "still not served"),
        _ => {
            let message = status.map_or_else(|| error.to_string(), |s| s.message.clone());
            warn!(resource = what, failures, ?delay, "watch failed: {message}");
        }
    }
}
