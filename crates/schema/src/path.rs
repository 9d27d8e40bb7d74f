//! A place in an object, linked on the stack of the walk and printed only when something is wrong there.

use std::fmt;

/// A path from the root. Printing is what costs; making one is free.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// `.name`
    Field(&'a Path<'a>, &'a str),
    /// `[name]`, as the reference prints keys of maps in some errors.
    Key(&'a Path<'a>, &'a str),
    /// `[i]`
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(crate) fn key(&'a self, name: &'a str) -> Self {
        Self::Key(self, name)
    }

    pub(crate) fn index(&'a self, at: usize) -> Self {
        Self::Index(self, at)
    }

    pub(crate) fn is_root(&self) -> bool {
        matches!(self, Self::Root)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Key(parent, name) => write!(f, "{parent}[{name}]"),
            Self::Index(parent, at) => write!(f, "{parent}[{at}]"),
        }
    }
}
