//! From JSON's bytes to a message's bytes without a value between them: how stored objects are sent.
//!
//! Fields are written as they come and then put into the order of their numbers, with what is written empty between
//! them; the outcome is byte for byte what `encode` makes of the parsed object. It leaves everything unusual (keys out
//! of order in a map, keys that stand twice, values of a wrong type) to that module: an error here means no more than
//! that.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use crate::descriptor::{Field, Form, Label, Type, messages};
use crate::wire::{FIXED64, VARINT, begin, end, put_bytes, put_tag, put_varint};
use crate::{Error, encode};

/// How a message is put together from the keys of an object.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// What is written, in order.
    steps: Vec<Step>,
    /// By name, the step that a key of the object is.
    keys: Vec<(&'static str, usize)>,
}

#[derive(Debug)]
enum Step {
    /// A field, and what stands there when the object lacks it.
    Field(&'static Field, Box<[u8]>),
    /// An embedded struct begins.
    Begin(u32),
    /// It ends.
    End,
}

/// The plan of a message, made at first use.
fn plan(at: usize) -> &'static Plan {
    static PLANS: OnceLock<Box<[OnceLock<Plan>]>> = OnceLock::new();
    let all = PLANS.get_or_init(|| (0..messages().len()).map(|_| OnceLock::new()).collect());
    all[at].get_or_init(|| {
        let mut plan = Plan::default();
        plan.add(at);
        plan.keys.sort_unstable();
        plan
    })
}

impl Plan {
    fn add(&mut self, at: usize) {
        let message = messages().get(at);
        for field in &message.fields {
            match (field.inline, field.of) {
                (true, Type::Message(inner)) => {
                    self.steps.push(Step::Begin(field.number));
                    self.add(inner);
                    self.steps.push(Step::End);
                }
                _ => {
                    self.keys.push((field.name, self.steps.len()));
                    self.steps.push(Step::Field(field, encode::absent(message, field).into()));
                }
            }
        }
    }
}

/// Appends the message of the object that `json` is to `out`.
pub(crate) fn message(at: usize, json: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    if quickly(at, json, out) {
        return Ok(());
    }
    let value: Value = serde_json::from_slice(json)
        .map_err(|e| Error::Json { message: messages().get(at).short(), why: e.to_string() })?;
    encode::message(at, &value, out)
}

/// The same as far as this module does it; if not, nothing is appended.
pub(crate) fn quickly(at: usize, json: &[u8], out: &mut Vec<u8>) -> bool {
    if messages().get(at).form != Form::Object {
        return false;
    }
    let start = out.len();
    let mut transcoder = Transcoder { out: std::mem::take(out), ordered: Vec::new(), spans: Vec::new() };
    let mut reader = Deserializer::from_slice(json);
    let done =
        Object { to: &mut transcoder, at }.deserialize(&mut reader).unwrap_or(false) && reader.end().is_ok();
    *out = transcoder.out;
    if !done {
        out.truncate(start);
    }
    done
}

/// Where a step's bytes are.
struct Span {
    step: usize,
    start: usize,
    end: usize,
}

struct Transcoder {
    out: Vec<u8>,
    /// Room for putting fields in order.
    ordered: Vec<u8>,
    /// Of all messages that are being written, the outermost first.
    spans: Vec<Span>,
}

impl Transcoder {
    /// Puts what was written from `base` on in the plan's order; `first` is the message's first span.
    fn arrange(&mut self, plan: &Plan, base: usize, first: usize) -> bool {
        let spans = &mut self.spans[first..];
        spans.sort_unstable_by_key(|s| s.step);
        if spans.windows(2).any(|w| w[0].step == w[1].step) {
            return false;
        }
        self.ordered.clear();
        let mut spans = spans.iter().peekable();
        let mut open = Vec::new();
        for (i, step) in plan.steps.iter().enumerate() {
            match step {
                Step::Begin(number) => open.push(begin(&mut self.ordered, *number)),
                Step::End => {
                    if let Some(at) = open.pop() {
                        end(&mut self.ordered, at);
                    }
                }
                Step::Field(_, absent) => match spans.next_if(|s| s.step == i) {
                    Some(s) if s.end > s.start => {
                        self.ordered.extend_from_slice(&self.out[s.start..s.end]);
                    }
                    _ => self.ordered.extend_from_slice(absent),
                },
            }
        }
        self.out.truncate(base);
        self.out.extend_from_slice(&self.ordered);
        self.spans.truncate(first);
        true
    }
}

/// The content of a message of form [`Form::Object`]; the outcome is whether it was not null.
struct Object<'t> {
    to: &'t mut Transcoder,
    at: usize,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let plan = plan(self.at);
        let (base, first) = (self.to.out.len(), self.to.spans.len());
        while let Some(found) = map.next_key_seed(Key(plan))? {
            let Some(step) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let Step::Field(field, _) = &plan.steps[step] else { continue };
            let start = self.to.out.len();
            map.next_value_seed(Whole { to: &mut *self.to, field })?;
            self.to.spans.push(Span { step, start, end: self.to.out.len() });
        }
        if self.to.arrange(plan, base, first) { Ok(true) } else { Err(A::Error::custom("a key twice")) }
    }
}

/// The step that a key stands for.
struct Key<'p>(&'p Plan);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        let keys = &self.0.keys;
        Ok(keys.binary_search_by(|(name, _)| (*name).cmp(key)).ok().map(|i| keys[i].1))
    }
}

/// A field with all its values, tags included. Null is nothing.
struct Whole<'t> {
    to: &'t mut Transcoder,
    field: &'static Field,
}

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.field.label {
            Label::One => {
                One { to: self.to, field: self.field, number: self.field.number }.deserialize(from)?;
                Ok(())
            }
            Label::Many | Label::Map => from.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a map")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if self.field.label != Label::Many {
            return Err(A::Error::custom("a list"));
        }
        loop {
            let one = One { to: &mut *self.to, field: self.field, number: self.field.number };
            match list.next_element_seed(one)? {
                None => return Ok(()),
                Some(true) => {}
                Some(false) => return Err(A::Error::custom("null in a list")),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.field.label != Label::Map {
            return Err(A::Error::custom("a map"));
        }
        let mut last = None;
        loop {
            let entry = Entry { to: &mut *self.to, number: self.field.number, last: &mut last };
            let Some(at) = map.next_key_seed(entry)? else { return Ok(()) };
            let before = self.to.out.len();
            let there = map.next_value_seed(One { to: &mut *self.to, field: self.field, number: 2 })?;
            if !there {
                return Err(A::Error::custom("null in a map"));
            }
            // Bytes that are empty are left out of an entry.
            if self.field.of == Type::Bytes && self.to.out.len() == before + 2 {
                self.to.out.truncate(before);
            }
            end(&mut self.to.out, at);
        }
    }
}

/// Begins an entry of a map with its key; the outcome is where the entry's content begins.
struct Entry<'t> {
    to: &'t mut Transcoder,
    number: u32,
    /// The key before it.
    last: &'t mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Entry<'_> {
    type Value = usize;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<usize, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Entry<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<usize, E> {
        if self.last.as_deref().is_some_and(|last| last >= key) {
            return Err(E::custom("keys out of order"));
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.push_str(key);
        let at = begin(&mut self.to.out, self.number);
        put_bytes(&mut self.to.out, 1, key.as_bytes());
        Ok(at)
    }
}

/// One value of a field with its tag; the outcome is whether it was not null, in which case nothing is written.
struct One<'t> {
    to: &'t mut Transcoder,
    field: &'static Field,
    number: u32,
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        let Type::Message(of) = self.field.of else { return from.deserialize_any(self) };
        let start = self.to.out.len();
        let at = begin(&mut self.to.out, self.number);
        let there = match messages().get(of).form {
            Form::Object => Object { to: &mut *self.to, at: of }.deserialize(from)?,
            form @ (Form::Time | Form::MicroTime | Form::Quantity | Form::IntOrString) => {
                from.deserialize_any(Special { to: &mut *self.to, form })?
            }
            Form::Json | Form::RawExtension => {
                let raw = <&RawValue>::deserialize(from)?.get();
                put_bytes(&mut self.to.out, 1, raw.as_bytes());
                raw != "null"
            }
            _ => {
                let value = Value::deserialize(from)?;
                encode::message(of, &value, &mut self.to.out).map_err(D::Error::custom)?;
                !value.is_null()
            }
        };
        if there {
            end(&mut self.to.out, at);
        } else {
            self.to.out.truncate(start);
        }
        Ok(there)
    }
}

/// The content of a message that is a text or a number in JSON; the outcome is whether it was not null.
struct Special<'t> {
    to: &'t mut Transcoder,
    form: Form,
}

impl Visitor<'_> for Special<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<bool, E> {
        let out = &mut self.to.out;
        match self.form {
            Form::Quantity => encode::quantity(out, text),
            Form::IntOrString => encode::int_or_string(out, 1, 0, text),
            form => encode::instant(out, form, text).ok_or_else(|| E::custom("no time"))?,
        }
        Ok(true)
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<bool, E> {
        match (self.form, i32::try_from(n)) {
            (Form::Quantity, _) => encode::quantity(&mut self.to.out, &n.to_string()),
            (Form::IntOrString, Ok(n)) => encode::int_or_string(&mut self.to.out, 0, n, ""),
            _ => return Err(E::custom("a number")),
        }
        Ok(true)
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<bool, E> {
        i64::try_from(n).map_err(E::custom).and_then(|n| self.visit_i64(n))
    }
}

impl One<'_> {
    fn varint<E: serde::de::Error>(self, value: i64) -> Result<bool, E> {
        put_tag(&mut self.to.out, self.number, VARINT);
        put_varint(&mut self.to.out, value as u64);
        Ok(true)
    }

    fn double<E: serde::de::Error>(self, value: f64) -> Result<bool, E> {
        put_tag(&mut self.to.out, self.number, FIXED64);
        self.to.out.extend_from_slice(&value.to_le_bytes());
        Ok(true)
    }
}

impl Visitor<'_> for One<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<bool, E> {
        match self.field.of {
            Type::Bool => self.varint(flag.into()),
            _ => Err(E::custom("a bool")),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<bool, E> {
        match self.field.of {
            Type::Int64 => self.varint(n),
            Type::Int32 if i32::try_from(n).is_ok() => self.varint(n),
            Type::Double => self.double(n as f64),
            _ => Err(E::custom("a number")),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<bool, E> {
        match i64::try_from(n) {
            Ok(n) => self.visit_i64(n),
            Err(_) => Err(E::custom("a number")),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, n: f64) -> Result<bool, E> {
        match self.field.of {
            Type::Double => self.double(n),
            _ => Err(E::custom("a number with a fraction")),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<bool, E> {
        match self.field.of {
            Type::Text => put_bytes(&mut self.to.out, self.number, text.as_bytes()),
            Type::Bytes => {
                let bytes = encode::base64(text).ok_or_else(|| E::custom("not base64"))?;
                put_bytes(&mut self.to.out, self.number, &bytes);
            }
            _ => return Err(E::custom("a text")),
        }
        Ok(true)
    }
}
