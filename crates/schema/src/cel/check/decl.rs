//! The type that a schema declares for its values, with the sizes that they can reach at most.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::types::Type;
use crate::cel::names;
use crate::node::{Kind, Node, Special};
use crate::schema::Schema;

/// Bytes of the largest request; everything in it is at most that long.
const MAX_REQUEST: u64 = 3 * 1024 * 1024;
/// Levels of a schema; deeper ones are refused before.
const MAX_DEPTH: usize = 160;

/// A declared type.
#[derive(Clone, Debug)]
pub struct Declared(pub(super) Rc<Decl>);

#[derive(Debug)]
pub(super) struct Decl {
    /// The most elements, characters or bytes.
    pub(super) max: u64,
    /// The fewest bytes in JSON.
    min: u64,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Simple(Type),
    List(Rc<Decl>),
    Map(Rc<Decl>),
    /// Fields by the name they have in CEL, and the name of the type.
    Object(Rc<str>, BTreeMap<String, Rc<Decl>>),
}

/// The name of types that have none.
const UNNAMED: &str = "object";

impl Declared {
    /// The declared type of a structural schema; `resource` for roots and embedded resources. `None` where the
    /// schema doesn't say enough.
    pub fn of(schema: &Map<String, Value>, resource: bool) -> Option<Self> {
        declare(schema, resource, 0).map(|d| Self(Rc::new(d)))
    }

    /// How often a value of this type fits into one request.
    pub fn cardinality(&self) -> u64 {
        MAX_REQUEST / (self.0.min + 1)
    }
}

pub(super) fn simple(ty: Type, max: u64, min: u64) -> Decl {
    Decl { max, min, shape: Shape::Simple(ty) }
}

fn declare(s: &Map<String, Value>, resource: bool, depth: usize) -> Option<Decl> {
    if depth > MAX_DEPTH {
        return None;
    }
    let text = |key: &str| s.get(key).and_then(Value::as_str).unwrap_or_default();
    let limit = |key: &str| s.get(key).and_then(Value::as_i64).map(|n| n.max(0) as u64);
    let object = |key: &str| s.get(key).and_then(Value::as_object);
    let inner = |s: &Map<String, Value>| {
        declare(s, s.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)), depth + 1)
    };
    if s.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Some(simple(Type::Dyn, MAX_REQUEST - 2, 1));
    }
    match text("type") {
        "array" => {
            let item = inner(object("items")?)?;
            let max = limit("maxItems").unwrap_or((MAX_REQUEST - 2) / (item.min + 1));
            Some(Decl { max, min: 2, shape: Shape::List(Rc::new(item)) })
        }
        "object" => {
            if let Some(additional) = object("additionalProperties") {
                let value = inner(additional)?;
                let max = limit("maxProperties").unwrap_or((MAX_REQUEST - 2) / (value.min + 6));
                return Some(Decl { max, min: 2, shape: Shape::Map(Rc::new(value)) });
            }
            let required: Vec<&str> = s
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let (mut fields, mut min) = (BTreeMap::new(), 2);
            let properties = object("properties").into_iter().flatten();
            for (name, property) in properties.filter_map(|(k, v)| Some((k, v.as_object()?))) {
                if resource && name == "metadata" {
                    continue;
                }
                let Some(field) = inner(property) else { continue };
                if required.contains(&name.as_str()) && property.get("default").is_none_or(Value::is_null) {
                    min += name.len() as u64 + field.min + 4;
                }
                if names::has_escape(name) {
                    fields.insert(names::escape(name).into_owned(), Rc::new(field));
                }
            }
            if resource {
                add_resource_fields(s, &mut fields, depth);
            }
            Some(Decl { max: 0, min, shape: Shape::Object(UNNAMED.into(), fields) })
        }
        "string" => Some(string(s, text("format"), limit("maxLength"))),
        "boolean" => Some(simple(Type::Bool, 0, 4)),
        "number" => Some(simple(Type::Double, 0, 1)),
        "integer" => Some(simple(Type::Int, 0, 1)),
        _ => None,
    }
}

fn string(s: &Map<String, Value>, format: &str, limit: Option<u64>) -> Decl {
    match format {
        "byte" => simple(Type::Bytes, limit.unwrap_or(MAX_REQUEST - 2), 2),
        "duration" => simple(Type::Duration, 32, 3),
        "date" => simple(Type::Timestamp, 12, 12),
        "date-time" => simple(Type::Timestamp, 32, 21),
        _ => {
            let longest = |values: &Vec<Value>| {
                values.iter().filter_map(Value::as_str).map(|v| v.len() as u64).max().unwrap_or(0)
            };
            let values = s.get("enum").and_then(Value::as_array).filter(|v| !v.is_empty());
            // A character has up to four bytes.
            let max = limit.map(|n| n.saturating_mul(4)).or(values.map(longest)).unwrap_or(MAX_REQUEST - 2);
            simple(Type::Text, max, 2)
        }
    }
}

/// `apiVersion`, `kind` and the names in `metadata` can always be read; nothing else of the metadata can.
fn add_resource_fields(s: &Map<String, Value>, fields: &mut BTreeMap<String, Rc<Decl>>, depth: usize) {
    let text = || Rc::new(simple(Type::Text, MAX_REQUEST - 2, 2));
    let named = s.get("properties").and_then(|p| p.get("metadata")).and_then(|m| m.get("properties"));
    let mut metadata = BTreeMap::new();
    for name in ["name", "generateName"] {
        let given = named.and_then(|n| n.get(name)).and_then(Value::as_object);
        let field = given.and_then(|g| declare(g, false, depth + 1)).map(Rc::new);
        metadata.insert(name.to_owned(), field.unwrap_or_else(text));
    }
    let shape = Shape::Object(UNNAMED.into(), metadata);
    fields.insert("metadata".to_owned(), Rc::new(Decl { max: 0, min: 2, shape }));
    for name in ["apiVersion", "kind"] {
        fields.entry(name.to_owned()).or_insert_with(text);
    }
}

impl Decl {
    /// The type in expressions.
    pub(super) fn ty(self: &Rc<Self>) -> Type {
        match &self.shape {
            Shape::Simple(ty) => ty.clone(),
            Shape::List(item) => Type::List(Rc::new(item.ty())),
            Shape::Map(value) => Type::Map(Rc::new(Type::Text), Rc::new(value.ty())),
            Shape::Object(..) => Type::Object(self.clone()),
        }
    }

    /// The type's name, of objects.
    pub(super) fn name(&self) -> &str {
        match &self.shape {
            Shape::Object(name, _) => name,
            _ => UNNAMED,
        }
    }
}

/// An object of these fields.
pub(super) fn object<'a>(name: &str, fields: impl IntoIterator<Item = (&'a str, Decl)>) -> Decl {
    let fields = fields.into_iter().map(|(name, decl)| (name.to_owned(), Rc::new(decl))).collect();
    Decl { max: MAX_REQUEST, min: 2, shape: Shape::Object(name.into(), fields) }
}

/// A list of these.
pub(super) fn list(item: Decl) -> Decl {
    Decl { max: MAX_REQUEST, min: 2, shape: Shape::List(Rc::new(item)) }
}

/// A map from texts to these.
pub(super) fn map(value: Decl) -> Decl {
    Decl { max: MAX_REQUEST, min: 2, shape: Shape::Map(Rc::new(value)) }
}

/// A value of which only the type is known.
pub(super) fn plain(ty: Type) -> Decl {
    simple(ty, MAX_REQUEST, 0)
}

/// The declared type of whole objects under a schema, with all that is published of it, `name` the root's.
pub(super) fn published(schema: &Schema, name: &str) -> Option<Decl> {
    let mut above = Vec::new();
    publish(schema.root(), name, &mut above)
}

fn publish<'a>(node: &'a Node, name: &str, above: &mut Vec<&'a Node>) -> Option<Decl> {
    // What contains itself is an object of no fields there, as the reference resolves it.
    let again = |n: &&&Node| std::ptr::eq(**n, node) || (n.go.is_some() && n.go == node.go);
    if above.len() > MAX_DEPTH || above.iter().find(again).is_some() {
        return Some(object(name, []));
    }
    match node.special() {
        // Its OpenAPI is a choice of types, and no type.
        Special::Quantity | Special::Json => return None,
        Special::Time | Special::MicroTime => return Some(plain(Type::Timestamp)),
        Special::Raw | Special::FieldsV1 => return Some(object(name, [])),
        Special::Duration | Special::None => {}
    }
    above.push(node);
    let decl = match node.kind() {
        Kind::Any => None,
        Kind::IntOrString => Some(plain(Type::Dyn)),
        Kind::Boolean => Some(plain(Type::Bool)),
        Kind::Number => Some(plain(Type::Double)),
        Kind::Integer => Some(plain(Type::Int)),
        Kind::String => Some(plain(match node.format().unwrap_or_default() {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            "int-or-string" => Type::Dyn,
            _ => Type::Text,
        })),
        Kind::Array => node.items().and_then(|i| publish(i, &format!("{name}.@idx"), above)).map(list),
        Kind::Object => match node.additional() {
            Some(value) => publish(value, &format!("{name}.@elem"), above).map(map),
            None => {
                let mut fields = BTreeMap::new();
                for (field, child) in node.properties().filter(|(f, _)| names::has_escape(f)) {
                    if let Some(decl) = publish(child, &format!("{name}.{field}"), above) {
                        fields.insert(names::escape(field).into_owned(), Rc::new(decl));
                    }
                }
                Some(Decl { max: MAX_REQUEST, min: 2, shape: Shape::Object(name.into(), fields) })
            }
        },
    };
    above.pop();
    decl
}
