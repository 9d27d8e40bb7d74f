//! Which member a key belongs to: rendezvous hashing, a form of consistent hashing.
//!
//! A key belongs to the member for which the hash of both is highest. When a member comes or goes, only the keys that
//! it gains or had move. Pure, and the same in every process: the hash is FNV-1a with a final mix, no hash of the
//! standard library's, which may change.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::key::Key;

/// The members that share the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ring(BTreeSet<Arc<str>>);

impl Ring {
    pub(crate) fn new(members: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(members.into_iter().collect())
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter()
    }

    /// Whom a key belongs to; `None` where there is nobody.
    pub(crate) fn owner(&self, key: &Key) -> Option<&str> {
        let score = |member: &str| {
            let parts = [key.namespace().unwrap_or_default(), key.name(), member];
            mix(parts.iter().fold(OFFSET, |hash, part| fnv(fnv(hash, part.as_bytes()), &[0])))
        };
        self.0.iter().map(|m| &**m).max_by_key(|m| (score(m), *m))
    }

    /// A name for exactly these members.
    pub(crate) fn id(&self) -> String {
        let hash = self.0.iter().fold(OFFSET, |hash, m| fnv(fnv(hash, m.as_bytes()), &[0]));
        format!("{}-{:016x}", self.0.len(), mix(hash))
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The finalizer of SplitMix64: names that differ in one character land far apart.
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(members: &[&str]) -> Ring {
        Ring::new(members.iter().map(|m| Arc::from(*m)))
    }

    fn keys() -> Vec<Key> {
        (0..9_000).map(|i| Key::namespaced(format!("ns-{}", i % 7), format!("object-{i}"))).collect()
    }

    #[test]
    fn keys_are_shared_about_evenly_and_only_move_to_who_comes() {
        let (two, three) = (ring(&["op-a", "op-b"]), ring(&["op-a", "op-b", "op-c"]));
        let mut of_c = 0;
        for key in keys() {
            let (before, after) = (two.owner(&key).unwrap(), three.owner(&key).unwrap());
            assert!(after == before || after == "op-c", "{key}");
            of_c += usize::from(after == "op-c");
        }
        assert!((2_700..3_300).contains(&of_c), "{of_c}");
    }

    #[test]
    fn nobody_owns_anything_in_an_empty_ring() {
        assert_eq!(ring(&[]).owner(&Key::cluster("a")), None);
        assert_eq!(ring(&["x"]).owner(&Key::cluster("a")), Some("x"));
        assert_ne!(ring(&["x"]).id(), ring(&["y"]).id());
        assert_eq!(ring(&["x", "y"]).id(), ring(&["y", "x"]).id());
    }
}
