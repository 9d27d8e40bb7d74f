//! What Go does to an object of a built-in type between reading and writing it, as far as a client can see it.
//!
//! The reference decodes into structs and encodes them again: zero values vanish unless the field is a pointer
//! (`keep`), embedded structs and required fields are always written (`always`), quantities and times come out in
//! canonical form, and unconditional defaults are filled in. The marks are in `data/encoding.json`, the defaults in
//! the definitions. It neither checks types nor drops unknown fields (the schema does).
//! Invariant: normalizing twice changes nothing.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use homeostat_model::clock;
use homeostat_model::quantity::Quantity;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::registry::definitions;

/// What is in a field.
enum Type {
    Text,
    Number,
    Flag,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    /// JSON that is kept as it is.
    Any,
    Struct(usize),
    List(Box<Type>),
    Map(Box<Type>),
}

struct Field {
    name: Box<str>,
    kind: Type,
    always: bool,
    keep: bool,
    default: Option<Value>,
}

/// The fields of one definition, sorted by name.
struct Shape {
    fields: Vec<Field>,
    /// Fields that are written when absent.
    fill: Vec<usize>,
}

struct Shapes {
    names: BTreeMap<String, usize>,
    slots: Vec<(String, OnceLock<Shape>)>,
    marks: BTreeMap<String, Marks>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Marks {
    always: Vec<String>,
    keep: Vec<String>,
}

static SHAPES: LazyLock<Shapes> = LazyLock::new(|| {
    let slots: Vec<_> = definitions().names().map(|n| (n.to_owned(), OnceLock::new())).collect();
    Shapes {
        names: slots.iter().enumerate().map(|(i, (n, _))| (n.clone(), i)).collect(),
        slots,
        marks: serde_json::from_str(include_str!("../../data/encoding.json"))
            .expect("the committed marks are JSON"),
    }
});

/// Brings an object of the named definition into the form in which the reference would answer it.
pub(crate) fn normalize(definition: &str, object: &mut Value) {
    if let (Some(at), Value::Object(map)) = (SHAPES.names.get(definition), object) {
        SHAPES.structure(*at, map);
    }
}

/// An object of the named definition with nothing set, as Go encodes it: no defaults, but the fields that are
/// always written.
pub(crate) fn empty(definition: &str) -> Value {
    SHAPES.names.get(definition).map_or(Value::Null, |at| SHAPES.empty(*at))
}

/// Normalizes one field of an object, after a strategy has replaced it.
pub(crate) fn normalize_field(definition: &str, object: &mut Value, field: &str) {
    let (Some(at), Some(value)) = (SHAPES.names.get(definition), object.get_mut(field)) else { return };
    let shape = SHAPES.shape(*at);
    if let Ok(i) = shape.fields.binary_search_by(|f| (*f.name).cmp(field)) {
        SHAPES.clean(&shape.fields[i].kind, value);
    }
}

impl Shapes {
    fn empty(&self, at: usize) -> Value {
        let always = self.shape(at).fields.iter().filter(|f| f.always);
        let value = |f: &Field| match &f.kind {
            Type::Struct(at) if !f.keep => self.empty(*at),
            kind => absent(kind, f.keep),
        };
        Value::Object(always.map(|f| (f.name.to_string(), value(f))).collect())
    }

    fn shape(&self, at: usize) -> &Shape {
        let (name, cell) = &self.slots[at];
        cell.get_or_init(|| {
            let source = definitions().source(name).unwrap_or("{}");
            let schema: Value = serde_json::from_str(source).unwrap_or_default();
            let none = Marks::default();
            let marks = self.marks.get(name).unwrap_or(&none);
            let fields: Vec<Field> = schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, schema)| Field {
                    name: name.as_str().into(),
                    kind: self.kind(schema),
                    always: marks.always.contains(name),
                    keep: marks.keep.contains(name),
                    default: schema.get("default").cloned(),
                })
                .collect();
            let fill =
                (0..fields.len()).filter(|i| fields[*i].always || fields[*i].default.is_some()).collect();
            Shape { fields, fill }
        })
    }

    fn kind(&self, schema: &Value) -> Type {
        if let Some(name) = schema["$ref"].as_str() {
            return match name.rsplit('.').next().unwrap_or(name) {
                "Quantity" => Type::Quantity,
                "IntOrString" => Type::IntOrString,
                "Time" => Type::Time,
                "MicroTime" => Type::MicroTime,
                _ if schema_of(name).contains("preserve-unknown-fields") => Type::Any,
                _ => self.names.get(name).map_or(Type::Any, |at| Type::Struct(*at)),
            };
        }
        match schema["type"].as_str() {
            Some("string") => Type::Text,
            Some("integer" | "number") => Type::Number,
            Some("boolean") => Type::Flag,
            Some("array") => Type::List(Box::new(self.kind(&schema["items"]))),
            Some("object") if schema["additionalProperties"].is_object() => {
                Type::Map(Box::new(self.kind(&schema["additionalProperties"])))
            }
            _ => Type::Any,
        }
    }

    fn structure(&self, at: usize, map: &mut Map<String, Value>) {
        let shape = self.shape(at);
        map.retain(|name, value| match shape.fields.binary_search_by(|f| (*f.name).cmp(name)) {
            Err(_) => true,
            Ok(i) => {
                let field = &shape.fields[i];
                if value.is_null() {
                    return false;
                }
                self.clean(&field.kind, value);
                field.keep || (field.always && field.default.is_none()) || !zero(&field.kind, value)
            }
        });
        for field in shape.fill.iter().map(|i| &shape.fields[*i]) {
            if map.contains_key(&*field.name) {
                continue;
            }
            let mut value = match &field.default {
                Some(default) => default.clone(),
                None => absent(&field.kind, field.keep),
            };
            self.clean(&field.kind, &mut value);
            map.insert(field.name.to_string(), value);
        }
    }

    fn clean(&self, kind: &Type, value: &mut Value) {
        match (kind, value) {
            (Type::Struct(at), Value::Object(map)) => self.structure(*at, map),
            (Type::List(kind), Value::Array(list)) => list.iter_mut().for_each(|item| self.item(kind, item)),
            (Type::Map(kind), Value::Object(map)) => map.values_mut().for_each(|item| self.item(kind, item)),
            (Type::Quantity, value) => quantity(value),
            (Type::Time, Value::String(text)) => time(text, 20, clock::seconds),
            (Type::MicroTime, Value::String(text)) => time(text, 27, clock::micros),
            _ => {}
        }
    }

    /// An item of a list or a map: null is the zero value.
    fn item(&self, kind: &Type, value: &mut Value) {
        if value.is_null() {
            *value = absent(kind, false);
        }
        self.clean(kind, value);
    }
}

fn schema_of(name: &str) -> &'static str {
    definitions().source(name).unwrap_or_default()
}

/// What Go omits with `omitempty`.
fn zero(kind: &Type, value: &Value) -> bool {
    match (kind, value) {
        (Type::Text, Value::String(s)) => s.is_empty(),
        (Type::Number, Value::Number(n)) => n.as_f64() == Some(0.0),
        (Type::Flag, Value::Bool(b)) => !b,
        (Type::List(_), Value::Array(list)) => list.is_empty(),
        (Type::Map(_), Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

/// What Go writes for a field that is not omitted and was not given. `pointer`: the field may be nil.
fn absent(kind: &Type, pointer: bool) -> Value {
    match kind {
        _ if pointer => Value::Null,
        Type::Text => "".into(),
        Type::Number | Type::IntOrString => 0.into(),
        Type::Flag => false.into(),
        Type::Quantity => "0".into(),
        Type::Struct(_) => Value::Object(Map::new()),
        Type::Time | Type::MicroTime | Type::Any | Type::List(_) | Type::Map(_) => Value::Null,
    }
}

fn quantity(value: &mut Value) {
    if let Ok(q) = Quantity::from_value(value) {
        let text = q.to_string();
        if value.as_str() != Some(&text) {
            *value = text.into();
        }
    }
}

/// Times are printed in UTC with a fixed number of digits.
fn time(text: &mut String, length: usize, print: fn(clock::Timestamp) -> String) {
    if text.len() == length && text.ends_with('Z') {
        return;
    }
    if let Ok(t) = text.parse::<clock::Timestamp>() {
        *text = print(t);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(definition: &str, from: Value, want: Value) {
        let mut object = from.clone();
        normalize(definition, &mut object);
        assert_eq!(object, want, "{from}");
        normalize(definition, &mut object);
        assert_eq!(object, want, "{from}, twice");
    }

    #[test]
    fn objects_come_out_as_go_writes_them() {
        let container = "io.k8s.api.core.v1.Container";
        let bare = json!({
            "name": "a", "resources": {}, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        });
        check(container, json!({"name": "a", "image": "", "args": [], "env": null, "tty": false}), bare);
        let requirements = "io.k8s.api.core.v1.ResourceRequirements";
        check(
            requirements,
            json!({"limits": {"cpu": "1000m", "memory": "1024Mi", "x/y": 2}}),
            json!({"limits": {"cpu": "1", "memory": "1Gi", "x/y": "2"}}),
        );
        let lease = "io.k8s.api.coordination.v1.LeaseSpec";
        check(
            lease,
            json!({"holderIdentity": "", "leaseTransitions": 0, "renewTime": "2024-05-01T12:00:10.500000+02:00"}),
            json!({"holderIdentity": "", "leaseTransitions": 0, "renewTime": "2024-05-01T10:00:10.500000Z"}),
        );
        check(
            "io.k8s.api.rbac.v1.Role",
            json!({"metadata": {"labels": {}}}),
            json!({"metadata": {}, "rules": null}),
        );
        check(
            "io.k8s.api.core.v1.ConfigMap",
            json!({"data": {"a": null, "b": ""}, "metadata": {"name": "x"}}),
            json!({"data": {"a": "", "b": ""}, "metadata": {"name": "x"}}),
        );
        check(
            "io.k8s.api.core.v1.Probe",
            json!({"httpGet": {"port": 80}, "periodSeconds": 0}),
            json!({
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1,
                "successThreshold": 1, "failureThreshold": 3,
            }),
        );
    }

    #[test]
    fn every_mark_names_a_field() {
        for (name, marks) in &SHAPES.marks {
            let at = SHAPES.names.get(name).unwrap_or_else(|| panic!("{name} is no definition"));
            let fields = &SHAPES.shape(*at).fields;
            for field in marks.always.iter().chain(&marks.keep) {
                assert!(fields.iter().any(|f| *f.name == **field), "{name} has no field {field}");
            }
        }
    }
}
