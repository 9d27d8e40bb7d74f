//! From a message's bytes to JSON.
//!
//! Fields that are unknown are passed over, as the reference does. It does not check what JSON schemas say.
//! Invariant: depth and number of values are limited, whatever the bytes are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Number, Value};

use crate::descriptor::{Field, Form, Label, Message, Messages, Type, messages};
use crate::wire::{BYTES, FIXED64, Reader, VARINT};
use crate::{Error, MAX_DEPTH, MAX_VALUES, envelope, time};

/// Reads messages into one value.
pub(crate) struct Decoder {
    messages: &'static Messages,
    /// Values that may still be made.
    left: usize,
}

/// What was read of one field.
#[derive(Default)]
enum Slot<'a> {
    #[default]
    Absent,
    Scalar(Value),
    Message(&'a [u8]),
    /// A message that came in pieces is all of them in a row.
    Pieces(Vec<&'a [u8]>),
    Many(Vec<Value>),
    Map(Map<String, Value>),
}

/// The fields that were read, by index.
struct Slots<'a>(Vec<(usize, Slot<'a>)>);

impl<'a> Slots<'a> {
    /// The slot of a field. They come in ascending order from every writer that is known.
    fn at(&mut self, index: usize) -> &mut Slot<'a> {
        let place = match self.0.last() {
            Some((last, _)) if *last == index => self.0.len() - 1,
            Some((last, _)) if *last > index => match self.0.binary_search_by_key(&index, |(i, _)| *i) {
                Ok(found) => found,
                Err(free) => {
                    self.0.insert(free, (index, Slot::Absent));
                    free
                }
            },
            _ => {
                self.0.push((index, Slot::Absent));
                self.0.len() - 1
            }
        };
        &mut self.0[place].1
    }

    /// Forgets what was read of a field.
    fn clear(&mut self, index: usize) {
        if self.0.last().is_some_and(|(last, _)| *last >= index) {
            self.take(index);
        }
    }

    fn take(&mut self, index: usize) -> Slot<'a> {
        self.0
            .binary_search_by_key(&index, |(i, _)| *i)
            .map_or(Slot::Absent, |found| std::mem::take(&mut self.0[found].1))
    }

    /// Every field that was read or is in `fill`, in order.
    fn filled(self, fill: &[usize]) -> impl Iterator<Item = (usize, Slot<'a>)> {
        let mut fill = fill.iter().copied().peekable();
        let mut read = self.0.into_iter().peekable();
        std::iter::from_fn(move || match (read.peek(), fill.peek()) {
            (Some((index, _)), Some(wanted)) if wanted < index => fill.next().map(|i| (i, Slot::Absent)),
            (Some((index, _)), wanted) => {
                if wanted == Some(index) {
                    fill.next();
                }
                read.next()
            }
            (None, _) => fill.next().map(|i| (i, Slot::Absent)),
        })
    }
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self { messages: messages(), left: MAX_VALUES }
    }

    /// A message as a value.
    pub(crate) fn value(&mut self, at: usize, bytes: &[u8], depth: usize) -> Result<Value, Error> {
        let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
        let message = self.messages.get(at);
        self.spend(1)?;
        match message.form {
            Form::Object => {
                let mut out = Map::new();
                self.structure(message, bytes, depth, &mut out)?;
                Ok(Value::Object(out))
            }
            Form::Json | Form::RawExtension => self.json(message, bytes, depth),
            // No time at all, unlike that of 1970.
            Form::Time | Form::MicroTime if bytes.is_empty() => Ok(Value::Null),
            Form::Quantity if bytes.is_empty() => Ok("0".into()),
            form => {
                let mut slots = self.slots(message, bytes, depth)?;
                self.special(message, form, [slots.take(0), slots.take(1), slots.take(2)], depth)
            }
        }
    }

    fn spend(&mut self, values: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(values).ok_or(Error::TooMany)?;
        Ok(())
    }

    /// Adds a message's fields to the object that it is, or whose struct it is embedded in.
    fn structure(
        &mut self,
        message: &'static Message,
        bytes: &[u8],
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), Error> {
        let slots = self.slots(message, bytes, depth)?;
        for (index, slot) in slots.filled(&message.fill) {
            let field = &message.fields[index];
            if field.inline {
                let Type::Message(inner) = field.of else { continue };
                let depth = depth.checked_sub(1).ok_or(Error::TooDeep)?;
                self.structure(self.messages.get(inner), &joined(slot), depth, out)?;
                continue;
            }
            let value = self.field(field, slot, depth)?;
            if !value.is_null() || field.always {
                self.spend(1)?;
                out.insert(field.name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// The value of a field; null where JSON has none.
    fn field(&mut self, field: &Field, slot: Slot<'_>, depth: usize) -> Result<Value, Error> {
        Ok(match (slot, field.of, field.label) {
            (Slot::Many(list), ..) => Value::Array(list),
            (Slot::Map(map), ..) => Value::Object(map),
            (Slot::Scalar(value), ..) => value,
            (slot @ (Slot::Message(_) | Slot::Pieces(_)), Type::Message(of), _) => {
                self.value(of, &joined(slot), depth)?
            }
            (_, Type::Message(of), Label::One) if field.always && !field.pointer => {
                // A wrapped list that is absent is null; any other struct has fields of its own.
                match self.messages.get(of).form {
                    Form::List => Value::Null,
                    _ => self.value(of, &[], depth)?,
                }
            }
            (_, of, Label::One) if field.always && !field.pointer => zero(of),
            _ => Value::Null,
        })
    }

    /// Reads a message's fields.
    fn slots<'a>(
        &mut self,
        message: &'static Message,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<Slots<'a>, Error> {
        let mut slots = Slots(Vec::new());
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let (number, kind) = reader.tag(message.short())?;
            let Some(at) = message.at(number) else {
                reader.skip(kind)?;
                continue;
            };
            let field = &message.fields[at];
            if field.label == Label::One && !matches!(field.of, Type::Message(_)) {
                let value = scalar(field, field.of, kind, &mut reader)?;
                // Most of what is written is zero, and most of that is nothing in JSON.
                if field.always || field.pointer || !is_zero(&value) {
                    *slots.at(at) = Slot::Scalar(value);
                } else {
                    slots.clear(at);
                }
                continue;
            }
            let slot = slots.at(at);
            match field.label {
                Label::One => {
                    expect(field, kind, BYTES)?;
                    let piece = reader.bytes()?;
                    match slot {
                        Slot::Pieces(pieces) => {
                            self.spend(1)?;
                            pieces.push(piece);
                        }
                        Slot::Message(first) => *slot = Slot::Pieces(vec![first, piece]),
                        _ => *slot = Slot::Message(piece),
                    }
                }
                Label::Many => {
                    if !matches!(slot, Slot::Many(_)) {
                        *slot = Slot::Many(Vec::new());
                    }
                    let Slot::Many(list) = slot else { continue };
                    match field.of {
                        Type::Message(of) => {
                            expect(field, kind, BYTES)?;
                            list.push(self.value(of, reader.bytes()?, depth)?);
                        }
                        of if kind == BYTES && wire_type(of) != BYTES => {
                            let mut packed = Reader::new(reader.bytes()?);
                            while !packed.is_empty() {
                                self.spend(1)?;
                                list.push(scalar(field, of, wire_type(of), &mut packed)?);
                            }
                        }
                        of => {
                            self.spend(1)?;
                            list.push(scalar(field, of, kind, &mut reader)?);
                        }
                    }
                }
                Label::Map => {
                    expect(field, kind, BYTES)?;
                    let (key, value) = self.entry(field, reader.bytes()?, depth)?;
                    if !matches!(slot, Slot::Map(_)) {
                        *slot = Slot::Map(Map::new());
                    }
                    let Slot::Map(map) = slot else { continue };
                    map.insert(key, value);
                }
            }
        }
        Ok(slots)
    }

    fn entry(&mut self, field: &Field, bytes: &[u8], depth: usize) -> Result<(String, Value), Error> {
        let mut reader = Reader::new(bytes);
        let mut key = String::new();
        let mut value = None;
        while !reader.is_empty() {
            // Go's reader of entries accepts any tag here; a number that none can have is still refused by us.
            let (number, kind) = reader.tag("entry")?;
            match (number, field.of) {
                (1, _) => key = text(reader.bytes()?),
                (2, Type::Message(of)) => value = Some(self.value(of, reader.bytes()?, depth)?),
                (2, of) => value = Some(scalar(field, of, wire_type(of), &mut reader)?),
                _ => reader.skip(kind)?,
            }
        }
        self.spend(1)?;
        let value = match (value, field.of) {
            (Some(value), _) => value,
            (None, Type::Message(of)) => self.value(of, &[], depth)?,
            // Not nil, unlike a field.
            (None, Type::Bytes) => "".into(),
            (None, of) => zero(of),
        };
        Ok((key, value))
    }

    /// A message that isn't an object of its fields in JSON; `a`, `b` and `c` are its first fields.
    fn special(
        &mut self,
        message: &'static Message,
        form: Form,
        [a, b, c]: [Slot<'_>; 3],
        depth: usize,
    ) -> Result<Value, Error> {
        let number = |slot: &Slot<'_>| match slot {
            Slot::Scalar(Value::Number(n)) => n.as_i64().unwrap_or_default(),
            _ => 0,
        };
        let of = |i: usize| match message.fields.get(i).map(|f| f.of) {
            Some(Type::Message(of)) => of,
            _ => 0,
        };
        Ok(match form {
            // Read elsewhere.
            Form::Object | Form::Json | Form::RawExtension => Value::Null,
            Form::List => match a {
                Slot::Many(list) => Value::Array(list),
                _ => Value::Array(Vec::new()),
            },
            Form::Quantity => match a {
                Slot::Scalar(text) => text,
                _ => "".into(),
            },
            Form::IntOrString => match (number(&a), b, c) {
                (0, Slot::Scalar(value), _) => value,
                (0, ..) => 0.into(),
                (1, _, Slot::Scalar(value)) => value,
                (1, ..) => "".into(),
                (other, ..) => {
                    return Err(Error::NoForm { message: message.short(), value: format!("type {other}") });
                }
            },
            Form::Time | Form::MicroTime => {
                let (seconds, nanos) = (number(&a), number(&b));
                let text =
                    if form == Form::Time { time::seconds(seconds) } else { time::micros(seconds, nanos) };
                text.map(Value::String).ok_or_else(|| Error::NoForm {
                    message: message.short(),
                    value: format!("{seconds} seconds"),
                })?
            }
            Form::SchemaOrBool => match (a, b) {
                (_, schema @ (Slot::Message(_) | Slot::Pieces(_))) => {
                    self.value(of(1), &joined(schema), depth)?
                }
                (Slot::Scalar(allows), _) => allows,
                _ => false.into(),
            },
            Form::SchemaOrArray | Form::SchemaOrStrings => match (a, b) {
                (_, Slot::Many(list)) => Value::Array(list),
                (schema @ (Slot::Message(_) | Slot::Pieces(_)), _) => {
                    self.value(of(0), &joined(schema), depth)?
                }
                _ => Value::Null,
            },
        })
    }

    /// JSON that a message carries as bytes, or an object in its envelope where one may be.
    fn json(&mut self, message: &'static Message, bytes: &[u8], depth: usize) -> Result<Value, Error> {
        let mut reader = Reader::new(bytes);
        let mut raw: &[u8] = &[];
        while !reader.is_empty() {
            let (number, kind) = reader.tag(message.short())?;
            match message.at(number) {
                Some(at) => {
                    expect(&message.fields[at], kind, BYTES)?;
                    raw = reader.bytes()?;
                }
                None => reader.skip(kind)?,
            }
        }
        if raw.is_empty() {
            Ok(Value::Null)
        } else if message.form == Form::RawExtension && raw.starts_with(envelope::MAGIC) {
            self.nested(raw, depth)
        } else {
            serde_json::from_slice(raw)
                .map_err(|e| Error::Json { message: message.short(), why: e.to_string() })
        }
    }

    /// An object in its envelope within a message.
    fn nested(&mut self, bytes: &[u8], depth: usize) -> Result<Value, Error> {
        let envelope = envelope::Envelope::read(bytes)?;
        let at = envelope.message()?;
        let mut value = self.value(at, envelope.raw, depth)?;
        envelope.name(&mut value);
        Ok(value)
    }
}

fn joined(slot: Slot<'_>) -> std::borrow::Cow<'_, [u8]> {
    match slot {
        Slot::Message(one) => one.into(),
        Slot::Pieces(many) => many.concat().into(),
        _ => (&[] as &[u8]).into(),
    }
}

fn expect(field: &Field, kind: u8, wanted: u8) -> Result<(), Error> {
    if kind == wanted {
        return Ok(());
    }
    let mut name = field.name.chars();
    let field = name.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(name).collect();
    Err(Error::WrongWireType { wire: kind, field })
}

fn wire_type(of: Type) -> u8 {
    match of {
        Type::Int32 | Type::Int64 | Type::Bool => VARINT,
        Type::Double => FIXED64,
        Type::Text | Type::Bytes | Type::Message(_) => BYTES,
    }
}

fn scalar(field: &Field, of: Type, kind: u8, reader: &mut Reader<'_>) -> Result<Value, Error> {
    expect(field, kind, wire_type(of))?;
    Ok(match of {
        Type::Int32 => (reader.varint()? as i32).into(),
        Type::Int64 => (reader.varint()? as i64).into(),
        Type::Bool => (reader.varint()? != 0).into(),
        Type::Double => double(reader.double()?),
        Type::Text => text(reader.bytes()?).into(),
        Type::Bytes => BASE64.encode(reader.bytes()?).into(),
        Type::Message(_) => Value::Null,
    })
}

/// Go strings may hold any bytes; as JSON they are written with replacement characters.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A whole number is written without a fraction; infinities have no form in JSON.
fn double(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        return (value as i64).into();
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

fn zero(of: Type) -> Value {
    match of {
        Type::Int32 | Type::Int64 | Type::Double => 0.into(),
        Type::Bool => false.into(),
        Type::Text => "".into(),
        // A slice that is nil.
        Type::Bytes | Type::Message(_) => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// A message of the kind at `at`, with its own limits.
pub(crate) fn message(at: usize, bytes: &[u8]) -> Result<Value, Error> {
    Decoder::new().value(at, bytes, MAX_DEPTH)
}
