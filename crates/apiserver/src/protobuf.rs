//! Answers in Kubernetes protobuf: objects, errors and frames of a watch, made of the values that other forms are
//! made of.
//!
//! Built-in types have such a form, custom ones only as `PartialObjectMetadata`; negotiation knows that and asks for
//! nothing else. Invariant: what cannot be written is told as a `Status`, never cut short.

use std::borrow::Cow;

use bytes::Bytes;
use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_protobuf::{
    Error, encode_json, encode_watch_event, encode_watch_event_as, encode_watch_event_json,
};
use serde::Deserialize;
use serde_json::Value;

/// What an object names itself.
#[derive(Default, Deserialize)]
struct TypeMeta<'a> {
    #[serde(borrow, default, rename = "apiVersion")]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

/// An object, list or `Status` that names its version and kind.
pub(crate) fn body(value: &Value) -> Result<Bytes> {
    homeostat_protobuf::encode(value).map(Bytes::from).map_err(|e| refuse(&e))
}

/// The same of JSON, without a value between them.
pub(crate) fn body_of_json(json: &[u8]) -> Result<Bytes> {
    let named: TypeMeta<'_> = serde_json::from_slice(json).unwrap_or_default();
    encode_json(json, &named.api_version, &named.kind).map(Bytes::from).map_err(|e| refuse(&e))
}

/// The `Status` of something that has no such form.
pub(crate) fn refuse(e: &Error) -> Status {
    match e {
        Error::NotMarshalable(_) => Status::new(406, "NotAcceptable", e.to_string()),
        _ => Status::internal(e.to_string()),
    }
}

/// A frame of a watch with an object that names its version and kind; an `ERROR` where it cannot be written.
pub(crate) fn frame(event: &str, object: &Value) -> Bytes {
    told(encode_watch_event(event, object))
}

/// The same of an object of this version and kind that comes as JSON.
pub(crate) fn frame_of_json(event: &str, json: &[u8], api_version: &str, kind: &str) -> Bytes {
    told(encode_watch_event_json(event, json, api_version, kind))
}

fn told(frame: std::result::Result<Vec<u8>, Error>) -> Bytes {
    frame
        .or_else(|e| encode_watch_event_as("ERROR", &refuse(&e).to_value(), "v1", "Status"))
        .unwrap_or_default()
        .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_built_in_type_has_a_form() {
        let mut lacking = Vec::new();
        for resource in homeostat_resources::builtin::resources() {
            for version in &resource.versions {
                let gv = version.gv.to_string();
                let listed = version.verbs.contains(&"list").then_some(&*resource.list_kind);
                for kind in [Some(&*resource.kind), listed].into_iter().flatten() {
                    if !homeostat_protobuf::knows(&gv, kind) {
                        lacking.push(format!("{gv} {kind}"));
                    }
                }
            }
        }
        assert!(lacking.is_empty(), "{lacking:?}");
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let check = |object: Value, expect: Option<u16>| {
            assert_eq!(body(&object).err().map(|s| s.code), expect, "{object}");
            assert_eq!(body_of_json(object.to_string().as_bytes()).ok(), body(&object).ok());
        };
        check(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}), None);
        check(Status::bad_request("no").to_value(), None);
        check(json!({"apiVersion": "example.com/v1", "kind": "Widget"}), Some(406));
        check(json!({"apiVersion": "meta.k8s.io/v1", "kind": "Table"}), Some(406));
        check(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": 7}), Some(500));
        assert_eq!(body_of_json(b"{}").err().map(|s| s.code), Some(406));
        assert!(!frame("ADDED", &json!({"kind": "Widget"})).is_empty());
    }
}
