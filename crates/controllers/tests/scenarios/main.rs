//! Controllers against a whole control plane in this process: what a user does, and what has to come of it.

mod autoscaling;
mod batch;
mod certificates;
mod claims;
mod daemons;
mod deletion;
mod drain;
mod garbage;
mod invariants;
mod namespaces;
mod nodes;
mod pod_gc;
mod quiet;
mod quotas;
mod replication;
mod rights;
mod services;
mod storage;
mod support;
mod tokens;
mod virtual_time;
mod workloads;
