//! Who asked for what, and what became of it: one event for each request, for whoever wants to know.
//!
//! It is a hook, not a log: nothing is kept here. Invariant: every request that got an answer is told once, after
//! its handler has ended (a watch, when it has begun).

use homeostat_access::User;

use crate::request_info::RequestInfo;

/// A request that has been answered.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Who asked; after impersonation, and without a name where authentication failed.
    pub user: &'a User,
    /// For what.
    pub info: &'a RequestInfo,
    /// HTTP status of the answer.
    pub code: u16,
}

/// Wants to know of every request. Called on the request's own task: it should not take long.
pub trait Audit: Send + Sync {
    /// Takes note.
    fn answered(&self, event: &Event<'_>);
}
