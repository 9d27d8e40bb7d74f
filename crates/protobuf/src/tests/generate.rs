//! Random objects of any message, made from its descriptor, in the form in which decoding gives them back.
//!
//! All choices are read from bytes; when they are used up every choice is the smallest, so that proptest shrinks an
//! object by shrinking bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};

use crate::descriptor::{Field, Form, Label, Message, Type, messages};
use crate::time;

/// Makes values out of choices.
pub(super) struct Generator<'a> {
    choices: &'a [u8],
}

/// Below this depth nothing optional is set.
const DEEP: usize = 9;

impl<'a> Generator<'a> {
    pub(super) fn new(choices: &'a [u8]) -> Self {
        Self { choices }
    }

    fn below(&mut self, n: u8) -> u8 {
        let Some((first, rest)) = self.choices.split_first() else { return 0 };
        self.choices = rest;
        first % n
    }

    fn number(&mut self) -> i64 {
        match self.below(6) {
            0 => 1,
            1 => -1,
            2 => i64::MAX,
            3 => i64::MIN,
            4 => 300,
            _ => i64::from(self.below(255)) + 1,
        }
    }

    /// The epoch, and around it.
    fn seconds(&mut self) -> i64 {
        (i64::from(self.below(255)) - i64::from(self.below(100))) * 7_654_321
    }

    fn text(&mut self) -> String {
        ["a", "ü", "\u{1F600}\"\\", "long and longer ", "0", "x.y/z"][usize::from(self.below(6))]
            .repeat(1 + usize::from(self.below(12)))
    }

    /// An object of a kind, without its name and version.
    pub(super) fn kind(&mut self, api_version: &str, kind: &str) -> Value {
        let at = messages().kind(api_version, kind).expect("a kind that is known");
        self.value(at, 0)
    }

    fn value(&mut self, at: usize, depth: usize) -> Value {
        let message = messages().get(at);
        let of = |i: usize| match message.fields[i].of {
            Type::Message(of) => of,
            other => panic!("{other:?} is no message"),
        };
        match message.form {
            Form::Object => {
                let mut out = Map::new();
                self.structure(message, depth, &mut out);
                Value::Object(out)
            }
            Form::List => (0..self.below(3)).map(|_| Value::from(self.text())).collect(),
            Form::Quantity => ["0", "1", "100m", "12Ki", "1e3"][usize::from(self.below(5))].into(),
            Form::IntOrString => match self.below(3) {
                0 => (self.number() as i32).into(),
                1 => self.text().into(),
                _ => "25%".into(),
            },
            Form::Time => time::seconds(self.seconds()).into(),
            Form::MicroTime => {
                let nanos = i64::from(self.below(255)) * 3_000_000 + 5_000;
                time::micros(self.seconds(), nanos * i64::from(self.below(2))).into()
            }
            Form::Json | Form::RawExtension => match self.below(4) {
                0 => json!({}),
                1 => json!({"f:a": {"": {}, "k:{\"p\":1}": {".": {}}}}),
                2 => json!({"n": [1, -2.5, null, true, self.text()]}),
                _ => json!({"kind": "Pod", "apiVersion": "v1"}),
            },
            Form::SchemaOrBool if depth < DEEP && self.below(2) == 1 => self.value(of(1), depth + 1),
            Form::SchemaOrBool => (self.below(2) == 1).into(),
            Form::SchemaOrArray if depth < DEEP && self.below(2) == 1 => {
                vec![self.value(of(1), depth + 1)].into()
            }
            Form::SchemaOrStrings if self.below(2) == 1 => vec![self.text()].into(),
            Form::SchemaOrArray | Form::SchemaOrStrings => self.value(of(0), depth + 1),
        }
    }

    fn structure(&mut self, message: &'static Message, depth: usize, out: &mut Map<String, Value>) {
        for field in &message.fields {
            if let (true, Type::Message(inner)) = (field.inline, field.of) {
                self.structure(messages().get(inner), depth + 1, out);
                continue;
            }
            let value = self.field(field, depth);
            if field.always || !value.is_null() {
                out.insert(field.name.to_owned(), value);
            }
        }
    }

    /// A field's value; null where it has none.
    fn field(&mut self, field: &Field, depth: usize) -> Value {
        let set = depth < DEEP && self.below(3) > 0;
        match (field.label, field.of) {
            (Label::One, Type::Message(of)) if field.always && !field.pointer => {
                let empty = matches!(
                    messages().get(of).form,
                    Form::Time | Form::MicroTime | Form::Json | Form::RawExtension | Form::List
                );
                if set || !empty { self.value(of, depth + 1) } else { Value::Null }
            }
            (Label::One, Type::Bytes) if !set => Value::Null,
            // What is no pointer is there even if it is zero.
            (Label::One, of) if !set && field.always && !field.pointer => zero(of),
            (_, _) if !set => Value::Null,
            (Label::One, of) => self.one(of, depth, !field.always && !field.pointer),
            (Label::Many, of) => (0..=self.below(2)).map(|_| self.one(of, depth, false)).collect(),
            (Label::Map, of) => {
                let entries = (0..=self.below(2)).map(|_| (self.text(), self.one(of, depth, false)));
                Value::Object(entries.collect())
            }
        }
    }

    /// One value; `real` if it may not be zero.
    fn one(&mut self, of: Type, depth: usize, real: bool) -> Value {
        if !real && !matches!(of, Type::Message(_)) && self.below(4) == 0 {
            return if of == Type::Bytes { "".into() } else { zero(of) };
        }
        match of {
            Type::Int32 => (self.number() as i32).max(i32::MIN + 1).wrapping_mul(3).max(1).into(),
            Type::Int64 => self.number().into(),
            Type::Bool => true.into(),
            Type::Double => [json!(1), json!(-2.5), json!(1e300)][usize::from(self.below(3))].clone(),
            Type::Text => self.text().into(),
            Type::Bytes => BASE64.encode(self.text()).into(),
            Type::Message(of) => self.value(of, depth + 1),
        }
    }
}

fn zero(of: Type) -> Value {
    match of {
        Type::Int32 | Type::Int64 | Type::Double => 0.into(),
        Type::Bool => false.into(),
        Type::Text => "".into(),
        Type::Bytes | Type::Message(_) => Value::Null,
    }
}
