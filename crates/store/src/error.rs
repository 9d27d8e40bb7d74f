//! Why the store says no. Each variant says whether trying again can help.

use std::fmt;
use std::sync::Arc;

use crate::record::{Record, Revision};

/// The history asked for is gone. Don't retry: list anew, and watch from the list's revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history before revision {oldest} is gone, the store is at {current}")]
pub struct Compacted {
    /// The oldest revision that could have been asked for instead.
    pub oldest: Revision,
    /// The present revision.
    pub current: Revision,
}

/// Why a past state cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// The revision is too old.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    /// The revision has not been reached yet; retry when it is.
    #[error("revision {requested} is in the future, the store is at {current}")]
    Future {
        /// The revision asked for.
        requested: Revision,
        /// The present revision.
        current: Revision,
    },
}

/// Why nothing was committed (or, for one variant, why nobody knows).
#[derive(thiserror::Error)]
pub enum CommitError<M> {
    /// [`crate::Expect::Absent`] failed; this record is there.
    #[error("the record exists at revision {}", .0.revision)]
    Exists(Arc<Record<M>>),
    /// There is no record to delete or to replace.
    #[error("there is no such record")]
    Missing,
    /// [`crate::Expect::Revision`] failed; this record is there now. Retry on top of it.
    #[error("the record is at revision {}", .0.revision)]
    Changed(Arc<Record<M>>),
    /// The draft's `revision_at` lies beyond its bytes: a mistake of the caller.
    #[error("the revision's place {revision_at} is beyond the {len} bytes of the draft")]
    Draft {
        /// What the draft said.
        revision_at: usize,
        /// How long the draft is.
        len: usize,
    },
    /// The store could not take the write; nothing was written, a retry may succeed. Never from [`crate::Memory`].
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The write may have happened or not: read before a retry. Never from [`crate::Memory`].
    #[error("the outcome of the commit is unknown: {0}")]
    Unknown(String),
}

impl<M> fmt::Debug for CommitError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitError({self})")
    }
}
