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
