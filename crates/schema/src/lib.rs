//! Structural schemas: what an object may look like, and what follows from it.
//!
//! A [`Schema`] validates, prunes, defaults and decodes objects and tells merges how lists and maps behave. It
//! does no I/O and reads no clock. Invariant: no input makes it panic, and none takes unbounded stack.

pub mod cel;
pub mod compile;
pub mod decode;
mod default;
pub mod fields;
mod formats;
mod golang;
pub mod managed;
pub mod node;
pub mod patch;
mod path;
pub mod pattern;
mod prune;
mod rules;
mod schema;
pub mod typed;
pub mod validate;

pub use compile::{CompileError, Definitions};
pub use decode::{DecodeError, ParseError};
pub use node::{Kind, ListType, MapType, Node, PatchStrategy, Special};
pub use schema::Schema;
pub use validate::Report;
