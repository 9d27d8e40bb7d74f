//! The type that a schema declares for its values, with the sizes that they can reach at most.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::types::Type;

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
    /// Fields by the name they have in CEL.
    Object(BTreeMap<String, Rc<Decl>>),
}

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
                if let Some(name) = escape(name) {
                    fields.insert(name, Rc::new(field));
                }
            }
            if resource {
                add_resource_fields(s, &mut fields, depth);
            }
            Some(Decl { max: 0, min, shape: Shape::Object(fields) })
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
    fields.insert("metadata".to_owned(), Rc::new(Decl { max: 0, min: 2, shape: Shape::Object(metadata) }));
    for name in ["apiVersion", "kind"] {
        fields.entry(name.to_owned()).or_insert_with(text);
    }
}

/// The name that a property has in CEL; `None` where it can't have one.
fn escape(name: &str) -> Option<String> {
    const KEYWORDS: [&str; 20] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
    ];
    if KEYWORDS.contains(&name) || name == "while" {
        return Some(format!("__{name}__"));
    }
    let start =
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || matches!(c, '.' | '-' | '/'));
    if !start || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/')) {
        return None;
    }
    let out = name.replace("__", "__underscores__");
    Some(out.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}

impl Decl {
    /// The type in expressions.
    pub(super) fn ty(self: &Rc<Self>) -> Type {
        match &self.shape {
            Shape::Simple(ty) => ty.clone(),
            Shape::List(item) => Type::List(Rc::new(item.ty())),
            Shape::Map(value) => Type::Map(Rc::new(Type::Text), Rc::new(value.ty())),
            Shape::Object(_) => Type::Object(self.clone()),
        }
    }
}
