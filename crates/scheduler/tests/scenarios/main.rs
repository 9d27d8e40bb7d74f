//! The scheduler against a whole API server in this process: what users see of it.

mod placing;
mod support;
mod together;
