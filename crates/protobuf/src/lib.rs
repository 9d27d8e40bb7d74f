//! Kubernetes protobuf and JSON, each made of the other, driven by descriptors.
//!
//! Go's typed clients send and ask `application/vnd.kubernetes.protobuf` for built-in types. This crate reads such
//! bodies into the JSON values that the rest of the server works on, and writes objects, lists and watch frames. It
//! has no types of its own, checks no schema and knows no custom resource but as `PartialObjectMetadata`.
//!
//! What is written of a field that is empty follows from what the field is in Go:
//!
//! | In Go | Mark | Empty, in protobuf | Absent in protobuf, in JSON |
//! |---|---|---|---|
//! | `string` with `omitempty` | | written | left out, and so is `""` |
//! | `string` without | `always` | written | `""` |
//! | `*string` with `omitempty` | `pointer` | written where it is set | left out |
//! | `*string` without | `always pointer` | written where it is set | `null` |
//! | a struct by value | `always` | written | `{}` with what it always has |
//! | a struct by value with `omitzero` | `value` | written | left out |
//! | a pointer to a struct | `pointer` | written where it is set | left out |
//! | a list or map | | nothing | left out |
//! | a list or map without `omitempty` | `always` | nothing | `null` |
//! | an embedded struct | `inline` | written | its fields, each as above |
//!
//! Invariant: what is decoded, encoded and decoded again is the same; encoding gives the reference's bytes.

mod decode;
mod descriptor;
mod encode;
mod envelope;
mod error;
mod time;
mod transcode;
mod wire;

pub use envelope::{
    ListWriter, decode, decode_as, encode, encode_as, encode_json, encode_watch_event, encode_watch_event_as,
    encode_watch_event_json, kinds, knows,
};
pub use error::Error;

/// The media type of bodies in this form.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch's stream in this form.
pub const WATCH_MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// Messages within messages that are followed; a schema of a custom resource is the only type that gets near.
pub const MAX_DEPTH: usize = 128;
/// Most values that one body may become, lest few bytes take much memory.
pub const MAX_VALUES: usize = 1 << 20;

#[cfg(test)]
mod tests;
