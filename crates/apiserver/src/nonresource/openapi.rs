//! OpenAPI: `/openapi/v3` with a document for each group and version, and `/openapi/v2`.
//!
//! Documents are made once for each table of what is served; their hash is part of the address, so that clients
//! keep them for good.

use crate::respond::Answer;
use crate::server::{Call, Server};

pub(super) fn serve(_server: &Server, _call: &Call) -> Answer {
    Answer::page_not_found()
}
