//! OpenAPI: `/openapi/v3` with a document for each group and version, and `/openapi/v2`.
//!
//! Documents are made when first asked for, and again only for groups and versions that have changed; their hash is
//! part of the address, so that clients keep them for good.

use std::sync::Arc;

use bytes::Bytes;
use homeostat_model::Timestamp;
use homeostat_resources::openapi::{Document, V2_PROTO_CONTENT_TYPE, V2_PROTO_MEDIA_TYPE};
use http::{StatusCode, header};

use crate::body::Body;
use crate::negotiate;
use crate::respond::{Answer, Content};
use crate::server::{Call, Server};

/// How long a document with a hash in its address may be kept, in seconds.
const YEAR: i64 = 365 * 24 * 3600;

pub(super) fn serve(server: &Server, call: &Call) -> Answer {
    let table = server.registry.table();
    let documents = table.openapi();
    match call.info.path.trim_matches('/') {
        "openapi/v3" => document(call, "application/json", &documents.index()),
        "openapi/v2" if wants_protobuf(call) => document(call, V2_PROTO_CONTENT_TYPE, &documents.v2_proto()),
        "openapi/v2" => document(call, "application/json", &documents.v2()),
        path => match path.strip_prefix("openapi/v3/") {
            Some(path) => version(server, call, path),
            None => Answer::page_not_found(),
        },
    }
}

/// A document of a group and version. With the right hash it never changes; with another, its address has.
fn version(server: &Server, call: &Call, path: &str) -> Answer {
    let table = server.registry.table();
    let documents = table.openapi();
    let Some(hash) = documents.hash(path) else { return Answer::page_not_found() };
    let given = call.query.get("hash").filter(|h| !h.is_empty());
    if given.is_some_and(|h| h != hash) {
        let url = format!("/openapi/v3/{path}?hash={hash}");
        let page = Bytes::from(format!("<a href=\"{url}\">Moved Permanently</a>.\n\n"));
        return Answer::new(
            StatusCode::MOVED_PERMANENTLY,
            Content::Raw("text/html; charset=utf-8", Body::full(page)),
        )
        .with_header(header::LOCATION, &url);
    }
    let Some(found) = documents.v3(path) else { return Answer::page_not_found() };
    let answer = document(call, "application/json", &found);
    if given.is_none() {
        return answer;
    }
    let expires = Timestamp::from_second(server.config.clock.now().as_second() + YEAR).unwrap_or_default();
    answer
        .with_header(header::CACHE_CONTROL, "public, immutable")
        .with_header(header::EXPIRES, &expires.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

fn document(call: &Call, content_type: &'static str, document: &Arc<Document>) -> Answer {
    let etag = format!("\"{}\"", document.hash);
    let known =
        call.header(header::IF_NONE_MATCH).is_some_and(|tags| tags.split(',').any(|t| t.trim() == etag));
    let answer = if known {
        Answer::new(StatusCode::NOT_MODIFIED, Content::Raw("", Body::empty()))
    } else {
        let bytes = Bytes::from_owner(document.bytes.clone());
        Answer::new(StatusCode::OK, Content::Raw(content_type, Body::full(bytes)))
    };
    answer.with_header(header::ETAG, &etag).with_header(header::VARY, "Accept")
}

/// Whether the client prefers the protobuf form of version 2.
fn wants_protobuf(call: &Call) -> bool {
    let accept = call.header(header::ACCEPT).unwrap_or_default();
    let subtype = V2_PROTO_MEDIA_TYPE.trim_start_matches("application/");
    for clause in negotiate::clauses(accept) {
        if clause.kind == "application" && clause.subtype == subtype {
            return true;
        }
        if clause.matches("application", "json") {
            return false;
        }
    }
    false
}
