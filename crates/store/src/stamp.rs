//! Putting the revision into a draft: one copy into a buffer of exact size, made before the store's lock is taken
//! with room for as many digits as the next revision has; under the lock only the digits are written.

use bytes::Bytes;

use crate::record::Revision;
use crate::write::Draft;

/// A draft with a gap for its revision.
pub(crate) struct Stamp {
    bytes: Vec<u8>,
    at: usize,
    width: usize,
}

impl Stamp {
    /// Leaves a gap at the draft's place, wide enough for `expected`. `None` when that place is beyond the bytes.
    pub(crate) fn prepare(draft: &Draft, expected: Revision) -> Option<Self> {
        let (head, tail) = draft.bytes.split_at_checked(draft.revision_at)?;
        let mut digits = itoa::Buffer::new();
        Some(Self::join(head, digits.format(expected), tail))
    }

    /// Fills the gap; copies again only when the revision has gained a digit since `prepare`.
    pub(crate) fn finish(self, revision: Revision) -> Bytes {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(revision);
        let mut stamp = self;
        let gap = stamp.at..stamp.at + stamp.width;
        if digits.len() == stamp.width {
            stamp.bytes[gap].copy_from_slice(digits.as_bytes());
        } else {
            stamp = Self::join(&stamp.bytes[..gap.start], digits, &stamp.bytes[gap.end..]);
        }
        Bytes::from(stamp.bytes)
    }

    fn join(head: &[u8], digits: &str, tail: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(head.len() + digits.len() + tail.len());
        bytes.extend_from_slice(head);
        bytes.extend_from_slice(digits.as_bytes());
        bytes.extend_from_slice(tail);
        Self { bytes, at: head.len(), width: digits.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(draft: &str, at: usize, expected: Revision, revision: Revision, want: Option<&str>) {
        let stamp = Stamp::prepare(&Draft::new(draft.as_bytes().to_vec(), at), expected);
        let bytes = stamp.map(|stamp| stamp.finish(revision));
        assert_eq!(bytes.as_deref(), want.map(str::as_bytes), "{draft} at {at}, {expected}, {revision}");
    }

    #[test]
    fn digits_go_where_the_draft_says() {
        check("ab", 0, 7, 7, Some("7ab"));
        check("ab", 1, 7, 8, Some("a8b"));
        check("ab", 2, 7, 7, Some("ab7"));
        check("", 0, 7, 7, Some("7"));
        check("ab", 3, 7, 7, None);
    }

    #[test]
    fn a_digit_gained_between_preparing_and_the_lock() {
        check("ab", 1, 9, 10, Some("a10b"));
        check("ab", 2, 99, 100, Some("ab100"));
        check("ab", 0, 9, 10_000, Some("10000ab"));
        check("ab", 1, Revision::MAX, 2, Some("a2b"));
        check("ab", 1, 9, Revision::MAX, Some("a18446744073709551615b"));
    }
}
