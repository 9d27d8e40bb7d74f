//! From JSON to a message's bytes, byte by byte as the reference's own code writes them.
//!
//! Fields of the object that the message lacks are left out. Invariant: the same object gives the same bytes: fields
//! by their numbers, map entries by their keys.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use crate::descriptor::{Field, Form, Label, Message, Messages, Type, messages};
use crate::wire::{FIXED64, VARINT, begin, end, put_bytes, put_tag, put_varint};
use crate::{Error, MAX_DEPTH, time};

/// Writes messages into one buffer.
pub(crate) struct Encoder {
    messages: &'static Messages,
    out: Vec<u8>,
}

impl Encoder {
    fn new(out: Vec<u8>) -> Self {
        Self { messages: messages(), out }
    }

    /// A field that is a message.
    fn nested(&mut self, number: u32, of: usize, value: &Value, depth: usize) -> Result<(), Error> {
        let at = begin(&mut self.out, number);
        self.value(of, value, depth)?;
        end(&mut self.out, at);
        Ok(())
    }

    /// The content of a message. Null is a message with nothing set.
    fn value(&mut self, at: usize, value: &Value, depth: usize) -> Result<(), Error> {
        let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
        let message = self.messages.get(at);
        match message.form {
            Form::Object => match value {
                Value::Object(map) => self.structure(message, map, depth),
                Value::Null => self.structure(message, &Map::new(), depth),
                other => Err(mismatch(message, "", other)),
            },
            form => self.special(message, form, value, depth),
        }
    }

    fn structure(
        &mut self,
        message: &'static Message,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), Error> {
        for field in &message.fields {
            if field.inline {
                let Type::Message(of) = field.of else { continue };
                let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
                let inner = self.messages.get(of);
                let at = begin(&mut self.out, field.number);
                self.structure(inner, map, depth)?;
                end(&mut self.out, at);
                continue;
            }
            self.field(message, field, map.get(field.name).unwrap_or(&Value::Null), depth)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        message: &'static Message,
        field: &Field,
        value: &Value,
        depth: usize,
    ) -> Result<(), Error> {
        match (field.label, value) {
            (Label::Many, Value::Array(list)) => {
                for value in list {
                    self.one(message, field, value, depth)?;
                }
            }
            (Label::Map, Value::Object(map)) => {
                let mut sorted: Vec<(&String, &Value)> = map.iter().collect();
                sorted.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in sorted {
                    self.entry(message, field, key, value, depth)?;
                }
            }
            (Label::Many | Label::Map, Value::Null) => {}
            (Label::Many | Label::Map, other) => return Err(mismatch(message, field.name, other)),
            (Label::One, Value::Null) => {
                // What is no pointer is written even when it has no value; lists and bytes can be nil.
                let wrapped = |at| self.messages.get(at).form == Form::List;
                let nil = match field.of {
                    Type::Bytes => true,
                    Type::Message(at) => wrapped(at),
                    _ => false,
                };
                if !field.pointer && !nil {
                    self.one(message, field, value, depth)?;
                }
            }
            (Label::One, value) => self.one(message, field, value, depth)?,
        }
        Ok(())
    }

    fn entry(
        &mut self,
        message: &'static Message,
        field: &Field,
        key: &str,
        value: &Value,
        depth: usize,
    ) -> Result<(), Error> {
        let at = begin(&mut self.out, field.number);
        put_bytes(&mut self.out, 1, key.as_bytes());
        // Go leaves bytes that are empty out of the entry.
        let empty = field.of == Type::Bytes && (value.is_null() || value.as_str() == Some(""));
        if !empty {
            let second = Field { number: 2, label: Label::One, ..*field };
            self.one(message, &second, value, depth)?;
        }
        end(&mut self.out, at);
        Ok(())
    }

    /// One value of a field; null is the zero value.
    fn one(
        &mut self,
        message: &'static Message,
        field: &Field,
        value: &Value,
        depth: usize,
    ) -> Result<(), Error> {
        let wrong = || mismatch(message, field.name, value);
        let number = field.number;
        match (field.of, value) {
            (Type::Message(of), value) => self.nested(number, of, value, depth)?,
            (Type::Text, Value::String(text)) => put_bytes(&mut self.out, number, text.as_bytes()),
            (Type::Text, Value::Null) => put_bytes(&mut self.out, number, &[]),
            (Type::Bytes, Value::String(text)) => {
                let bytes = base64(text).ok_or_else(wrong)?;
                put_bytes(&mut self.out, number, &bytes);
            }
            (Type::Bytes, Value::Null) => put_bytes(&mut self.out, number, &[]),
            (Type::Bool, Value::Bool(flag)) => self.varint(number, u64::from(*flag)),
            (Type::Int32, Value::Number(n)) => {
                let n = n.as_i64().and_then(|n| i32::try_from(n).ok()).ok_or_else(wrong)?;
                self.varint(number, i64::from(n) as u64);
            }
            (Type::Int64, Value::Number(n)) => {
                let n = n.as_i64().ok_or_else(wrong)?;
                self.varint(number, n as u64);
            }
            (Type::Double, Value::Number(n)) => self.double(number, n.as_f64().ok_or_else(wrong)?),
            (Type::Double, Value::Null) => self.double(number, 0.0),
            (Type::Int32 | Type::Int64 | Type::Bool, Value::Null) => self.varint(number, 0),
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn varint(&mut self, number: u32, value: u64) {
        put_tag(&mut self.out, number, VARINT);
        put_varint(&mut self.out, value);
    }

    fn double(&mut self, number: u32, value: f64) {
        put_tag(&mut self.out, number, FIXED64);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// A message that isn't an object of its fields in JSON.
    fn special(
        &mut self,
        message: &'static Message,
        form: Form,
        value: &Value,
        depth: usize,
    ) -> Result<(), Error> {
        let wrong = || mismatch(message, "", value);
        // The message of the field at an index, which these forms have.
        let of = |i: usize| match message.fields.get(i).map(|f| f.of) {
            Some(Type::Message(of)) => Ok(of),
            _ => Err(mismatch(message, "", value)),
        };
        match (form, value) {
            (Form::Quantity, Value::String(text)) => quantity(&mut self.out, text),
            (Form::Quantity, Value::Number(n)) => put_bytes(&mut self.out, 1, n.to_string().as_bytes()),
            (Form::Quantity, Value::Null) => put_bytes(&mut self.out, 1, b"0"),
            (Form::IntOrString, Value::Number(n)) => {
                let n = n.as_i64().and_then(|n| i32::try_from(n).ok()).ok_or_else(wrong)?;
                int_or_string(&mut self.out, 0, n, "");
            }
            (Form::IntOrString, Value::String(text)) => int_or_string(&mut self.out, 1, 0, text),
            (Form::IntOrString, Value::Null) => int_or_string(&mut self.out, 0, 0, ""),
            (Form::Time | Form::MicroTime, Value::String(text)) => {
                instant(&mut self.out, form, text).ok_or_else(wrong)?;
            }
            (Form::Time | Form::MicroTime | Form::Json | Form::RawExtension, Value::Null) => {}
            (Form::Json | Form::RawExtension, value) => {
                let json = serde_json::to_vec(value).map_err(|_| wrong())?;
                put_bytes(&mut self.out, 1, &json);
            }
            (Form::List, Value::Array(_) | Value::Null) => {
                let field = message.fields.first().ok_or_else(wrong)?;
                self.field(message, field, value, depth)?;
            }
            (Form::SchemaOrBool, Value::Bool(allows)) => self.varint(1, u64::from(*allows)),
            (Form::SchemaOrBool, Value::Null) => self.varint(1, 0),
            (Form::SchemaOrBool, Value::Object(_)) => {
                self.varint(1, 1);
                self.nested(2, of(1)?, value, depth)?;
            }
            (Form::SchemaOrArray | Form::SchemaOrStrings, Value::Object(_)) => {
                self.nested(1, of(0)?, value, depth)?;
            }
            (Form::SchemaOrArray | Form::SchemaOrStrings, Value::Array(_)) => {
                let field = message.fields.get(1).ok_or_else(wrong)?;
                self.field(message, field, value, depth)?;
            }
            (Form::SchemaOrArray | Form::SchemaOrStrings, Value::Null) => {}
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

fn put_number(out: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(out, number, VARINT);
    put_varint(out, value as u64);
}

/// The content of a quantity.
pub(crate) fn quantity(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, 1, text.as_bytes());
}

/// The content of an int-or-string: 0 and the number, or 1 and the text.
pub(crate) fn int_or_string(out: &mut Vec<u8>, kind: i64, number: i32, text: &str) {
    put_number(out, 1, kind);
    put_number(out, 2, number.into());
    put_bytes(out, 3, text.as_bytes());
}

/// The content of a time; `None` where the text is none.
pub(crate) fn instant(out: &mut Vec<u8>, form: Form, text: &str) -> Option<()> {
    let (seconds, nanos) = time::parse(text)?;
    let nanos = if form == Form::Time { 0 } else { nanos / 1000 * 1000 };
    if (seconds, nanos) != (time::ZERO, 0) {
        put_number(out, 1, seconds);
        put_number(out, 2, nanos.into());
    }
    Some(())
}

fn mismatch(message: &Message, field: &str, value: &Value) -> Error {
    let mut value = value.to_string();
    if value.len() > 64 {
        value = value.chars().take(60).chain("…".chars()).collect();
    }
    Error::Mismatch { message: message.short(), field: field.to_owned(), value }
}

/// Bytes that JSON has as text.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// What is written of a field that an object lacks.
pub(crate) fn absent(message: &'static Message, field: &Field) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    // Nothing does not fail to fit.
    let done = encoder.field(message, field, &Value::Null, MAX_DEPTH);
    done.map(|()| encoder.out).unwrap_or_default()
}

/// Appends the message of an object to `out`.
pub(crate) fn message(at: usize, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut encoder = Encoder::new(std::mem::take(out));
    let done = encoder.value(at, value, MAX_DEPTH);
    *out = encoder.out;
    done
}
