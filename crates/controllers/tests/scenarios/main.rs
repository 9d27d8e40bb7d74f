//! Controllers against a whole control plane in this process: what a user does, and what has to come of it.

mod garbage;
mod namespaces;
mod support;
mod workloads;
