//! From stored records to what clients see: unparsed where the stored bytes are already that, else converted and
//! defaulted, or cut down to tables and metadata.
//!
//! Invariant: a record of the present epoch asked for in its storage version is never parsed for a plain answer.

use std::time::Duration;

use bytes::Bytes;
use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_resources::table::{self, Include, Printer};
use homeostat_store::{Record, Revision};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::meta::Meta;
use crate::negotiate::View;
use crate::object;
use crate::options::parse_uint;
use crate::registry::Target;
use crate::server::Server;

/// How long a read waits for a version that lies ahead.
const WAIT: Duration = Duration::from_secs(3);

/// Whether the stored bytes are what `target` shows.
pub(crate) fn is_plain(record: &Record<Meta>, target: &Target) -> bool {
    target.is_storage() && record.meta.epoch == target.resource.epoch
}

/// Whether the stored metadata is what `target` shows: of most built-in types in any version.
pub(crate) fn has_plain_metadata(record: &Record<Meta>, target: &Target) -> bool {
    let resource = &target.resource;
    let same = || target.built_in() && !resource.strategy.converts_metadata();
    is_plain(record, target) || record.meta.epoch == resource.epoch && same()
}

/// A record's bytes as `target` shows them.
pub(crate) fn bytes(record: &Record<Meta>, target: &Target) -> Bytes {
    if is_plain(record, target) { record.bytes.clone() } else { encode(&value(record, target), target) }
}

/// An object as bytes, in the order of keys that its kind has.
pub(crate) fn encode(object: &Value, target: &Target) -> Bytes {
    if target.built_in() { object::typed_bytes(object) } else { object::to_bytes(object) }
}

/// A `PartialObjectMetadata` of stored bytes whose metadata is what their target shows, without parsing it.
pub(crate) fn partial(bytes: &[u8], meta_version: &str) -> Bytes {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    // The store's own bytes: they have metadata.
    let metadata = serde_json::from_slice::<Parts<'_>>(bytes).map_or("{}", |p| p.metadata.get());
    let head = "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/";
    [head, meta_version, "\",\"metadata\":", metadata, "}"].concat().into()
}

/// A record as a value in `target`'s version.
pub(crate) fn value(record: &Record<Meta>, target: &Target) -> Value {
    decode(&record.bytes, record.meta.epoch, target)
}

/// A record as a value in the storage version, brought up to the present definition.
pub(crate) fn stored(record: &Record<Meta>, target: &Target) -> Value {
    value(record, &target.storage())
}

/// Stored bytes of some epoch as a value in `target`'s version.
pub(crate) fn decode(bytes: &[u8], epoch: u64, target: &Target) -> Value {
    let mut v: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let resource = &target.resource;
    if epoch != resource.epoch {
        let storage = resource.storage_version();
        v["apiVersion"] = storage.gv.to_string().into();
        let schema = &storage.schema;
        if !target.built_in() {
            schema.prune(&mut v);
        }
        schema.default(&mut v);
        resource.strategy.default(&storage.gv, &mut v);
    }
    if !target.is_storage() {
        // Converted by a webhook already, or by hand.
        if let Some(found) = target.converted.as_ref().and_then(|c| c.get(&v)) {
            return found;
        }
        resource.strategy.convert(&mut v, target.gv());
        if !target.built_in() {
            // What the version asked for does not know is not shown; what it would default stays unset.
            target.version().schema.prune(&mut v);
        }
    }
    v
}

/// Waits until the store has reached a version that a read must not be older than.
pub(crate) async fn wait_for(server: &Server, text: &str) -> Result<Revision> {
    if text.is_empty() || text == "0" {
        return Ok(0);
    }
    let wanted = parse_uint(text).map_err(|e| {
        let text = homeostat_model::field::quote(text);
        Status::bad_request(format!("invalid resource version: resourceVersion: Invalid value: {text}: {e}"))
    })?;
    wait_revision(server, wanted).await?;
    Ok(wanted)
}

/// Waits at most three seconds for a revision.
pub(crate) async fn wait_revision(server: &Server, wanted: Revision) -> Result<()> {
    let store = &server.config.store;
    if store.revision() >= wanted {
        return Ok(());
    }
    let deadline = tokio::time::Instant::now() + WAIT;
    while store.revision() < wanted {
        if tokio::time::Instant::now() >= deadline {
            return Err(too_large(wanted, store.revision()));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The 504 of a version that lies ahead.
pub(crate) fn too_large(wanted: Revision, current: Revision) -> Status {
    Status::new(504, "Timeout", format!("Too large resource version: {wanted}, current: {current}"))
        .cause("ResourceVersionTooLarge", "Too large resource version", "")
        .retry_after(1)
}

/// A single object's answer body in the view asked for.
pub(crate) fn single(
    object: &Value,
    target: &Target,
    view: View,
    include: &str,
    now: homeostat_model::Timestamp,
) -> Result<Value> {
    match view {
        View::Object => Ok(object.clone()),
        View::Metadata(v) => Ok(table::partial(object, v)),
        View::MetadataList(_) => Err(Status::new(
            406,
            "NotAcceptable",
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
                go_type(target, false)
            ),
        )),
        View::Table(v) => {
            let include = Include::parse(include).map_err(Status::bad_request)?;
            let printer = Printer::new(&target.resource, target.version(), include, v);
            Ok(printer.table([object], table::object_meta(object), true, now))
        }
    }
}

/// The Go type that the reference names in errors.
pub(crate) fn go_type(target: &Target, list: bool) -> String {
    match (target.built_in(), list) {
        (true, true) => format!("*{}.{}", target.gv().version, target.resource.list_kind),
        (true, false) => format!("*{}.{}", target.gv().version, target.resource.kind),
        (false, true) => "*unstructured.UnstructuredList".to_owned(),
        (false, false) => "*unstructured.Unstructured".to_owned(),
    }
}
