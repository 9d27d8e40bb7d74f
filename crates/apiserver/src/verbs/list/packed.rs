//! Lists in protobuf. A message's length stands before it, so such a list is made as a whole, but item by item: only
//! one object at a time is a value.

use homeostat_model::status::Result;
use homeostat_protobuf::{Error, ListWriter, MEDIA_TYPE};
use http::StatusCode;

use super::Chunks;
use crate::body::Body;
use crate::negotiate::View;
use crate::protobuf::refuse;
use crate::read;
use crate::respond::{Answer, Content};

/// Records looked at between yields to other requests.
const BATCH: usize = 256;

impl Chunks {
    /// The whole list.
    pub(super) async fn packed(mut self) -> Result<Answer> {
        let (api_version, kind) = match self.view {
            View::Object => (self.target.gv().to_string(), self.target.resource.list_kind.to_string()),
            View::Metadata(v) | View::MetadataList(v) => {
                (format!("meta.k8s.io/{v}"), "PartialObjectMetadataList".to_owned())
            }
            View::Table(_) => return Err(refuse(&Error::NotMarshalable("v1.Table".to_owned()))),
        };
        let mut list = ListWriter::new(&api_version, &kind)
            .ok_or_else(|| refuse(&Error::NotMarshalable(read::go_type(&self.target, true))))?;
        let mut seen = 0;
        let more = loop {
            if self.limit > 0 && self.sent == self.limit {
                break self.listing.next().is_some();
            }
            seen += 1;
            if seen % BATCH == 0 {
                tokio::task::yield_now().await;
            }
            let Some(record) = self.listing.next() else { break false };
            if !self.selection.matches(&record) {
                continue;
            }
            self.sent += 1;
            // Of metadata's message the rest of an object is no part.
            let done = if read::is_plain(&record, &self.target) {
                list.item_json(&record.bytes)
            } else {
                list.item(&read::value(&record, &self.target))
            };
            done.map_err(|e| refuse(&e))?;
            if self.limit > 0 {
                self.last = Some(record.key.name.clone());
            }
        };
        let bytes = list.finish(&self.metadata(more)).map_err(|e| refuse(&e))?;
        Ok(Answer::new(StatusCode::OK, Content::Raw(MEDIA_TYPE, Body::full(bytes))))
    }
}
