//! The API server: request → authenticate → authorize → admit → decode and default → validate → commit → encode.
//!
//! It serves whatever `resources` defines, built-in or made by a CRD, from one request path without special cases
//! by kind beyond the strategy. It runs in-process as a tower service, and over TLS through [`serve`].
//! Invariants: nothing is stored without validation; every error is a `Status`; no request can end the process.

mod admission;
pub mod audit;
mod authority;
pub mod body;
mod bootstrap;
mod computed;
pub mod config;
mod convert;
mod crds;
mod decode;
mod dispatch;
mod hook;
pub mod meta;
pub mod negotiate;
mod nonresource;
pub mod object;
pub mod options;
mod protobuf;
mod read;
mod registry;
pub mod request_info;
pub mod respond;
mod reviews;
mod selection;
pub mod serve;
mod server;
mod services;
mod subresources;
mod upkeep;
mod verbs;
mod write;
mod yaml;

pub use body::Body;
pub use computed::Computed;
pub use config::{Authentication, BOOKMARK_EVERY, Config, InFlight, Version};
pub use meta::Meta;
pub use serve::{PeerAddress, PeerCertificate};
pub use server::ApiServer;
