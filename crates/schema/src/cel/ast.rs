//! The syntax tree of an expression. Macros are nodes of their own: they are evaluated, not expanded.

use std::collections::BTreeMap;
use std::ops::Deref;

use super::names;
use super::value::{Key, Val};

/// An expression with the byte where errors about it point: its operator, the parenthesis of a call.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) at: usize,
    pub(super) kind: Kind,
    height: usize,
}

/// Levels of a tree: what evaluation may recurse.
const MAX_HEIGHT: usize = 200;

impl Expr {
    /// A node; the error says that the tree is too high.
    pub(super) fn new(at: usize, kind: Kind) -> Result<Self, (usize, String)> {
        let height = 1 + kind.children().into_iter().map(|e| e.height).max().unwrap_or(0);
        if height > MAX_HEIGHT {
            return Err((at, "expression recursion limit exceeded".to_owned()));
        }
        Ok(Self { at, kind, height })
    }

    /// Levels of the tree.
    pub(super) fn height(&self) -> usize {
        self.height
    }

    /// This expression and all below it.
    pub(super) fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        visit(self);
        for child in self.kind.children() {
            child.walk(visit);
        }
    }
}

impl Kind {
    fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Ident(_) => Vec::new(),
            Self::Select { operand, .. } | Self::Has { operand, .. } => vec![operand],
            Self::Index { operand, index, .. } => vec![operand, index],
            Self::Call { target, args, .. } => target.iter().map(|t| &**t).chain(args).collect(),
            Self::List(items) => items.iter().map(|(e, _)| e).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(k, v, _)| [k, v]).collect(),
            Self::Struct { fields, .. } => fields.iter().map(|f| &f.value).collect(),
            Self::Not(e) | Self::Negate(e) => vec![e],
            Self::Binary(_, a, b) => vec![a, b],
            Self::Cond(a, b, c) => vec![a, b, c],
            Self::Loop(l) => {
                [Some(&l.range), l.filter.as_ref(), Some(&l.body)].into_iter().flatten().collect()
            }
        }
    }
}

#[derive(Debug)]
pub(super) enum Kind {
    Literal(Val),
    Ident(Box<str>),
    /// `operand.field`, or `operand.?field`.
    Select {
        operand: Box<Expr>,
        field: Name,
        optional: bool,
    },
    /// `has(operand.field)`.
    Has {
        operand: Box<Expr>,
        field: Name,
    },
    /// `operand[index]`, or `operand[?index]`.
    Index {
        operand: Box<Expr>,
        index: Box<Expr>,
        optional: bool,
    },
    /// `target.function(args)` or `function(args)`; functions of a namespace (`sets.contains`) have no target.
    Call {
        target: Option<Box<Expr>>,
        function: Box<str>,
        args: Vec<Expr>,
    },
    /// Elements; those marked are optional (`[?x]`).
    List(Vec<(Expr, bool)>),
    /// Keys and values; those marked are optional (`{?k: v}`).
    Map(Vec<(Expr, Expr, bool)>),
    /// `Name{field: value}`.
    Struct {
        name: Box<str>,
        fields: Vec<Field>,
    },
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    Loop(Box<Loop>),
}

/// The name of a field, ready to look it up.
#[derive(Debug)]
pub(super) struct Name {
    text: Box<str>,
    key: Key,
    /// As declarations have it, where that differs.
    escaped: Option<Key>,
}

impl Name {
    /// A field, by its name as it is or as rules write it.
    pub(super) fn find<'a>(&self, map: &'a BTreeMap<Key, Val>) -> Option<&'a Val> {
        map.get(&self.key).or_else(|| map.get(self.escaped.as_ref()?))
    }
}

impl From<Box<str>> for Name {
    fn from(text: Box<str>) -> Self {
        let key = |s: &str| Key::String(s.into());
        let escaped = names::escape(&text);
        Self { key: key(&text), escaped: (*escaped != *text).then(|| key(&escaped)), text }
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// A field of a [`Kind::Struct`].
#[derive(Debug)]
pub(super) struct Field {
    /// Where its colon is.
    pub(super) at: usize,
    pub(super) name: Box<str>,
    pub(super) value: Expr,
    /// `?name: value`.
    pub(super) optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    And,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A macro over the elements of `range`.
#[derive(Debug)]
pub(super) struct Loop {
    pub(super) which: Which,
    pub(super) range: Expr,
    /// The element; in a macro of two variables the index or key.
    pub(super) first: Box<str>,
    /// The value, in a macro of two variables.
    pub(super) second: Option<Box<str>>,
    /// Elements for which this is false are left out.
    pub(super) filter: Option<Expr>,
    pub(super) body: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
    SortBy,
    OptMap,
    OptFlatMap,
}

impl Which {
    /// The macro of this name with so many arguments.
    pub(super) fn named(name: &str, args: usize) -> Option<Self> {
        Some(match (name, args) {
            ("all", 2 | 3) => Self::All,
            ("exists", 2 | 3) => Self::Exists,
            ("exists_one", 2) | ("existsOne", 2 | 3) => Self::ExistsOne,
            ("map", 2 | 3) => Self::Map,
            ("filter", 2) => Self::Filter,
            ("transformList", 3 | 4) => Self::TransformList,
            ("transformMap", 3 | 4) => Self::TransformMap,
            ("transformMapEntry", 3 | 4) => Self::TransformMapEntry,
            ("sortBy", 2) => Self::SortBy,
            ("optMap", 2) => Self::OptMap,
            ("optFlatMap", 2) => Self::OptFlatMap,
            _ => return None,
        })
    }
}
