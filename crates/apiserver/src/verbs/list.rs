//! `list`: over a snapshot, in pages or as one stream, from the stored bytes.
//!
//! A list of any length holds the snapshot and one chunk. Invariant: all pages of a list show one revision, unless
//! the client asks to go on inconsistently after its token has expired.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::stream;
use homeostat_model::status::Result;
use homeostat_model::{Status, Timestamp};
use homeostat_resources::table::{self, Include, Printer};
use homeostat_store::{HistoryError, Listing, Record, Snapshot};
use http::StatusCode;
use serde_json::{Value, json};

use crate::body::Body;
use crate::convert;
use crate::meta::Meta;
use crate::negotiate::{Accepted, Format, View};
use crate::object;
use crate::options::{ListOptions, Match};
use crate::read;
use crate::registry::Target;
use crate::respond::{Answer, Content};
use crate::selection::Selection;
use crate::server::{Call, Server};

mod packed;

/// Bytes of a chunk; a single larger object makes a larger one.
const CHUNK: usize = 64 * 1024;

/// Answers a list.
pub(crate) async fn list(
    server: &Server,
    target: &Target,
    call: &Call,
    accepted: Accepted,
) -> Result<Answer> {
    let options = ListOptions::parse(&call.query, false)?;
    let namespace = if target.resource.namespaced { call.info.namespace.as_str() } else { "" };
    let selection = Selection::parse(target, namespace, "", &options)?;
    let view = match accepted.view {
        View::Metadata(_) => {
            return Err(Status::new(
                406,
                "NotAcceptable",
                format!(
                    "you requested PartialObjectMetadata, but the requested object is a list ({})",
                    read::go_type(target, true)
                ),
            ));
        }
        v => v,
    };
    let include = Include::parse(call.query.get("includeObject").unwrap_or_default());
    let include = if matches!(view, View::Table(_)) {
        include.map_err(Status::bad_request)?
    } else {
        Include::Metadata
    };
    let page = match page(server, &selection.prefix, &options).await? {
        Ok(page) => page,
        Err(expired) => return Ok(expired),
    };
    if target.converted.is_some() && !target.is_storage() {
        // A webhook is asked for the whole page at once.
        let limit = if page.limit == 0 { usize::MAX } else { page.limit };
        let records: Vec<_> = page
            .snapshot
            .range(&target.resource.collection, &selection.prefix, page.after.as_deref())
            .filter(|r| selection.matches(r))
            .take(limit)
            .map(|r| &**r)
            .collect();
        convert::prefetch(server, target, &records, true).await?;
    }
    let chunks = Chunks {
        listing: match selection.single(target.resource.namespaced) {
            Some(name) if page.after.is_none() => {
                Items::Single(page.snapshot.get(&target.resource.collection, &name).cloned())
            }
            _ => Items::All(page.snapshot.listing(
                &target.resource.collection,
                &selection.prefix,
                page.after.as_deref(),
            )),
        },
        snapshot: Some(page.snapshot),
        revision: page.revision,
        target: target.clone(),
        selection,
        limit: page.limit,
        sent: 0,
        last: None,
        view,
        include,
        now: server.config.clock.now(),
        state: State::Head,
        prefix: object::typed_prefix(&target.resource.kind, &target.gv().to_string()),
    };
    if accepted.format == Format::Protobuf {
        return chunks.packed().await;
    }
    Ok(Answer::new(StatusCode::OK, Content::Chunks(chunks.into_body())))
}

/// Names of what a list shows, for deleting it.
pub(crate) async fn names(server: &Server, target: &Target, call: &Call) -> Result<Vec<String>> {
    let options = ListOptions::parse(&call.query, false)?;
    let namespace = if target.resource.namespaced { call.info.namespace.as_str() } else { "" };
    let selection = Selection::parse(target, namespace, "", &options)?;
    let Ok(page) = page(server, &selection.prefix, &options).await? else { return Ok(Vec::new()) };
    let limit = if page.limit == 0 { usize::MAX } else { page.limit };
    let name =
        |r: &std::sync::Arc<Record<Meta>>| r.key.name.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(page
        .snapshot
        .range(&target.resource.collection, &selection.prefix, page.after.as_deref())
        .filter(|r| selection.matches(r))
        .take(limit)
        .map(name)
        .collect())
}

/// What a request's version options come to.
struct Page {
    snapshot: Snapshot<Meta>,
    /// The version that the list carries.
    revision: u64,
    /// Store name after which the page starts.
    after: Option<String>,
    limit: usize,
}

async fn page(server: &Server, prefix: &str, o: &ListOptions) -> Result<std::result::Result<Page, Answer>> {
    let store = &server.config.store;
    let limit = usize::try_from(o.limit).unwrap_or(0);
    if !o.continue_token.is_empty() {
        if !o.resource_version.is_empty() && o.resource_version != "0" {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let token = Token::decode(&o.continue_token).map_err(|e| {
            Status::bad_request(format!("invalid continue token: continue key is not valid: {e}"))
        })?;
        let after = Some(format!("{prefix}{}", token.start));
        let Some(revision) = token.revision else {
            let snapshot = store.snapshot();
            return Ok(Ok(Page { revision: snapshot.revision(), snapshot, after, limit }));
        };
        return match store.snapshot_at(revision) {
            Ok(snapshot) => Ok(Ok(Page { snapshot, revision, after, limit })),
            Err(HistoryError::Compacted(_)) => Ok(Err(expired(&token))),
            Err(HistoryError::Future { requested, current }) => Err(read::too_large(requested, current)),
        };
    }
    let wanted = read::wait_for(server, &o.resource_version).await?;
    let exact =
        o.version_match == Some(Match::Exact) || (o.version_match.is_none() && wanted > 0 && limit > 0);
    if exact {
        return match store.snapshot_at(wanted) {
            Ok(snapshot) => Ok(Ok(Page { snapshot, revision: wanted, after: None, limit })),
            Err(HistoryError::Compacted(_)) => {
                Err(Status::expired("The resourceVersion for the provided list is too old."))
            }
            Err(HistoryError::Future { requested, current }) => Err(read::too_large(requested, current)),
        };
    }
    let snapshot = store.snapshot();
    // Any state will do for version 0, and the reference then serves all of it from its cache.
    let limit = if o.resource_version == "0" { 0 } else { limit };
    Ok(Ok(Page { revision: snapshot.revision(), snapshot, after: None, limit }))
}

/// A decoded continue token.
struct Token {
    /// `None`: go on inconsistently.
    revision: Option<u64>,
    /// Name relative to the list's prefix after which to go on.
    start: String,
}

impl Token {
    fn encode(revision: i64, start: &str) -> String {
        let v = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{start}\0")});
        URL_SAFE_NO_PAD.encode(v.to_string())
    }

    fn decode(text: &str) -> std::result::Result<Self, String> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|_| "illegal base64 data at input byte 0".to_owned())?;
        let (v, _) = homeostat_schema::decode::parse_json(&bytes, 8).map_err(|e| e.to_string())?;
        match v["v"].as_str() {
            Some("meta.k8s.io/v1") => {}
            other => {
                let other = homeostat_model::field::quote(other.unwrap_or_default());
                return Err(format!("server does not recognize this encoded version {other}"));
            }
        }
        let start = v["start"].as_str().unwrap_or_default().trim_start_matches('/');
        if start.is_empty() {
            return Err("encoded start key empty (version meta.k8s.io/v1)".to_owned());
        }
        if start.split('/').any(|p| p == ".." || p == ".") {
            return Err(start.to_owned());
        }
        let revision = match v["rv"].as_i64() {
            Some(-1) => None,
            Some(n) if n > 0 => Some(n as u64),
            _ => return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned()),
        };
        Ok(Self { revision, start: start.trim_end_matches('\0').to_owned() })
    }
}

fn expired(token: &Token) -> Answer {
    let status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let mut v = status.to_value();
    v["metadata"] = json!({"continue": Token::encode(-1, &token.start)});
    Answer::value(v).with_code(StatusCode::GONE)
}

enum Items {
    All(Listing<Meta>),
    Single(Option<std::sync::Arc<Record<Meta>>>),
}

impl Items {
    fn next(&mut self) -> Option<std::sync::Arc<Record<Meta>>> {
        match self {
            Self::All(l) => l.next(),
            Self::Single(r) => r.take(),
        }
    }
}

enum State {
    Head,
    Items,
    Done,
}

/// Makes a list's JSON chunk by chunk.
struct Chunks {
    listing: Items,
    snapshot: Option<Snapshot<Meta>>,
    revision: u64,
    target: Target,
    selection: Selection,
    limit: usize,
    sent: usize,
    last: Option<std::sync::Arc<str>>,
    view: View,
    include: Include,
    now: Timestamp,
    state: State,
    prefix: usize,
}

impl Chunks {
    fn into_body(mut self) -> Body {
        let first = self.chunk().unwrap_or_default();
        if matches!(self.state, State::Done) {
            return Body::full(first);
        }
        let rest = stream::unfold(self, |mut c| async move { c.chunk().map(|bytes| (bytes, c)) });
        Body::stream(futures::StreamExt::chain(stream::iter([first]), rest))
    }

    fn chunk(&mut self) -> Option<Bytes> {
        let mut out = Vec::with_capacity(4 * 1024);
        match self.state {
            State::Done => return None,
            State::Head => {
                self.head(&mut out);
                self.state = State::Items;
            }
            State::Items => {}
        }
        // The target is borrowed by the printer while the rest of `self` moves on.
        let target = self.target.clone();
        let printer = match self.view {
            View::Table(v) => Some(Printer::new(&target.resource, target.version(), self.include, v)),
            _ => None,
        };
        while out.len() < CHUNK {
            if self.limit > 0 && self.sent == self.limit {
                let more = self.listing.next().is_some();
                self.tail(&mut out, more);
                return Some(out.into());
            }
            let Some(record) = self.listing.next() else {
                self.tail(&mut out, false);
                return Some(out.into());
            };
            if !self.selection.matches(&record) {
                continue;
            }
            if self.sent > 0 {
                out.push(b',');
            }
            self.sent += 1;
            self.item(&mut out, &record, printer.as_ref());
            if self.limit > 0 {
                self.last = Some(record.key.name.clone());
            }
        }
        Some(out.into())
    }

    fn head(&self, out: &mut Vec<u8>) {
        let gv = self.target.gv().to_string();
        let text = match self.view {
            View::Object if self.target.built_in() => {
                format!(
                    "{{\"kind\":\"{}\",\"apiVersion\":\"{gv}\",\"items\":[",
                    self.target.resource.list_kind
                )
            }
            View::Object => format!("{{\"apiVersion\":\"{gv}\",\"items\":["),
            View::Table(v) => format!("{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{v}\",\"rows\":["),
            View::Metadata(v) | View::MetadataList(v) => {
                format!(
                    "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/{v}\",\"items\":["
                )
            }
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn item(&self, out: &mut Vec<u8>, record: &Record<Meta>, printer: Option<&Printer<'_>>) {
        let plain = read::is_plain(record, &self.target);
        match (self.view, printer) {
            (View::Object, _) if plain && self.target.built_in() => {
                out.push(b'{');
                out.extend_from_slice(record.bytes.get(self.prefix..).unwrap_or(b"}"));
            }
            (View::Object, _) if plain => out.extend_from_slice(&record.bytes),
            (View::Object, _) => {
                let mut v = read::value(record, &self.target);
                if self.target.built_in()
                    && let Some(m) = v.as_object_mut()
                {
                    m.remove("kind");
                    m.remove("apiVersion");
                }
                object::write_json(out, &v);
            }
            (View::Table(_), Some(printer)) => {
                object::write_json(out, &printer.row(&read::value(record, &self.target), self.now));
            }
            (View::Metadata(v) | View::MetadataList(v), _)
                if read::has_plain_metadata(record, &self.target) =>
            {
                out.extend_from_slice(&read::partial(&record.bytes, v));
            }
            (View::Metadata(v) | View::MetadataList(v), _) => {
                object::write_json(out, &table::partial(&read::value(record, &self.target), v));
            }
            (View::Table(_), None) => out.extend_from_slice(b"null"),
        }
    }

    /// The list's `metadata`; `more` if there are more objects than the limit allows.
    fn metadata(&self, more: bool) -> Value {
        let mut meta = serde_json::Map::new();
        meta.insert("resourceVersion".into(), self.revision.to_string().into());
        if more && let Some(last) = &self.last {
            let start = last.strip_prefix(self.selection.prefix.as_str()).unwrap_or(last);
            let revision = i64::try_from(self.revision).unwrap_or(i64::MAX);
            meta.insert("continue".into(), Token::encode(revision, start).into());
            if !self.selection.selects()
                && let Some(snapshot) = &self.snapshot
            {
                let left =
                    snapshot.count(&self.target.resource.collection, &self.selection.prefix, Some(last));
                meta.insert("remainingItemCount".into(), left.into());
            }
        } else if self.custom() {
            meta.insert("continue".into(), "".into());
        }
        Value::Object(meta)
    }

    /// Whether it is shown as custom resources are.
    fn custom(&self) -> bool {
        !self.target.built_in() && self.view == View::Object
    }

    fn tail(&mut self, out: &mut Vec<u8>, more: bool) {
        self.state = State::Done;
        let meta = self.metadata(more);
        self.snapshot = None;
        out.push(b']');
        if self.custom() {
            out.extend_from_slice(b",\"kind\":");
            object::write_json(out, &self.target.resource.list_kind);
        }
        if let View::Table(v) = self.view {
            let printer = Printer::new(&self.target.resource, self.target.version(), self.include, v);
            out.extend_from_slice(b",\"columnDefinitions\":");
            object::write_json(out, &printer.columns());
        }
        out.extend_from_slice(b",\"metadata\":");
        object::write_json(out, &meta);
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_round_trip_and_are_checked() {
        let t = Token::decode(&Token::encode(7, "ns/a")).unwrap();
        assert_eq!((t.revision, t.start.as_str()), (Some(7), "ns/a"));
        assert_eq!(Token::decode(&Token::encode(-1, "a")).unwrap().revision, None);
        for (json, complaint) in [
            ("not-a-token", "invalid character 'o' in literal null (expecting 'u')"),
            (r#"{"v":"v2","rv":1,"start":"a"}"#, "server does not recognize this encoded version \"v2\""),
            (r#"{"v":"meta.k8s.io/v1","rv":1}"#, "encoded start key empty (version meta.k8s.io/v1)"),
            (
                r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
        ] {
            assert_eq!(Token::decode(&URL_SAFE_NO_PAD.encode(json)).err().as_deref(), Some(complaint));
        }
    }
}
