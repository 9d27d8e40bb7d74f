//! Parts that many pods share, and on which nodes the pods that share them are.
//!
//! It answers "where are pods that this rule means?" in the number of different parts and of their nodes, however
//! many pods there are. Invariant: a part has an entry while a pod in the snapshot uses it, and its nodes are those
//! of the pods that were placed, no more.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A shared part.
#[derive(Clone, Debug)]
pub struct Shared<T> {
    /// The part.
    pub part: Arc<T>,
    /// How many pods that have it each node has, by the node's slot.
    pub nodes: BTreeMap<usize, u32>,
    /// How many pods use the entry, placed or not.
    uses: usize,
}

/// All parts of one sort, by a key that says which are the same.
#[derive(Clone, Debug)]
pub struct Index<K, T> {
    ids: BTreeMap<K, usize>,
    entries: Vec<Option<(K, Shared<T>)>>,
    free: Vec<usize>,
}

impl<K, T> Default for Index<K, T> {
    fn default() -> Self {
        Self { ids: BTreeMap::new(), entries: Vec::new(), free: Vec::new() }
    }
}

impl<K: Ord + Clone, T> Index<K, T> {
    /// The part with this key; `make` makes it where there is none yet. It stays until as many [`release`]d it.
    ///
    /// [`release`]: Self::release
    pub fn acquire(&mut self, key: K, make: impl FnOnce() -> T) -> (usize, Arc<T>) {
        if let Some(id) = self.ids.get(&key)
            && let Some(Some((_, shared))) = self.entries.get_mut(*id)
        {
            shared.uses += 1;
            return (*id, shared.part.clone());
        }
        let part = Arc::new(make());
        let entry = Some((key.clone(), Shared { part: part.clone(), nodes: BTreeMap::new(), uses: 1 }));
        let id = match self.free.pop() {
            Some(id) => {
                self.entries[id] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.ids.insert(key, id);
        (id, part)
    }

    /// One user less. The key, where it was the last.
    pub fn release(&mut self, id: usize) -> Option<K> {
        let slot = self.entries.get_mut(id)?;
        let (_, shared) = slot.as_mut()?;
        shared.uses -= 1;
        if shared.uses > 0 {
            return None;
        }
        let (key, _) = slot.take()?;
        self.ids.remove(&key);
        self.free.push(id);
        Some(key)
    }

    /// A pod with this part came to a node.
    pub fn place(&mut self, id: usize, node: usize) {
        if let Some(Some((_, shared))) = self.entries.get_mut(id) {
            *shared.nodes.entry(node).or_default() += 1;
        }
    }

    /// A pod with this part left a node.
    pub fn unplace(&mut self, id: usize, node: usize) {
        if let Some(Some((_, shared))) = self.entries.get_mut(id)
            && let Some(n) = shared.nodes.get_mut(&node)
        {
            *n -= 1;
            if *n == 0 {
                shared.nodes.remove(&node);
            }
        }
    }

    /// A part, if pods on nodes have it.
    pub fn placed(&self, id: usize) -> Option<&Shared<T>> {
        self.entries.get(id)?.as_ref().map(|(_, s)| s).filter(|s| !s.nodes.is_empty())
    }

    /// All parts that pods on nodes have.
    pub fn iter(&self) -> impl Iterator<Item = &Shared<T>> {
        self.entries.iter().flatten().map(|(_, s)| s).filter(|s| !s.nodes.is_empty())
    }

    /// How many parts there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }
}
