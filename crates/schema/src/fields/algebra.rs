//! Union, intersection and differences of sets; each walks both trees once.
//!
//! "Difference" tells a field from its children: taking `.spec` away leaves `.spec.replicas`. The recursive one
//! takes what is below along.

use std::cmp::Ordering;

use super::{Entry, FieldSet};

impl FieldSet {
    /// Paths in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        zip(&self.entries, &other.entries, |a, b| match (a, b) {
            (Some(a), Some(b)) => out.push(Entry {
                element: a.element.clone(),
                member: a.member || b.member,
                children: match (a.children.is_empty(), b.children.is_empty()) {
                    (true, _) => b.children.clone(),
                    (_, true) => a.children.clone(),
                    _ => a.children.union(&b.children),
                },
            }),
            (Some(one), None) | (None, Some(one)) => out.push(one.clone()),
            (None, None) => {}
        });
        Self { entries: out }
    }

    /// Paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Self::new();
        zip(&self.entries, &other.entries, |a, b| {
            if let (Some(a), Some(b)) = (a, b) {
                out.push(a.element.clone(), a.member && b.member, a.children.intersection(&b.children));
            }
        });
        out
    }

    /// Paths in this set that aren't in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut out = Self::new();
        zip(&self.entries, &other.entries, |a, b| match (a, b) {
            (Some(a), Some(b)) => {
                out.push(a.element.clone(), a.member && !b.member, a.children.difference(&b.children));
            }
            (Some(a), None) => out.entries.push(a.clone()),
            (None, _) => {}
        });
        out
    }

    /// Paths in this set that neither are in the other nor lie below one that is.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut out = Self::new();
        zip(&self.entries, &other.entries, |a, b| match (a, b) {
            (Some(a), Some(b)) if !b.member => {
                out.push(a.element.clone(), a.member, a.children.recursive_difference(&b.children));
            }
            (Some(a), None) => out.entries.push(a.clone()),
            _ => {}
        });
        out
    }

    /// [`FieldSet::difference`] in place, for a small `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.take_away(other, false);
    }

    /// [`FieldSet::recursive_difference`] in place, for a small `other`.
    pub(crate) fn subtract_recursive(&mut self, other: &Self) {
        self.take_away(other, true);
    }

    fn take_away(&mut self, other: &Self, recursive: bool) {
        for gone in &other.entries {
            let Ok(at) = self.entries.binary_search_by(|e| e.element.cmp(&gone.element)) else { continue };
            let entry = &mut self.entries[at];
            if gone.member {
                entry.member = false;
                if recursive {
                    entry.children = Self::new();
                }
            }
            entry.children.take_away(&gone.children, recursive);
            if !entry.member && entry.children.is_empty() {
                self.entries.remove(at);
            }
        }
    }

    /// Whether every path of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut all = true;
        zip(&self.entries, &other.entries, |a, b| match (a, b) {
            (Some(a), Some(b)) => {
                all = all && (!a.member || b.member) && a.children.is_subset(&b.children);
            }
            (Some(_), None) => all = false,
            (None, _) => {}
        });
        all
    }

    /// Whether some path is in both sets.
    pub fn intersects(&self, other: &Self) -> bool {
        let mut any = false;
        zip(&self.entries, &other.entries, |a, b| {
            if let (Some(a), Some(b)) = (a, b) {
                any = any || (a.member && b.member) || a.children.intersects(&b.children);
            }
        });
        any
    }
}

/// Visits the elements of two sorted lists in order, pairing equal ones.
fn zip<'a>(a: &'a [Entry], b: &'a [Entry], mut f: impl FnMut(Option<&'a Entry>, Option<&'a Entry>)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        match a[i].element.cmp(&b[j].element) {
            Ordering::Less => {
                f(Some(&a[i]), None);
                i += 1;
            }
            Ordering::Greater => {
                f(None, Some(&b[j]));
                j += 1;
            }
            Ordering::Equal => {
                f(Some(&a[i]), Some(&b[j]));
                i += 1;
                j += 1;
            }
        }
    }
    for rest in &a[i..] {
        f(Some(rest), None);
    }
    for rest in &b[j..] {
        f(None, Some(rest));
    }
}

#[cfg(test)]
mod tests {
    use crate::fields::FieldSet;

    #[test]
    fn taking_away_in_place_is_the_difference() {
        let paths = ["a", "a.b", "a.b.c", "a.d", "b.c", "c", "c.d.e"];
        let all = FieldSet::of(&paths);
        // Every subset of the paths.
        for bits in 0..1_u32 << paths.len() {
            let some: Vec<&str> =
                (0..paths.len()).filter(|i| bits & (1 << i) != 0).map(|i| paths[i]).collect();
            let some = FieldSet::of(&some);
            let (mut plain, mut recursive) = (all.clone(), all.clone());
            plain.subtract(&some);
            recursive.subtract_recursive(&some);
            assert_eq!(plain, all.difference(&some));
            assert_eq!(recursive, all.recursive_difference(&some));
        }
    }
}
