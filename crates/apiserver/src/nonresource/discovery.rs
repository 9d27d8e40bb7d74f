//! Discovery: `/api`, `/apis`, `/apis/GROUP`, `/api/v1`, `/apis/GROUP/VERSION`, in the old form or aggregated.
//!
//! Documents are made once for each table of what is served, and carry a tag by which clients ask whether they
//! have changed.

use bytes::Bytes;
use homeostat_model::GroupVersion;
use homeostat_resources::discovery;
use http::{StatusCode, header};
use serde_json::Value;

use crate::body::Body;
use crate::negotiate;
use crate::object;
use crate::registry::Table;
use crate::respond::{Answer, Content};
use crate::server::{Call, Server};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(super) fn serve(server: &Server, call: &Call) -> Answer {
    let table = server.registry.table();
    let path = call.info.path.trim_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let bytes = |v: Value| object::to_bytes(&v);
    let address = server.config.advertise.as_str();
    match parts.as_slice() {
        [root @ ("api" | "apis")] => {
            let core = *root == "api";
            if wants_aggregated(call) {
                return aggregated(&table, call, core);
            }
            let make = |t: &Table| {
                Some(bytes(if core {
                    discovery::api_versions(address)
                } else {
                    discovery::group_list(t.all())
                }))
            };
            plain(table.document(path, make).map(|d| d.bytes.clone()))
        }
        ["api", version] => {
            let gv = GroupVersion::new("", *version);
            plain(
                table
                    .document(path, |t| discovery::resource_list(t.all(), &gv).map(bytes))
                    .map(|d| d.bytes.clone()),
            )
        }
        ["apis", group] => plain(
            table.document(path, |t| discovery::group(t.all(), group).map(bytes)).map(|d| d.bytes.clone()),
        ),
        ["apis", group, version] => {
            let gv = GroupVersion::new(*group, *version);
            plain(
                table
                    .document(path, |t| discovery::resource_list(t.all(), &gv).map(bytes))
                    .map(|d| d.bytes.clone()),
            )
        }
        _ => Answer::page_not_found(),
    }
}

fn plain(document: Option<Bytes>) -> Answer {
    match document {
        Some(bytes) => Answer::json(bytes).with_header(header::VARY, "Accept"),
        None => Answer::page_not_found(),
    }
}

/// Whether the client prefers the aggregated form to the old one.
fn wants_aggregated(call: &Call) -> bool {
    let accept = call.header(header::ACCEPT).unwrap_or_default();
    for clause in negotiate::clauses(accept) {
        if !clause.matches("application", "json") {
            continue;
        }
        match clause.param("as") {
            None => return false,
            Some("APIGroupDiscoveryList")
                if clause.param("g") == Some("apidiscovery.k8s.io") && clause.param("v") == Some("v2") =>
            {
                return true;
            }
            Some(_) => {}
        }
    }
    false
}

fn aggregated(table: &Table, call: &Call, core: bool) -> Answer {
    let name = if core { "aggregated/api" } else { "aggregated/apis" };
    let make = |t: &Table| Some(object::to_bytes(&discovery::aggregated(t.all(), core)));
    let Some(document) = table.document(name, make) else { return Answer::page_not_found() };
    let known = call
        .header(header::IF_NONE_MATCH)
        .is_some_and(|tags| tags.split(',').any(|t| t.trim() == document.etag));
    let answer = if known {
        Answer::new(StatusCode::NOT_MODIFIED, Content::Raw("", Body::empty()))
    } else {
        Answer::new(StatusCode::OK, Content::Raw(AGGREGATED, Body::full(document.bytes.clone())))
    };
    answer
        .with_header(header::ETAG, &document.etag)
        .with_header(header::VARY, "Accept")
        .with_header(header::CACHE_CONTROL, "public")
}
