//! Sets of fields, as `metadata.managedFields[].fieldsV1` holds them: who owns what of an object.
//!
//! A [`FieldSet`] knows paths and no values and no schema; merging and ownership are `typed` and `managed`.
//! Invariant: entries are sorted and unique, and every entry is a member or has members below it, so that equal
//! sets are equal structures.

mod algebra;
mod element;
mod json;

pub(crate) use element::equal_values;
pub use element::{Key, Path, PathElement};
pub use json::FieldsError;

/// A set of paths, kept as a tree.
///
/// A path and its children are independent members: `.spec` may be in the set without `.spec.replicas`, and the
/// other way round. In JSON a member that also has children is marked with `".": {}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(crate) entries: Vec<Entry>,
}

/// One element with what is below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) element: PathElement,
    /// Whether the path that ends here is in the set.
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// A set of plain fields, each a path of names joined by dots (`metadata.labels`); for sets known at compile
    /// time, such as the fields that a subresource must not touch.
    pub fn of(paths: &[&str]) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Vec<PathElement> = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of paths in the set.
    pub fn len(&self) -> usize {
        self.entries.iter().map(|e| usize::from(e.member) + e.children.len()).sum()
    }

    /// Adds a path. The root (an empty path) can't be owned and is ignored; parents are not added.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let entry = self.entry(first);
        if rest.is_empty() {
            entry.member = true;
        } else {
            entry.children.insert(rest);
        }
    }

    /// Whether exactly this path is in the set.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.find(last).is_some_and(|e| e.member),
            [first, rest @ ..] => self.find(first).is_some_and(|e| e.children.has(rest)),
        }
    }

    /// What is below an element.
    pub fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.find(element).map(|e| &e.children).filter(|c| !c.is_empty())
    }

    /// Whether the element itself is in the set.
    pub fn has_element(&self, element: &PathElement) -> bool {
        self.find(element).is_some_and(|e| e.member)
    }

    /// Visits every path: at each level the members first, then what is below the elements. Conflicts are listed
    /// in this order.
    pub fn visit(&self, f: &mut dyn FnMut(&[PathElement])) {
        fn walk(set: &FieldSet, path: &mut Vec<PathElement>, f: &mut dyn FnMut(&[PathElement])) {
            for entry in set.entries.iter().filter(|e| e.member) {
                path.push(entry.element.clone());
                f(path);
                path.pop();
            }
            for entry in set.entries.iter().filter(|e| !e.children.is_empty()) {
                path.push(entry.element.clone());
                walk(&entry.children, path, f);
                path.pop();
            }
        }
        walk(self, &mut Vec::new(), f);
    }

    /// All paths, in the order of [`FieldSet::visit`].
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.visit(&mut |path| out.push(Path(path.to_vec())));
        out
    }

    /// The paths that have nothing below them in the set.
    pub fn leaves(&self) -> Self {
        let mut out = Self::new();
        for e in &self.entries {
            out.push(e.element.clone(), e.member && e.children.is_empty(), e.children.leaves());
        }
        out
    }

    fn find(&self, element: &PathElement) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|e| e.element.cmp(element)).ok()?;
        Some(&self.entries[at])
    }

    /// The entry of an element, made if it is absent. The caller makes it a member or gives it children.
    pub(crate) fn entry(&mut self, element: &PathElement) -> &mut Entry {
        let at = match self.entries.last().map(|e| e.element.cmp(element)) {
            None | Some(std::cmp::Ordering::Less) => Err(self.entries.len()),
            Some(std::cmp::Ordering::Equal) => Ok(self.entries.len() - 1),
            Some(std::cmp::Ordering::Greater) => self.entries.binary_search_by(|e| e.element.cmp(element)),
        };
        let at = match at {
            Ok(at) => at,
            Err(at) => {
                let entry = Entry { element: element.clone(), member: false, children: Self::new() };
                self.entries.insert(at, entry);
                at
            }
        };
        &mut self.entries[at]
    }

    /// Appends an entry that sorts after all others, unless it would be empty.
    pub(crate) fn push(&mut self, element: PathElement, member: bool, children: FieldSet) {
        if member || !children.is_empty() {
            self.entries.push(Entry { element, member, children });
        }
    }

    /// Adds an entry in its place, unless it would be empty; merges with one that is there.
    pub(crate) fn add(&mut self, element: PathElement, member: bool, children: FieldSet) {
        if !member && children.is_empty() {
            return;
        }
        let entry = self.entry(&element);
        entry.member |= member;
        if entry.children.is_empty() {
            entry.children = children;
        } else if !children.is_empty() {
            entry.children = entry.children.union(&children);
        }
    }
}

impl std::fmt::Display for FieldSet {
    /// One path a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Ok(());
        let mut first = true;
        self.visit(&mut |path| {
            if out.is_ok() {
                let line = Path(path.to_vec());
                out = if first { write!(f, "{line}") } else { write!(f, "\n{line}") };
                first = false;
            }
        });
        out
    }
}

impl<'a> FromIterator<&'a [PathElement]> for FieldSet {
    fn from_iter<T: IntoIterator<Item = &'a [PathElement]>>(paths: T) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path);
        }
        set
    }
}
