//! What a commit asks for.

use crate::record::{Key, Revision};

/// The bytes of a record that still lack their revision.
///
/// The store puts the revision's decimal digits at `revision_at`, e.g. between the quotes of
/// `"resourceVersion":""`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The object without its revision.
    pub bytes: Vec<u8>,
    /// Where in `bytes` the digits go; at most the length.
    pub revision_at: usize,
}

impl Draft {
    /// A draft of its parts.
    pub fn new(bytes: Vec<u8>, revision_at: usize) -> Self {
        Self { bytes, revision_at }
    }
}

/// What must be true of the key for the write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing lies there.
    Absent,
    /// The record there is of this revision.
    Revision(Revision),
    /// A put needs nothing; a deletion needs some record.
    Any,
}

/// What to do to the key.
#[derive(Clone, Debug)]
pub enum Op<M> {
    /// Create or replace the record.
    Put(Draft, M),
    /// Remove the record; the draft is its final state, for watchers.
    Delete(Draft),
}

/// One conditional write.
#[derive(Clone, Debug)]
pub struct Write<M> {
    /// Where.
    pub key: Key,
    /// On which condition.
    pub expect: Expect,
    /// What.
    pub op: Op<M>,
}
