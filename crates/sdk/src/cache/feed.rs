//! The task that feeds a cache: one watch, with a backoff of its own.
//!
//! A watch that fails, is forbidden, or asks for a kind that isn't served yet (a CRD that comes later) waits and tries
//! again without holding up any other. It never gives up. An object that doesn't fit its type (stored before the
//! CRD's schema became what it is, say) is left out with a warning, or stays as it was last, and holds up nothing.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use homeostat_model::Entropy;
use kube::core::params::GetParams;
use kube::core::{DeserializeGuard, Request};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
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
    pub(super) config: watcher::Config,
    pub(super) entropy: Entropy,
    pub(super) stop: CancellationToken,
}

/// Events of objects that may not fit their type.
type Events<K> = BoxStream<'static, watcher::Result<Event<DeserializeGuard<K>>>>;

/// Why a watch was left.
enum Left {
    Stopped,
    /// Something didn't fit its type.
    Misfit,
}

impl<K: Watched> Feed<K> {
    pub(super) async fn run(self, cache: Cache<K>) {
        // Looking at each object apart costs twice the time, so it begins when it must.
        let all_fit =
            watcher::watcher(Api::<K>::all_with(self.client.clone(), &self.dt), self.config.clone());
        let events = all_fit.map_ok(|event| map(event, |object| DeserializeGuard(Ok(object)))).boxed();
        if let Left::Stopped = self.follow(&cache, events, false).await {
            return;
        }
        let api = Api::<DeserializeGuard<K>>::all_with(self.client.clone(), &self.dt);
        let events = watcher::watcher(api, self.config.clone()).boxed();
        self.follow(&cache, events, true).await;
    }

    async fn follow(&self, cache: &Cache<K>, mut events: Events<K>, guarded: bool) -> Left {
        let what = display_resource::<K>(&self.dt);
        let mut failures = 0;
        loop {
            let event = tokio::select! { biased;
                () = self.stop.cancelled() => return Left::Stopped,
                event = events.next() => event,
            };
            match event {
                None => return Left::Stopped,
                Some(Ok(event)) => {
                    // `Init` comes before the first request and proves nothing.
                    if !matches!(event, Event::Init) {
                        failures = 0;
                    }
                    self.take(cache, event, &what).await;
                }
                Some(Err(error)) if !guarded && is_misfit(&error) => return Left::Misfit,
                Some(Err(error)) => {
                    failures += 1;
                    let delay = self.delay(&error, failures);
                    report(&what, &error, failures, delay);
                    tokio::select! { biased;
                        () = self.stop.cancelled() => return Left::Stopped,
                        () = tokio::time::sleep(delay) => {}
                    }
                }
            }
        }
    }

    async fn take(&self, cache: &Cache<K>, event: Event<DeserializeGuard<K>>, what: &str) {
        let done = matches!(event, Event::InitDone);
        let (changes, doubtful) = match event {
            Event::Delete(DeserializeGuard(Err(object))) => {
                (cache.write().delete(&object.metadata).into_iter().collect(), Vec::new())
            }
            Event::Apply(DeserializeGuard(Err(object))) | Event::InitApply(DeserializeGuard(Err(object))) => {
                let key = Key::new(
                    object.metadata.namespace.as_deref(),
                    object.metadata.name.as_deref().unwrap_or_default(),
                );
                warn!(resource = what, %key, "left out, for it doesn't fit its type: {}", object.error);
                cache.write().unreadable(&key);
                (Vec::new(), Vec::new())
            }
            Event::Apply(DeserializeGuard(Ok(object))) => cache.write().event(Event::Apply(object)),
            Event::Delete(DeserializeGuard(Ok(object))) => cache.write().event(Event::Delete(object)),
            Event::InitApply(DeserializeGuard(Ok(object))) => cache.write().event(Event::InitApply(object)),
            Event::Init => cache.write().event(Event::Init),
            Event::InitDone => cache.write().event(Event::InitDone),
        };
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

fn map<A, B>(event: Event<A>, f: impl FnOnce(A) -> B) -> Event<B> {
    match event {
        Event::Apply(object) => Event::Apply(f(object)),
        Event::Delete(object) => Event::Delete(f(object)),
        Event::InitApply(object) => Event::InitApply(f(object)),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    }
}

fn is_misfit(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::InitialListFailed(kube::Error::SerdeError(_))
            | watcher::Error::WatchFailed(kube::Error::SerdeError(_))
    )
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
