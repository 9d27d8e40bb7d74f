//! Types of expressions, how they print, and whether one fits where another is asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::decl::Decl;

#[derive(Clone, Debug)]
pub(super) enum Type {
    /// Anything: decided when the rule runs.
    Dyn,
    /// What has been found wrong, so that nothing more is said of it.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    /// A type as a value.
    Meta,
    List(Rc<Type>),
    Map(Rc<Type>, Rc<Type>),
    Object(Rc<Decl>),
    Optional(Rc<Type>),
    /// A type of Kubernetes' libraries, by its name.
    Library(&'static str),
    /// What `Name{…}` makes.
    Struct(Rc<str>),
    /// A type parameter of a signature.
    Param(char),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::Text => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::Meta => f.write_str("type"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Object(decl) => f.write_str(decl.name()),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Library(name) => write!(f, "kubernetes.{name}"),
            Self::Struct(name) => f.write_str(name),
            Self::Param(name) => write!(f, "{name}"),
        }
    }
}

/// A type as results of expressions print it, which is not how errors within expressions do.
pub(super) struct Declared<'a>(pub(super) &'a Type);

impl fmt::Display for Declared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::Null => f.write_str("null_type"),
            Type::Timestamp => f.write_str("google.protobuf.Timestamp"),
            Type::Duration => f.write_str("google.protobuf.Duration"),
            Type::List(item) => write!(f, "list({})", Declared(item)),
            Type::Map(key, value) => write!(f, "map({}, {})", Declared(key), Declared(value)),
            Type::Optional(inner) => write!(f, "optional_type({})", Declared(inner)),
            other => other.fmt(f),
        }
    }
}

/// What type parameters stand for.
pub(super) type Bindings = BTreeMap<char, Type>;

impl Type {
    pub(super) fn list(item: Self) -> Self {
        Self::List(Rc::new(item))
    }

    /// Both are one type, nothing converted.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.same(b),
            (Self::Map(a, b), Self::Map(c, d)) => a.same(c) && b.same(d),
            (Self::Object(a), Self::Object(b)) => Rc::ptr_eq(a, b),
            (Self::Library(a), Self::Library(b)) => a == b,
            (Self::Struct(a), Self::Struct(b)) => a == b,
            (Self::Param(a), Self::Param(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }

    /// Whether a null may stand here.
    fn takes_null(&self) -> bool {
        matches!(
            self,
            Self::Null
                | Self::Dyn
                | Self::Object(_)
                | Self::Optional(_)
                | Self::Library(_)
                | Self::Struct(_)
                | Self::Timestamp
                | Self::Duration
        )
    }

    /// Whether a value of type `given` fits a parameter of this type.
    pub(super) fn accepts(&self, given: &Self, bindings: &mut Bindings) -> bool {
        match (self, given) {
            (Self::Param(name), given) => match bindings.get(name).cloned() {
                None => {
                    bindings.insert(*name, given.clone());
                    true
                }
                Some(bound) => match bound.join(given) {
                    Some(joined) => {
                        bindings.insert(*name, joined);
                        true
                    }
                    None => false,
                },
            },
            (Self::Dyn | Self::Error, _) | (_, Self::Dyn | Self::Error) => true,
            (wanted, Self::Null) => wanted.takes_null(),
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.accepts(b, bindings),
            (Self::Map(a, b), Self::Map(c, d)) => a.accepts(c, bindings) && b.accepts(d, bindings),
            (a, b) => a.same(b),
        }
    }

    /// The type that takes both, where one is the other but for what is `dyn` or null.
    pub(super) fn join(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Error, _) | (_, Self::Error) => Some(Self::Error),
            (Self::Dyn, _) | (_, Self::Dyn) => Some(Self::Dyn),
            (a, Self::Null) if a.takes_null() => Some(a.clone()),
            (Self::Null, b) if b.takes_null() => Some(b.clone()),
            (Self::List(a), Self::List(b)) => Some(Self::list(a.join(b)?)),
            (Self::Optional(a), Self::Optional(b)) => Some(Self::Optional(Rc::new(a.join(b)?))),
            (Self::Map(a, b), Self::Map(c, d)) => Some(Self::Map(Rc::new(a.join(c)?), Rc::new(b.join(d)?))),
            (a, b) => a.same(b).then(|| a.clone()),
        }
    }

    /// With parameters replaced; those that nothing bound are `dyn`.
    pub(super) fn bound(&self, bindings: &Bindings) -> Self {
        match self {
            Self::Param(name) => bindings.get(name).cloned().unwrap_or(Self::Dyn),
            Self::List(item) => Self::list(item.bound(bindings)),
            Self::Optional(inner) => Self::Optional(Rc::new(inner.bound(bindings))),
            Self::Map(k, v) => Self::Map(Rc::new(k.bound(bindings)), Rc::new(v.bound(bindings))),
            other => other.clone(),
        }
    }

    /// Whether nothing is known of values.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Dyn | Self::Error)
    }

    /// As the declaration of a variable keeps it: other types than CEL's own are forgotten.
    pub(super) fn kept(&self) -> Self {
        match self {
            Self::List(item) => Self::list(item.kept()),
            Self::Map(key, value) => Self::Map(Rc::new(key.kept()), Rc::new(value.kept())),
            Self::Meta
            | Self::Object(_)
            | Self::Optional(_)
            | Self::Library(_)
            | Self::Struct(_)
            | Self::Param(_)
            | Self::Error => Self::Dyn,
            plain => plain.clone(),
        }
    }

    /// Whether values have one size always.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Bool | Self::Int | Self::Uint | Self::Double | Self::Timestamp | Self::Duration => true,
            Self::Optional(inner) => inner.is_scalar(),
            _ => false,
        }
    }
}
