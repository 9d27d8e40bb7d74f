//! The built-in types of Kubernetes 1.36: what `types.json` lists, the schemas in `definitions/`, and a strategy each.
//!
//! Names, columns, schemas and unconditional defaults are data (`crates/resources/data`); what depends on other
//! fields is in one file per family of types under [`types`]. A type is added by its line in `types.json` and, where
//! it is special, a strategy in a file of its own. It holds no objects and reads no clock.
//! Invariant: building the list parses the table only; schemas are parsed and compiled when first used.

pub mod admit;
mod registry;
mod rules;
mod shape;
mod tables;
mod types;
mod value;

pub use registry::{definitions, resources};
