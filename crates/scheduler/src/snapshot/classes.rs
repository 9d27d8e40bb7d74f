//! Classes of pods, found by what a selector demands of them.
//!
//! Most selectors demand a value of a label (`matchLabels`); then only the classes that have it are looked at, which is
//! what keeps a cycle independent of how many workloads there are. It only narrows: whoever asks still matches.
//! Invariant: a class is under each of its labels while a pod uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use homeostat_model::selector::{Labels, Operator};

use super::pod::Class;
use super::shared::{Index, Shared};

/// A namespace, and a label with its value.
type Label = (Arc<str>, String, String);

#[derive(Debug, Default)]
pub(super) struct Classes {
    pub(super) index: Index<Class, Class>,
    by_label: BTreeMap<Label, BTreeSet<usize>>,
}

fn labels(class: &Class) -> impl Iterator<Item = Label> + '_ {
    class.labels.iter().map(|(k, v)| (class.namespace.clone(), k.clone(), v.clone()))
}

impl Classes {
    pub(super) fn acquire(&mut self, class: Class) -> (usize, Arc<Class>) {
        let mut new = false;
        let (id, part) = self.index.acquire(class.clone(), || {
            new = true;
            class
        });
        if new {
            for label in labels(&part) {
                self.by_label.entry(label).or_default().insert(id);
            }
        }
        (id, part)
    }

    pub(super) fn release(&mut self, id: usize) {
        let Some(class) = self.index.release(id) else { return };
        for label in labels(&class) {
            if let Some(ids) = self.by_label.get_mut(&label) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.by_label.remove(&label);
                }
            }
        }
    }

    /// The classes of pods on nodes among which those of a namespace are that all selectors select.
    pub(super) fn candidates(&self, namespace: &str, selectors: &[Labels]) -> Vec<&Shared<Class>> {
        let namespace: Arc<str> = namespace.into();
        let demands = selectors.iter().flat_map(Labels::requirements).filter_map(|r| {
            let exact = matches!(r.operator(), Operator::In | Operator::Equals | Operator::DoubleEquals);
            match r.values() {
                [value] if exact => Some((namespace.clone(), r.key().to_owned(), value.clone())),
                _ => None,
            }
        });
        let none = BTreeSet::new();
        let fewest = demands.map(|d| self.by_label.get(&d).unwrap_or(&none)).min_by_key(|ids| ids.len());
        match fewest {
            Some(ids) => ids.iter().filter_map(|id| self.index.placed(*id)).collect(),
            None => self.index.iter().collect(),
        }
    }
}
