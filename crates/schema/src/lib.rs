//! Structural schemas: what an object may look like, and what follows from it.
//!
//! A [`Schema`] validates, prunes, defaults and decodes objects and tells merges how lists and maps behave. It
//! does no I/O and reads no clock. Invariant: no input makes it panic, and none takes unbounded stack.

pub mod compile;
pub mod node;
pub mod pattern;
mod rules;
mod schema;

pub use compile::{CompileError, Definitions};
pub use node::{Kind, ListType, MapType, Node, PatchStrategy, Special};
pub use schema::Schema;
