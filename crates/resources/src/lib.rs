//! What the server serves: definitions of built-in and custom resources, their tables, discovery and OpenAPI.
//!
//! Everything here is a pure function of definitions and JSON values; no I/O, no store, no HTTP.

pub mod builtin;
pub mod crd;
pub mod definition;
pub mod discovery;
pub mod jsonpath;
pub mod openapi;
pub mod scale;
pub mod strategy;
pub mod table;
pub mod webhook;

pub use definition::{Column, Conversion, OpenApi, Origin, Resource, ScalePaths, Subresource, Version};
pub use strategy::{Cx, Plain, Propagation, Strategy};
