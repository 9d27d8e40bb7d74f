//! Values of the Common Expression Language, with those of Kubernetes' libraries.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use homeostat_model::Timestamp;
use homeostat_model::quantity::Quantity;

use super::authorizer::Authz;
use super::types::{Cidr, Named, Semver, Url};

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Val {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    List(Arc<List>),
    Map(Arc<BTreeMap<Key, Val>>),
    Optional(Option<Arc<Val>>),
    Type(&'static str),
    /// The flag: written without fraction, so that Go takes it for an integer (`4000m` is none).
    Quantity(Arc<Quantity>, bool),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Arc<Url>),
    Semver(Arc<Semver>),
    Format(Named),
    Struct(Arc<Struct>),
    Authz(Arc<Authz>),
}

/// What `Name{…}` makes.
#[derive(Debug)]
pub(super) struct Struct {
    pub(super) name: Arc<str>,
    pub(super) fields: BTreeMap<Arc<str>, Val>,
}

/// A list, and how its equality goes.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) items: Vec<Val>,
    pub(super) kind: ListKind,
}

/// Lists of type set and map compare without regard to order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum ListKind {
    #[default]
    Plain,
    Set,
    Map(Arc<[String]>),
}

/// A key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    /// Integers of either kind that are equal are one key.
    Int(i128),
    String(Arc<str>),
}

impl Key {
    pub(super) fn of(value: &Val) -> Option<Self> {
        Some(match value {
            Val::Bool(b) => Self::Bool(*b),
            Val::Int(n) => Self::Int((*n).into()),
            Val::Uint(n) => Self::Int((*n).into()),
            Val::Double(v) if v.fract() == 0.0 && v.abs() < 1e18 => Self::Int(*v as i128),
            Val::String(s) => Self::String(s.clone()),
            _ => return None,
        })
    }

    pub(super) fn value(&self) -> Val {
        match self {
            Self::Bool(b) => Val::Bool(*b),
            Self::Int(n) => i64::try_from(*n).map_or_else(|_| Val::Uint(*n as u64), Val::Int),
            Self::String(s) => Val::String(s.clone()),
        }
    }
}

impl Val {
    pub(super) fn text(s: impl AsRef<str>) -> Self {
        Self::String(Arc::from(s.as_ref()))
    }

    pub(super) fn list(items: Vec<Val>) -> Self {
        Self::List(Arc::new(List { items, kind: ListKind::Plain }))
    }

    pub(super) fn some(value: Val) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    pub(super) const NONE: Val = Val::Optional(None);

    pub(super) fn authz(value: Authz) -> Self {
        Self::Authz(Arc::new(value))
    }

    /// The variable `authorizer`.
    pub(super) fn authorizer() -> Self {
        Self::authz(Authz::Authorizer(None))
    }

    /// The type's name, as `type()` and errors have it.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Quantity(..) => "kubernetes.Quantity",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Struct(_) => "object",
            Self::Authz(a) => a.type_name(),
        }
    }

    /// Whether `optional.ofNonZeroValue` takes it for nothing.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(b) => !b,
            Self::Int(n) => *n == 0,
            Self::Uint(n) => *n == 0,
            Self::Double(v) => *v == 0.0,
            Self::String(s) => s.is_empty(),
            Self::Bytes(b) => b.is_empty(),
            Self::Duration(n) => *n == 0,
            Self::List(l) => l.items.is_empty(),
            Self::Map(m) => m.is_empty(),
            Self::Struct(s) => s.fields.is_empty(),
            Self::Optional(o) => o.is_none(),
            Self::Timestamp(t) => *t == Timestamp::UNIX_EPOCH,
            _ => false,
        }
    }

    /// CEL's equality: numbers compare by value across kinds, other kinds are never equal to each other.
    pub(super) fn equals(&self, other: &Val) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::List(a), Self::List(b)) => a.equals(b),
            (Self::Map(a), Self::Map(b)) => {
                a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| v.equals(w)))
            }
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.equals(b),
                _ => false,
            },
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Quantity(a, _), Self::Quantity(b, _)) => a.cmp(b) == Ordering::Equal,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a == b,
            (Self::Format(a), Self::Format(b)) => a == b,
            (Self::Struct(a), Self::Struct(b)) => {
                a.name == b.name
                    && a.fields.len() == b.fields.len()
                    && a.fields.iter().all(|(k, v)| b.fields.get(k).is_some_and(|w| v.equals(w)))
            }
            (Self::Authz(a), Self::Authz(b)) => a == b,
            _ => self.numeric(other) == Some(Ordering::Equal),
        }
    }

    /// Order of numbers of any kind; `None` for others and NaN.
    pub(super) fn numeric(&self, other: &Val) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Uint(a), Self::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), Self::Int(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Double(a), Self::Uint(b)) => a.partial_cmp(&(*b as f64)),
            (Self::Int(a), Self::Double(b)) => (*a as f64).partial_cmp(b),
            (Self::Uint(a), Self::Double(b)) => (*a as f64).partial_cmp(b),
            _ => None,
        }
    }

    /// Order of values that have one.
    pub(super) fn compare(&self, other: &Val) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Quantity(a, _), Self::Quantity(b, _)) => Some(a.cmp(b)),
            _ => self.numeric(other),
        }
    }

    /// What comparing or copying the value costs, roughly its size in units of ten bytes.
    pub(super) fn size_cost(&self) -> u64 {
        match self {
            Self::String(s) => 1 + s.len() as u64 / 10,
            Self::Bytes(b) => 1 + b.len() as u64 / 10,
            Self::List(l) => 1 + l.items.iter().map(Val::size_cost).sum::<u64>(),
            Self::Map(m) => 1 + m.values().map(|v| 1 + v.size_cost()).sum::<u64>(),
            Self::Struct(s) => 1 + s.fields.values().map(|v| 1 + v.size_cost()).sum::<u64>(),
            Self::Optional(Some(v)) => v.size_cost(),
            _ => 1,
        }
    }
}

impl PartialEq for Val {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl List {
    fn equals(&self, other: &List) -> bool {
        if self.items.len() != other.items.len() {
            return false;
        }
        let within = |a: &Val, b: &List| b.items.iter().any(|x| a.equals(x));
        match &self.kind {
            ListKind::Plain => self.items.iter().zip(&other.items).all(|(a, b)| a.equals(b)),
            ListKind::Set => self.items.iter().all(|a| within(a, other)),
            ListKind::Map(keys) => self
                .items
                .iter()
                .all(|a| other.items.iter().find(|b| same_keys(keys, a, b)).is_some_and(|b| a.equals(b))),
        }
    }
}

/// Whether two objects of a list map have the same keys.
pub(super) fn same_keys(keys: &[String], a: &Val, b: &Val) -> bool {
    let (Val::Map(a), Val::Map(b)) = (a, b) else { return false };
    keys.iter().all(|k| {
        let key = Key::String(Arc::from(&*super::names::escape(k)));
        match (a.get(&key), b.get(&key)) {
            (Some(a), Some(b)) => a.equals(b),
            (None, None) => true,
            _ => false,
        }
    })
}
