//! Controllers against a whole control plane in this process: what a user does, and what has to come of it.

mod batch;
mod garbage;
mod namespaces;
mod services;
mod support;
mod workloads;
