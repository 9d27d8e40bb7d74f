//! The task that feeds a cache, or whoever else wants to know of a kind's objects: one list and watch, with a backoff of
//! its own.
//!
//! A watch that fails, is forbidden, or asks for a kind that isn't served yet (a CRD that comes later) waits and tries
//! again without holding up any other. It never gives up. An object that doesn't fit its type (stored before the
//! CRD's schema became what it is, say) is left out with a warning, or stays as it was last, and holds up nothing.
//! It is compiled once for all kinds: an object is text here, and only its [`Sink`] knows how to read it.
//!
//! The protocol is that of client-go's reflector: list in pages, then watch from the list's version with bookmarks;
//! where the server no longer has that version (410), list again.

use std::borrow::Cow;
use std::time::Duration;

use futures::AsyncBufReadExt;
use homeostat_model::Entropy;
use kube::Client;
use kube::api::{ListParams, WatchParams};
use kube::core::{ObjectMeta, Request, Status};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::registry::Selection;
use super::text::Text;
use crate::key::Key;

/// The first delay, and the longest where the kind isn't served yet, and else.
const FIRST: Duration = Duration::from_millis(20);
const LONGEST_UNSERVED: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Objects of a page.
const PAGE: u32 = 500;
/// A watch that ends sooner than this, having told nothing, is a failure.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// The path of a kind's collection, in a namespace or in all.
pub(crate) type Path = Box<dyn Fn(Option<&str>) -> String + Send + Sync>;

/// Where a feed's objects go, as JSON. What can't be read is left out; the feed says so.
pub(crate) trait Sink: Send + Sync {
    /// A list begins.
    fn begin(&self);

    /// An object of the list.
    fn listed(&self, object: &Text<'_>) -> serde_json::Result<()>;

    /// The list is complete: what it didn't show is gone. The keys that it leaves in doubt, to be asked for.
    fn complete(&self) -> Vec<Key>;

    /// An object is new, or has changed.
    fn applied(&self, object: &Text<'_>) -> serde_json::Result<()>;

    /// An object is gone. Only what identifies it is there.
    fn deleted(&self, meta: &ObjectMeta);

    /// There is an object of this key that couldn't be read.
    fn unreadable(&self, _: &Key) {}

    /// An object that was in doubt; `None` where it is gone.
    fn settled(&self, _: &Key, _object: Option<&Text<'_>>) {}
}

/// Everything a feed needs.
pub(crate) struct Feed {
    pub(super) client: Client,
    pub(super) sink: Box<dyn Sink>,
    pub(super) path: Path,
    /// The resource as error texts print it.
    pub(super) what: String,
    pub(super) selection: Selection,
    /// Only metadata is asked for.
    pub(super) metadata: bool,
    /// How long the server should keep a watch open.
    pub(super) watch_timeout: Duration,
    pub(super) entropy: Entropy,
    pub(super) stop: CancellationToken,
}

/// Where a feed stands.
enum Phase {
    /// Nothing is known: list.
    Empty,
    /// Everything up to this version is known: watch from there.
    Listed(String),
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error("{0}")]
    Told(Box<Status>),
    #[error("the answer can't be read: {0}")]
    Nonsense(#[from] serde_json::Error),
    #[error("the watch ended at once")]
    Short,
}

impl Failed {
    fn status(&self) -> Option<&Status> {
        match self {
            Self::Request(kube::Error::Api(status)) | Self::Told(status) => Some(status),
            _ => None,
        }
    }

    fn code(&self) -> u16 {
        self.status().map_or(0, |s| s.code)
    }

    /// The version is older than what the server has: 410, or `Expired` without it.
    fn is_expired(&self) -> bool {
        self.code() == 410 || self.status().is_some_and(|s| s.reason == "Expired")
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl Feed {
    pub(crate) async fn run(self) {
        let mut phase = Phase::Empty;
        let mut failures = 0;
        loop {
            let step = tokio::select! { biased;
                () = self.stop.cancelled() => return,
                step = self.step(&mut phase, &mut failures) => step,
            };
            let Err(error) = step else { continue };
            if error.is_expired() {
                debug!(resource = self.what, "watch expired; listing again");
                phase = Phase::Empty;
            }
            failures += 1;
            let delay = self.delay(&error, failures);
            self.report(&error, failures, delay);
            tokio::select! { biased;
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    async fn step(&self, phase: &mut Phase, failures: &mut u32) -> Result<(), Failed> {
        match phase {
            Phase::Empty => {
                let version = self.list().await?;
                *failures = 0;
                *phase = Phase::Listed(version);
                Ok(())
            }
            Phase::Listed(version) => self.watch(version, failures).await,
        }
    }

    fn selectors(&self) -> (Option<String>, Option<String>) {
        let some = |text: &String| Some(text.clone()).filter(|t| !t.is_empty());
        (some(&self.selection.labels), some(&self.selection.fields))
    }

    fn request(&self) -> Request {
        Request::new((self.path)(self.selection.namespace.as_deref()))
    }

    /// Lists everything into the sink; the list's version.
    async fn list(&self) -> Result<String, Failed> {
        let (label_selector, field_selector) = self.selectors();
        let mut params =
            ListParams { label_selector, field_selector, limit: Some(PAGE), ..ListParams::default() };
        self.sink.begin();
        let version = loop {
            let request = match self.metadata {
                true => self.request().list_metadata(&params),
                false => self.request().list(&params),
            };
            let text = self.client.request_text(request.map_err(kube::Error::BuildRequest)?).await?;
            let page: Page = serde_json::from_str(&text)?;
            for item in page.items.into_iter().flatten() {
                let Ok(item) = Text::of(item.get()) else { continue };
                if let Err(error) = self.sink.listed(&item) {
                    self.leave_out(&item, &error);
                }
            }
            params.continue_token = page.metadata.r#continue.filter(|c| !c.is_empty());
            if params.continue_token.is_none() {
                break page.metadata.resource_version.unwrap_or_default();
            }
        };
        for key in self.sink.complete() {
            self.settle(&key).await;
        }
        debug!(resource = self.what, version, "listed");
        Ok(version)
    }

    /// Watches from `version`, and moves it along, until the watch ends.
    async fn watch(&self, version: &mut String, failures: &mut u32) -> Result<(), Failed> {
        let (label_selector, field_selector) = self.selectors();
        let timeout = Some(u32::try_from(self.watch_timeout.as_secs()).unwrap_or(u32::MAX));
        let params = WatchParams { label_selector, field_selector, timeout, ..WatchParams::default() };
        let request = match self.metadata {
            true => self.request().watch_metadata(&params, version),
            false => self.request().watch(&params, version),
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // Servers may compress each event by itself, which few decoders understand.
        request
            .headers_mut()
            .insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
        let began = Instant::now();
        let mut lines = Box::pin(self.client.request_stream(request).await?);
        let (mut line, mut told) = (Vec::new(), false);
        loop {
            line.clear();
            match lines.read_until(b'\n', &mut line).await {
                // The server's time is up, or the connection's: what comes next is asked for anew.
                Ok(0) => break,
                Err(error) => {
                    debug!(resource = self.what, %error, "watch broke off");
                    break;
                }
                Ok(_) => {}
            }
            // A line without an end was broken off.
            if line.last() != Some(&b'\n') || line.len() == 1 {
                continue;
            }
            let line = std::str::from_utf8(&line).map_err(<serde_json::Error as serde::de::Error>::custom)?;
            if let Some(next) = self.take(serde_json::from_str(line)?)? {
                *version = next;
            }
            told = true;
            *failures = 0;
        }
        if !told && began.elapsed() < TOO_SHORT { Err(Failed::Short) } else { Ok(()) }
    }

    /// Takes in one event; the version that it brings.
    fn take(&self, line: Line<'_>) -> Result<Option<String>, Failed> {
        let text = line.object.get();
        if line.r#type == "ERROR" {
            return Err(Failed::Told(serde_json::from_str::<Status>(text)?.boxed()));
        }
        let object = Text::of(text)?;
        match &*line.r#type {
            "ADDED" | "MODIFIED" => {
                if let Err(error) = self.sink.applied(&object) {
                    self.leave_out(&object, &error);
                }
            }
            "DELETED" => self.sink.deleted(&object.identity()),
            "BOOKMARK" => {}
            other => {
                debug!(resource = self.what, "event of the unknown type {other:?} left out");
                return Ok(None);
            }
        }
        Ok(object.resource_version())
    }

    fn leave_out(&self, object: &Text<'_>, error: &serde_json::Error) {
        let key = object.key();
        warn!(resource = self.what, %key, "left out, for it doesn't fit its type: {error}");
        self.sink.unreadable(&key);
    }

    /// An own write that a list, taken around the same time, doesn't show: was it before the write or after a
    /// deletion? Only the server knows. It is asked by a list, since who feeds may have the right to no more.
    async fn settle(&self, key: &Key) {
        let field_selector = Some(format!("metadata.name={}", key.name()));
        let params = ListParams { field_selector, ..ListParams::default() };
        let Ok(request) = Request::new((self.path)(key.namespace())).list(&params) else { return };
        let answer = self.client.request_text(request).await;
        let page = answer.as_deref().map(serde_json::from_str::<Page>);
        match page {
            Ok(Ok(page)) => {
                let object = page.items.iter().flatten().find_map(|o| Text::of(o.get()).ok());
                self.sink.settled(key, object.as_ref());
            }
            // It stays until the watch or the next list says more.
            Ok(Err(error)) => debug!(%key, %error, "no answer about an object that a list left in doubt"),
            Err(error) => debug!(%key, %error, "could not ask for an object that a list left in doubt"),
        }
    }

    fn delay(&self, error: &Failed, failures: u32) -> Duration {
        let longest = if error.code() == 404 { LONGEST_UNSERVED } else { LONGEST };
        let full = FIRST.saturating_mul(1 << (failures - 1).min(16)).min(longest);
        // Up to a quarter less, so that the watches of many processes spread.
        let quarter = u64::try_from(full.as_micros() / 4).unwrap_or(0);
        full - Duration::from_micros(self.entropy.below(quarter))
    }

    fn report(&self, error: &Failed, failures: u32, delay: Duration) {
        let resource = &self.what;
        match error.code() {
            410 => {}
            404 if failures == 1 => info!(resource, "not served yet; waiting for it"),
            404 => debug!(resource, ?delay, "still not served"),
            _ if matches!(error, Failed::Short) && failures == 1 => debug!(resource, "{error}"),
            _ => {
                let message = error.status().map_or_else(|| error.to_string(), |s| s.message.clone());
                warn!(resource, failures, ?delay, "watch failed: {message}");
            }
        }
    }
}
