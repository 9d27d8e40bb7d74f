//! From bytes to objects: JSON and YAML with their duplicate keys, and what a schema makes of the result.
//!
//! Decoding checks types as the reference's decoders do and reports fields that nobody knows; whether that is a
//! warning or an error is for the caller. Rules are [`crate::validate`]'s business. Invariants: nothing nests deeper
//! than the caller allows, and decoding what was decoded changes nothing.

mod custom;
mod json;
mod scan;
mod typed;
mod value;
mod yaml;

pub use json::parse_json;
pub use yaml::{parse_yaml, yaml_duplicates};

pub(crate) use custom::custom;
pub(crate) use typed::built_in;

/// Levels of nesting that objects may have: far above what anybody writes, far below what a stack holds.
pub const MAX_DEPTH: usize = 256;

/// Why bytes are no JSON or YAML, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

/// Why a value isn't of its type, in Go's words: `json: cannot unmarshal string into Go struct field …`. The API
/// server answers `K in version "v1" cannot be handled as a K: ` and this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);
