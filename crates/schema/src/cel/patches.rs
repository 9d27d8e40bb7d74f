//! What expressions that change objects come to: apply configurations (`Object{…}`) and operations of JSON patches
//! (`[JSONPatch{…}]`), as JSON. Applying them is the caller's.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::check::{OBJECT, PATCH};
use super::functions::display;
use super::program::{Activation, Failure, Program};
use super::value::{Key, Struct, Val};

/// Integers up to this one are exact in every reader of JSON.
const EXACT: i64 = (1 << 53) - 1;

/// Why there is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The expression has no value.
    #[error("{0}")]
    Failed(Failure),
    /// The value is no patch: `type mismatch: …`.
    #[error("{0}")]
    Unfit(String),
}

impl From<Failure> for PatchError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Activation<'_> {
    /// The object that an apply configuration is, without apiVersion and kind.
    ///
    /// # Errors
    /// The expression has no value, or objects in it are of other types than their fields.
    pub fn configuration(&self, program: &Result<Program, String>) -> Result<Value, PatchError> {
        match self.evaluate(program)? {
            Val::Struct(s) if &*s.name == OBJECT => {
                named(&s)?;
                Ok(to_json(&Val::Struct(s), false)?)
            }
            other => Err(PatchError::Unfit(format!(
                "unsupported return type from ApplyConfiguration expression: {}",
                other.type_name()
            ))),
        }
    }

    /// The operations of a JSON patch.
    ///
    /// # Errors
    /// The expression has no value, or not that of a patch.
    pub fn operations(&self, program: &Result<Program, String>) -> Result<Value, PatchError> {
        let unfit = |why: &str| PatchError::Unfit(format!("type mismatch: {why}"));
        let Val::List(list) = self.evaluate(program)? else {
            return Err(unfit("JSONPatchType.expression should evaluate to array"));
        };
        let mut out = Vec::with_capacity(list.items.len());
        for item in &list.items {
            match item {
                Val::Struct(s) if &*s.name == PATCH => out.push(operation(s)?),
                other => {
                    return Err(unfit(&format!(
                        "JSONPatchType.expression should evaluate to array of JSONPatch, got element of {}",
                        other.type_name()
                    )));
                }
            }
        }
        Ok(Value::Array(out))
    }
}

fn operation(s: &Struct) -> Result<Value, PatchError> {
    let text = |key: &str| match s.fields.get(key) {
        Some(Val::String(s)) => Ok(s.to_string()),
        None => Ok(String::new()),
        Some(other) => Err(PatchError::Unfit(format!(
            "unexpected type {} for JSONPatchType '{key}' field",
            other.type_name()
        ))),
    };
    let mut out = json!({"op": text("op")?, "path": text("path")?});
    let from = text("from")?;
    if !from.is_empty() {
        out["from"] = from.into();
    }
    if let Some(value) = s.fields.get("value") {
        if let Val::Struct(s) = value {
            named(s)?;
        }
        out["value"] = to_json(value, true).map_err(|why| {
            let why = match why {
                PatchError::Unfit(why) => why,
                other => other.to_string(),
            };
            PatchError::Unfit(format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}"
            ))
        })?;
    }
    Ok(out)
}

/// Checks that objects are of the types that their fields have: `Object.spec` in the field `spec` of an `Object`.
fn named(root: &Struct) -> Result<(), PatchError> {
    let mut wrong = Vec::new();
    check_fields(root, &root.name, &mut wrong);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(PatchError::Unfit(format!("type mismatch: {}", wrong.join("\n"))))
}

fn check_fields(s: &Struct, expected: &str, wrong: &mut Vec<String>) {
    if &*s.name != expected {
        wrong.push(format!(
            "unexpected type name \"{}\", expected \"{expected}\", which matches field name path from root Object type",
            s.name
        ));
    }
    for (name, field) in &s.fields {
        check_name(field, &format!("{expected}.{name}"), wrong);
    }
}

fn check_name(value: &Val, expected: &str, wrong: &mut Vec<String>) {
    match value {
        Val::Struct(s) => check_fields(s, expected, wrong),
        Val::List(list) => list.items.iter().for_each(|v| check_name(v, expected, wrong)),
        Val::Map(map) => map.values().for_each(|v| check_name(v, expected, wrong)),
        _ => {}
    }
}

/// A value as JSON. Numbers that not every reader has exactly become texts where `exact` is asked for.
fn to_json(value: &Val, exact: bool) -> Result<Value, PatchError> {
    let fields = |map: &BTreeMap<Key, Val>| -> Result<Map<String, Value>, PatchError> {
        let mut out = Map::new();
        for (key, value) in map {
            let key = match key {
                Key::String(s) => s.to_string(),
                _ if !exact => {
                    let why = format!("map key {} is not string", display(&key.value()));
                    return Err(PatchError::Unfit(why));
                }
                other => display(&other.value()),
            };
            out.insert(key, to_json(value, exact)?);
        }
        Ok(out)
    };
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(b) => (*b).into(),
        Val::Int(n) if exact && !(-EXACT..=EXACT).contains(n) => n.to_string().into(),
        Val::Int(n) => (*n).into(),
        Val::Uint(n) if exact && *n > EXACT as u64 => n.to_string().into(),
        Val::Uint(n) => (*n).into(),
        Val::Double(v) => match serde_json::Number::from_f64(*v) {
            Some(n) => Value::Number(n),
            None => return Err(PatchError::Unfit(format!("unsupported value: {}", display(value)))),
        },
        Val::String(s) => (&**s).into(),
        Val::Bytes(b) => STANDARD.encode(b).into(),
        Val::Timestamp(_) | Val::Duration(_) => display(value).into(),
        Val::List(list) => {
            Value::Array(list.items.iter().map(|v| to_json(v, exact)).collect::<Result<_, _>>()?)
        }
        Val::Map(map) => Value::Object(fields(map)?),
        Val::Struct(s) => {
            let mut out = Map::new();
            for (name, value) in &s.fields {
                out.insert(name.to_string(), to_json(value, exact)?);
            }
            Value::Object(out)
        }
        Val::Optional(Some(value)) => to_json(value, exact)?,
        other => return Err(PatchError::Unfit(format!("unsupported type: {}", other.type_name()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::check::{Environment, Uses, Wanted};
    use crate::cel::program::{Input, Inputs};

    fn run<T>(source: &str, wanted: Wanted, f: impl Fn(&Activation<'_>, &Result<Program, String>) -> T) -> T {
        let object = json!({"spec": {"replicas": 3}, "metadata": {"labels": {"a/b": "c"}}});
        let inputs = Inputs {
            object: Input::json(Some(&object)),
            old_object: Input::json(None),
            request: Input::json(None),
            namespace: Input::json(None),
        };
        let nothing = Input::json(None);
        let activation = Activation::new(&inputs, &nothing, None, &[], 10_000_000);
        f(&activation, &Environment::new(false).compile(source, wanted, Uses::default()))
    }

    #[test]
    fn configurations_are_objects() {
        for (source, want) in [
            (
                "Object{metadata: Object.metadata{labels: {'team': 'db'}}, spec: Object.spec{backup: true, \
                 owners: [Object.spec.owners{name: 'dba'}]}}",
                Ok(
                    json!({"metadata": {"labels": {"team": "db"}}, "spec": {"backup": true, "owners": [{"name": "dba"}]}}),
                ),
            ),
            (
                "Object{spec: Object.spec{?replicas: object.spec.?replicas, ?none: object.spec.?none}}",
                Ok(json!({"spec": {"replicas": 3}})),
            ),
            (
                "Object{spec: Object.wrong{a: 1}}",
                Err(
                    "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches \
                     field name path from root Object type",
                ),
            ),
            (
                "Object{spec: object.none}",
                Err("expression 'Object{spec: object.none}' resulted in error: no such key: none"),
            ),
        ] {
            let got = run(source, Wanted::Object, |a, p| a.configuration(p));
            assert_eq!(got.map_err(|e| e.to_string()), want.map_err(str::to_owned), "{source}");
        }
    }

    #[test]
    fn operations_are_those_of_a_patch() {
        for (source, want) in [
            (
                "[JSONPatch{op: 'add', path: '/spec/tags', value: ['small']}, JSONPatch{op: 'remove', path: '/a'}]",
                json!([{"op": "add", "path": "/spec/tags", "value": ["small"]}, {"op": "remove", "path": "/a"}]),
            ),
            (
                "[JSONPatch{op: 'move', from: '/a', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c')}]",
                json!([{"op": "move", "from": "/a", "path": "/metadata/labels/a~1b~0c"}]),
            ),
            (
                "[JSONPatch{op: 'add', path: '/a', value: {'k': dyn(9007199254740993), 'd': dyn(duration('90s'))}}]",
                json!([{"op": "add", "path": "/a", "value": {"k": "9007199254740993", "d": "90s"}}]),
            ),
        ] {
            assert_eq!(run(source, Wanted::Patches, |a, p| a.operations(p)), Ok(want), "{source}");
        }
    }
}
