//! A map that remembers what was used lately and forgets the rest, in constant time for each use.
//!
//! Two generations: what is used is young; when the young are too many, they are the old ones, and the old ones before
//! them are forgotten. So it holds at least the last `KEPT` that were used, and at most twice as many.
//! It is never iterated, and its hash is without chance: nothing that anybody sees comes from the order of its inside.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};

/// Entries of a generation, as many as client-go's caches for events have.
const KEPT: usize = 4096;

/// Keys are several texts each: to compare them along a tree took a fiftieth of the time of a busy cluster.
type Generation<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

pub(crate) struct Recent<K, V> {
    young: Generation<K, V>,
    old: Generation<K, V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { young: Generation::default(), old: Generation::default() }
    }
}

impl<K: Eq + Hash + Clone, V> Recent<K, V> {
    /// The value of a key, which counts as a use.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if let Some(value) = self.old.remove(key) {
            self.insert(key.clone(), value);
        }
        self.young.get_mut(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut recent = Recent::default();
        recent.insert(0, "used");
        recent.insert(1, "unused");
        for key in 2..5 * KEPT {
            recent.insert(key, "new");
            assert!(recent.get_mut(&0).is_some(), "{key}");
            assert!(recent.young.len() + recent.old.len() <= 2 * KEPT);
        }
        assert!(recent.get_mut(&1).is_none());
        assert!(recent.get_mut(&(5 * KEPT - 1)).is_some());
    }
}
