//! What merging needs to know of a place: [`Type`], a node of a schema or the types that stand where a schema
//! says nothing.
//!
//! Two types are deduced from the value. `Deduced` is what stands below `x-kubernetes-preserve-unknown-fields`:
//! objects merge field by field, lists are replaced. `Untyped` is replaced as a whole.

use serde_json::Value;

use crate::compile::object_meta;
use crate::node::{Kind, ListType, MapType, Node, Special};

/// The type of a place in an object.
#[derive(Clone, Copy)]
pub(crate) enum Type<'a> {
    /// A node; the flag says that a node above it preserves unknown fields, which all below it then do.
    Node(&'a Node, bool),
    /// Any value; objects merge.
    Deduced,
    /// Any value, replaced whole.
    Untyped,
}

/// A type of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Any,
}

/// A type of lists.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) items: Type<'a>,
    pub(crate) relation: Relation<'a>,
}

/// How a list's items are told apart.
#[derive(Clone, Copy)]
pub(crate) enum Relation<'a> {
    Atomic,
    Set,
    Keyed(&'a [String]),
}

/// Which of its forms a type takes for a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Map,
    Scalar,
    List,
    /// The value doesn't decide: null, or a value of a form that the type doesn't have.
    Open,
}

impl<'a> Type<'a> {
    /// The type of a whole object.
    pub(crate) fn root(node: &'a Node) -> Self {
        Self::Node(node, node.preserve)
    }

    fn child(self, node: &'a Node) -> Self {
        let open = match self {
            // ObjectMeta is a definition of its own.
            Self::Node(_, open) => open && !std::ptr::eq(node, object_meta()),
            Self::Deduced | Self::Untyped => false,
        };
        Self::Node(node, open || node.preserve)
    }

    /// The scalars that it takes.
    pub(crate) fn scalar(self) -> Option<Scalar> {
        let Self::Node(node, _) = self else { return Some(Scalar::Any) };
        match node.kind {
            Kind::Any | Kind::IntOrString => Some(Scalar::Any),
            Kind::Object | Kind::Array => None,
            Kind::Integer | Kind::Number => Some(Scalar::Numeric),
            Kind::Boolean => Some(Scalar::Boolean),
            Kind::String if node.special == Special::Quantity => Some(Scalar::Any),
            Kind::String => match node.format() {
                None | Some("" | "byte") => Some(Scalar::String),
                // Texts with a format may be written otherwise, the reference says, and lets anything pass.
                Some(_) => Some(Scalar::Any),
            },
        }
    }

    /// The lists that it takes.
    pub(crate) fn list(self) -> Option<List<'a>> {
        let node = match self {
            Self::Deduced | Self::Untyped => {
                return Some(List { items: Type::Untyped, relation: Relation::Atomic });
            }
            Self::Node(node, _) => node,
        };
        if !matches!(node.kind, Kind::Any | Kind::IntOrString | Kind::Array) {
            return None;
        }
        Some(List {
            items: node.items().map_or(Type::Untyped, |items| self.child(items)),
            relation: match node.list_type {
                ListType::Atomic => Relation::Atomic,
                ListType::Set => Relation::Set,
                ListType::Map if node.list_keys.is_empty() => Relation::Set,
                ListType::Map => Relation::Keyed(&node.list_keys),
            },
        })
    }

    /// Whether it takes objects.
    pub(crate) fn is_map(self) -> bool {
        match self {
            Self::Deduced | Self::Untyped => true,
            Self::Node(node, _) => matches!(node.kind, Kind::Any | Kind::IntOrString | Kind::Object),
        }
    }

    /// Whether objects are replaced whole.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self {
            Self::Deduced => false,
            Self::Untyped => true,
            Self::Node(node, _) => node.map_type == MapType::Atomic,
        }
    }

    /// Whether it is an object of which the schema names no field.
    pub(crate) fn is_deduced(self) -> bool {
        match self {
            Self::Deduced => true,
            Self::Untyped => false,
            Self::Node(node, _) => {
                node.properties.is_empty() && matches!(self.element(), Some(Type::Deduced))
            }
        }
    }

    /// The type of a field that the schema names.
    pub(crate) fn named(self, field: &str) -> Option<Type<'a>> {
        match self {
            Self::Node(node, _) => node.property(field).map(|n| self.child(n)),
            Self::Deduced | Self::Untyped => None,
        }
    }

    /// The type of fields that the schema doesn't name; `None` where there may be none.
    pub(crate) fn element(self) -> Option<Type<'a>> {
        let (node, open) = match self {
            Self::Deduced => return Some(Type::Deduced),
            Self::Untyped => return Some(Type::Untyped),
            Self::Node(node, open) => (node, open),
        };
        if let Some(additional) = node.additional() {
            return Some(self.child(additional));
        }
        (open || node.open || node.properties.is_empty()).then_some(Type::Deduced)
    }

    /// The type of any field.
    pub(crate) fn field(self, field: &str) -> Option<Type<'a>> {
        self.named(field).or_else(|| self.element())
    }

    /// The form that it takes for a value.
    pub(crate) fn form(self, value: &Value) -> Form {
        let fits = match value {
            Value::Null => return Form::Open,
            Value::Object(_) => self.is_map().then_some(Form::Map),
            Value::Array(_) => self.list().map(|_| Form::List),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => self.scalar().map(|_| Form::Scalar),
        };
        fits.unwrap_or(Form::Open)
    }

    /// The form in which an undecided value is looked at.
    pub(crate) fn settle(self, form: Form) -> Form {
        match form {
            Form::Open if self.is_map() => Form::Map,
            Form::Open if self.scalar().is_some() => Form::Scalar,
            Form::Open => Form::List,
            decided => decided,
        }
    }
}
