//! `watch`: a stream of events read from the store's log by a cursor.
//!
//! A watcher holds a cursor and the frames it is sending, nothing else; a client that does not read is not waited
//! for, its cursor falls behind and it is told 410. Invariant: the plain form of an event is encoded once, whoever
//! watches.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use homeostat_model::Status;
use homeostat_model::field::quote;
use homeostat_model::status::Result;
use homeostat_resources::table::{self, Include, Printer};
use homeostat_store::{Compacted, Cursor, Event, Listing, Revision};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::convert;
use crate::meta::Meta;
use crate::negotiate::{Accepted, Format, View};
use crate::object;
use crate::options::{ListOptions, parse_uint};
use crate::protobuf;
use crate::read;
use crate::registry::Target;
use crate::respond::{Answer, Content};
use crate::selection::Selection;
use crate::server::{Call, Server};

/// A last bookmark comes this long before the end.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Shortest life of a watch whose client names none; up to as much again is added by chance.
const LIFE: u64 = 30 * 60;
/// Events of the initial state are made in batches of this many.
const INITIAL: usize = 64;

/// Answers a watch.
pub(crate) async fn watch(
    server: &Arc<Server>,
    target: &Target,
    call: &Call,
    accepted: Accepted,
) -> Result<Answer> {
    let o = ListOptions::parse(&call.query, true)?;
    let namespace = if target.resource.namespaced { call.info.namespace.as_str() } else { "" };
    let name = if call.info.old_watch { call.info.path_name.as_str() } else { "" };
    let selection = Selection::parse(target, namespace, name, &o)?;
    let include = match accepted.view {
        View::Table(_) => Include::parse(call.query.get("includeObject").unwrap_or_default())
            .map_err(Status::bad_request)?,
        _ => Include::Metadata,
    };
    let version = match o.resource_version.as_str() {
        "" => 0,
        text => parse_uint(text).map_err(|e| {
            Status::new(500, "", format!("resourceVersion: Invalid value: {}: {e}", quote(text)))
        })?,
    };
    let store = &server.config.store;
    // Without a version the state comes first; with bookmarks its end is marked as if it had been asked for.
    let initial = match o.send_initial_events {
        Some(wanted) => wanted,
        None => version == 0,
    };
    let marked = o.bookmarks
        && (o.send_initial_events == Some(true)
            || (o.send_initial_events.is_none() && o.resource_version.is_empty()));
    let (listing, start) = if initial {
        read::wait_revision(server, version).await?;
        let snapshot = store.snapshot();
        if target.converted.is_some() && !target.is_storage() {
            let all = snapshot.range(&target.resource.collection, &selection.prefix, None);
            let records: Vec<_> = all.filter(|r| selection.matches(r)).map(|r| &**r).collect();
            convert::prefetch(server, target, &records, true).await?;
        }
        let start = snapshot.revision();
        (Some(snapshot.listing(&target.resource.collection, &selection.prefix, None)), start)
    } else if version == 0 {
        (None, store.revision())
    } else {
        (None, version)
    };
    let bookmark_every = server.config.bookmark_every;
    let now = Instant::now();
    let life = match o.timeout {
        Some(s) if s > 0 => Duration::from_secs(s.unsigned_abs()),
        _ => Duration::from_secs(LIFE + server.config.entropy.below(LIFE)),
    };
    let (cursor, error) = match store.watch(&target.resource.collection, start) {
        Ok(c) => (Some(c), None),
        Err(e) => (None, Some(too_old(start, &e, accepted.format))),
    };
    let frames = Frames {
        server: server.clone(),
        target: target.clone(),
        selection,
        view: accepted.view,
        packed: accepted.format == Format::Protobuf,
        include,
        columns: true,
    };
    let mut pending = VecDeque::new();
    pending.extend(error);
    let state = Watcher {
        frames,
        listing,
        mark_at: marked.then_some(start),
        cursor,
        pending,
        end: now + life,
        bookmark_every,
        next_bookmark: o.bookmarks.then(|| bookmark_after(now, bookmark_every, now + life)),
        stop: server.stop.clone(),
        ended: false,
    };
    let body =
        Body::stream(stream::unfold(state, |mut w| async move { w.next().await.map(|frame| (frame, w)) }));
    let kind = match accepted.format {
        Format::Protobuf => homeostat_protobuf::WATCH_MEDIA_TYPE,
        _ => "application/json",
    };
    Ok(Answer::new(StatusCode::OK, Content::Raw(kind, body)))
}

fn bookmark_after(now: Instant, every: Duration, end: Instant) -> Instant {
    let last = end.checked_sub(BOOKMARK_BEFORE_END).unwrap_or(end);
    let next = now + every;
    if now < last { next.min(last) } else { next }
}

/// The event that tells a client to list anew.
fn too_old(asked: Revision, e: &Compacted, format: Format) -> Bytes {
    let status = Status::expired(format!("too old resource version: {asked} ({})", e.oldest)).to_value();
    match format {
        Format::Protobuf => protobuf::frame("ERROR", &status),
        _ => line(&json!({"type": "ERROR", "object": status})),
    }
}

/// The event that tells a client what went wrong.
fn error_frame(status: &Status, packed: bool) -> Bytes {
    let status = status.to_value();
    if packed { protobuf::frame("ERROR", &status) } else { line(&json!({"type": "ERROR", "object": status})) }
}

fn line(v: &Value) -> Bytes {
    let mut out = Vec::with_capacity(256);
    object::write_json(&mut out, v);
    out.push(b'\n');
    out.into()
}

fn plain_frame(kind: &str, object: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(object.len() + 32);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
    out.into()
}

/// Turns events into what this watcher is to see of them.
struct Frames {
    server: Arc<Server>,
    target: Target,
    selection: Selection,
    view: View,
    /// Frames are in protobuf.
    packed: bool,
    include: Include,
    /// The next table still has to name its columns.
    columns: bool,
}

impl Frames {
    /// Has a webhook convert what these events show, where it must.
    async fn prepare(&self, events: &[Arc<Event<Meta>>]) -> Result<()> {
        if self.target.converted.is_none() || self.target.is_storage() {
            return Ok(());
        }
        for e in events {
            let before = e.prev.as_deref().is_some_and(|r| self.selection.matches(r));
            let after = e.now.as_deref().is_some_and(|r| self.selection.matches(r));
            let storage = self.target.storage();
            let value = match (before, after, &e.now, &e.prev) {
                (_, true, Some(now), _) => read::value(now, &storage),
                (true, false, Some(_), Some(prev)) => read::value(prev, &storage),
                (true, false, None, Some(prev)) => read::decode(e.bytes(), prev.meta.epoch, &storage),
                _ => continue,
            };
            convert::prefetch_values(&self.server, &self.target, vec![value], false).await?;
        }
        Ok(())
    }

    /// Forgets what was converted.
    fn done(&self) {
        if let Some(cache) = &self.target.converted {
            cache.clear();
        }
    }

    /// The frame of an event; `None` where the watcher does not see it.
    fn event(&mut self, e: &Event<Meta>) -> Option<Bytes> {
        let before = e.prev.as_deref().is_some_and(|r| self.selection.matches(r));
        let after = e.now.as_deref().is_some_and(|r| self.selection.matches(r));
        let kind = match (before, after) {
            (false, false) => return None,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        let natural = match (&e.prev, &e.now) {
            (None, _) => "ADDED",
            (Some(_), Some(_)) => "MODIFIED",
            (Some(_), None) => "DELETED",
        };
        let epoch = e.now.as_deref().or(e.prev.as_deref()).map_or(0, |r| r.meta.epoch);
        let current = self.target.is_storage() && epoch == self.target.resource.epoch;
        if current && self.view == View::Object && kind == natural {
            let slot = if self.packed { &e.packed } else { &e.frame };
            return Some(slot.get_or_init(|| self.plain(kind, e.bytes())).clone());
        }
        if kind == "DELETED" && e.now.is_some() {
            // It left the selection: the last state that matched, at the version of the change.
            let prev = e.prev.as_deref()?;
            let mut v = read::value(prev, &self.target);
            object::set_meta(&mut v, "resourceVersion", e.revision.to_string());
            return Some(self.value(kind, &v));
        }
        if current && let Some(frame) = self.stored(kind, e.bytes()) {
            return Some(frame);
        }
        let v = read::decode(e.bytes(), epoch, &self.target);
        Some(self.value(kind, &v))
    }

    /// A frame of stored bytes that are what the target shows, where the view needs no more than to cut them.
    fn stored(&self, kind: &str, object: &[u8]) -> Option<Bytes> {
        match self.view {
            View::Object => Some(self.plain(kind, object)),
            View::Metadata(version) | View::MetadataList(version) if !self.packed => {
                Some(plain_frame(kind, &read::partial(object, version)))
            }
            _ => None,
        }
    }

    /// A frame of an object's bytes as they are stored.
    fn plain(&self, kind: &str, object: &[u8]) -> Bytes {
        if self.packed {
            let (version, of) = (self.target.gv().to_string(), &self.target.resource.kind);
            return protobuf::frame_of_json(kind, object, &version, of);
        }
        plain_frame(kind, object)
    }

    /// A frame of a value, in the watcher's view.
    fn value(&mut self, kind: &str, v: &Value) -> Bytes {
        let object = match self.view {
            View::Object if !self.packed => return plain_frame(kind, &read::encode(v, &self.target)),
            View::Object => return self.write(kind, v),
            View::Metadata(version) | View::MetadataList(version) => table::partial(v, version),
            View::Table(version) => {
                let printer =
                    Printer::new(&self.target.resource, self.target.version(), self.include, version);
                let columns = std::mem::take(&mut self.columns);
                printer.table([v], table::object_meta(v), columns, self.server.config.clock.now())
            }
        };
        self.write(kind, &object)
    }

    fn write(&self, kind: &str, object: &Value) -> Bytes {
        if self.packed {
            return protobuf::frame(kind, object);
        }
        plain_frame(kind, &object::to_bytes(object))
    }

    fn bookmark(&mut self, revision: Revision, end_of_state: bool) -> Bytes {
        let mut v = json!({
            "kind": &*self.target.resource.kind,
            "apiVersion": self.target.gv().to_string(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        if end_of_state {
            v["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        self.value("BOOKMARK", &v)
    }
}

/// A watch under way.
struct Watcher {
    frames: Frames,
    /// The state that comes first, while there is more of it.
    listing: Option<Listing<Meta>>,
    /// Revision of the bookmark that ends that state.
    mark_at: Option<Revision>,
    cursor: Option<Cursor<Meta>>,
    pending: VecDeque<Bytes>,
    end: Instant,
    bookmark_every: Duration,
    next_bookmark: Option<Instant>,
    stop: CancellationToken,
    ended: bool,
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.pending.pop_front() {
                return Some(frame);
            }
            if self.ended {
                return None;
            }
            if self.initial() {
                continue;
            }
            let cursor = self.cursor.as_mut()?;
            let timer = self.next_bookmark.map_or(self.end, |b| b.min(self.end));
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                () = self.frames.target.changed.cancelled() => {
                    // What happened before the definition changed is still told.
                    self.ended = true;
                    if let Ok(events) = cursor.try_next() {
                        self.pending.extend(events.iter().filter_map(|e| self.frames.event(e)));
                    }
                }
                events = cursor.next() => match events {
                    Ok(events) => {
                        if let Err(e) = self.frames.prepare(events).await {
                            self.ended = true;
                            self.pending.push_back(error_frame(&e, self.frames.packed));
                            continue;
                        }
                        self.pending.extend(events.iter().filter_map(|e| self.frames.event(e)));
                        self.frames.done();
                    }
                    Err(e) => {
                        self.ended = true;
                        let format = if self.frames.packed { Format::Protobuf } else { Format::Json };
                        self.pending.push_back(too_old(cursor.seen(), &e, format));
                    }
                },
                () = tokio::time::sleep_until(timer) => {
                    let now = Instant::now();
                    if now >= self.end {
                        return None;
                    }
                    let seen = cursor.seen();
                    self.pending.push_back(self.frames.bookmark(seen, false));
                    self.next_bookmark = Some(bookmark_after(now, self.bookmark_every, self.end));
                }
            }
        }
    }

    /// Makes some events of the initial state; false when there is none left.
    fn initial(&mut self) -> bool {
        let Some(listing) = &mut self.listing else {
            if let Some(revision) = self.mark_at.take() {
                self.pending.push_back(self.frames.bookmark(revision, true));
                return true;
            }
            return false;
        };
        let mut seen = 0;
        loop {
            let Some(record) = listing.next() else {
                self.listing = None;
                return true;
            };
            seen += 1;
            if self.frames.selection.matches(&record) {
                let stored = read::is_plain(&record, &self.frames.target)
                    .then(|| self.frames.stored("ADDED", &record.bytes))
                    .flatten();
                let frame = stored.unwrap_or_else(|| {
                    let v = read::value(&record, &self.frames.target);
                    self.frames.value("ADDED", &v)
                });
                self.pending.push_back(frame);
            }
            if self.pending.len() >= INITIAL || seen >= 4096 {
                return true;
            }
        }
    }
}
