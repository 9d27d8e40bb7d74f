//! The envelope around a message: four bytes of magic, then `runtime.Unknown` with the object's version and kind.
//!
//! ```text
//! 6b 38 73 00                     k8s\0
//! 0a <len> 0a <len> v1 12 <len> Pod    1: typeMeta {1: apiVersion, 2: kind}
//! 12 <len> <message>              2: raw
//! 1a 00 22 00                     3: contentEncoding, 4: contentType, both empty
//! ```
//!
//! Frames of a watch are bare `WatchEvent`s after their length, with the object in an envelope inside.

use std::borrow::Cow;

use serde_json::Value;

use crate::descriptor::messages;
use crate::wire::{BYTES, Reader, begin, end, put_bytes, put_tag, put_varint};
use crate::{Error, transcode};

/// What every body begins with.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// An envelope, read.
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: Cow<'a, str>,
    pub(crate) kind: Cow<'a, str>,
    pub(crate) raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads what stands around a message.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let rest = match bytes.strip_prefix(MAGIC) {
            _ if bytes.is_empty() => return Err(Error::EmptyData),
            None => return Err(Error::Prefix),
            Some([]) => return Err(Error::EmptyBody),
            Some(rest) => rest,
        };
        let mut out = Self { api_version: "".into(), kind: "".into(), raw: &[] };
        let mut reader = Reader::new(rest);
        while !reader.is_empty() {
            match reader.tag("Unknown")? {
                (1, BYTES) => {
                    let mut inner = Reader::new(reader.bytes()?);
                    while !inner.is_empty() {
                        match inner.tag("TypeMeta")? {
                            (1, BYTES) => out.api_version = String::from_utf8_lossy(inner.bytes()?),
                            (2, BYTES) => out.kind = String::from_utf8_lossy(inner.bytes()?),
                            (1, wire) => return Err(wrong(wire, "APIVersion")),
                            (2, wire) => return Err(wrong(wire, "Kind")),
                            (_, kind) => inner.skip(kind)?,
                        }
                    }
                }
                (2, BYTES) => out.raw = reader.bytes()?,
                (1, wire) => return Err(wrong(wire, "TypeMeta")),
                (2, wire) => return Err(wrong(wire, "Raw")),
                (_, kind) => reader.skip(kind)?,
            }
        }
        Ok(out)
    }

    /// Takes version and kind from elsewhere where the envelope names none.
    pub(crate) fn default(&mut self, api_version: &'a str, kind: &'a str) {
        if self.kind.is_empty() {
            self.kind = kind.into();
        }
        if self.api_version.is_empty() {
            self.api_version = api_version.into();
        }
    }

    /// The message of the kind that the envelope names.
    pub(crate) fn message(&self) -> Result<usize, Error> {
        if self.kind.is_empty() {
            return Err(Error::NoKind { api_version: self.api_version.to_string() });
        }
        if self.api_version.is_empty() {
            return Err(Error::NoVersion { kind: self.kind.to_string() });
        }
        messages().kind(&self.api_version, &self.kind).ok_or_else(|| Error::UnknownKind {
            api_version: self.api_version.to_string(),
            kind: self.kind.to_string(),
        })
    }

    /// Writes version and kind into an object.
    pub(crate) fn name(&self, value: &mut Value) {
        if let Value::Object(map) = value {
            map.insert("apiVersion".into(), self.api_version.as_ref().into());
            map.insert("kind".into(), self.kind.as_ref().into());
        }
    }
}

fn wrong(wire: u8, field: &str) -> Error {
    Error::WrongWireType { wire, field: field.to_owned() }
}

/// Whether objects of a kind have a form in protobuf.
#[must_use]
pub fn knows(api_version: &str, kind: &str) -> bool {
    messages().kind(api_version, kind).is_some()
}

/// All kinds that have one, as (apiVersion, kind).
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    messages().kinds()
}

/// Reads a body: an object with its `apiVersion` and `kind`.
pub fn decode(body: &[u8]) -> Result<Value, Error> {
    decode_as(body, "", "")
}

/// Reads a body whose envelope may leave out version or kind, which are then these.
pub fn decode_as(body: &[u8], api_version: &str, kind: &str) -> Result<Value, Error> {
    let mut envelope = Envelope::read(body)?;
    envelope.default(api_version, kind);
    let mut value = crate::decode::message(envelope.message()?, envelope.raw)?;
    envelope.name(&mut value);
    Ok(value)
}

/// Writes an object that names its `apiVersion` and `kind`.
pub fn encode(object: &Value) -> Result<Vec<u8>, Error> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    encode_as(object, text("apiVersion"), text("kind"))
}

/// Writes an object as one of this version and kind, whatever it names itself.
pub fn encode_as(object: &Value, api_version: &str, kind: &str) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(512);
    put_envelope(&mut out, api_version, kind, |at, out| crate::encode::message(at, object, out))?;
    Ok(out)
}

/// Writes an object that comes as JSON, as one of this version and kind, without parsing it into a value.
pub fn encode_json(object: &[u8], api_version: &str, kind: &str) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(object.len() / 2 + 256);
    put_envelope(&mut out, api_version, kind, |at, out| transcode::message(at, object, out))?;
    Ok(out)
}

fn put_envelope(
    out: &mut Vec<u8>,
    api_version: &str,
    kind: &str,
    write: impl FnOnce(usize, &mut Vec<u8>) -> Result<(), Error>,
) -> Result<(), Error> {
    let at = messages().kind(api_version, kind).ok_or_else(|| Error::NotMarshalable(kind.to_owned()))?;
    out.extend_from_slice(MAGIC);
    let meta = begin(out, 1);
    put_bytes(out, 1, api_version.as_bytes());
    put_bytes(out, 2, kind.as_bytes());
    end(out, meta);
    let raw = begin(out, 2);
    write(at, out)?;
    end(out, raw);
    put_bytes(out, 3, &[]);
    put_bytes(out, 4, &[]);
    Ok(())
}

/// A frame of a watch's stream: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`, and the object, which names
/// its `apiVersion` and `kind`.
pub fn encode_watch_event(event: &str, object: &Value) -> Result<Vec<u8>, Error> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    encode_watch_event_as(event, object, text("apiVersion"), text("kind"))
}

/// The same for an object of this version and kind, whatever it names itself.
pub fn encode_watch_event_as(
    event: &str,
    object: &Value,
    api_version: &str,
    kind: &str,
) -> Result<Vec<u8>, Error> {
    put_event(event, |out| {
        put_envelope(out, api_version, kind, |at, out| crate::encode::message(at, object, out))
    })
}

/// The same for an object that comes as JSON, without parsing it into a value.
pub fn encode_watch_event_json(
    event: &str,
    object: &[u8],
    api_version: &str,
    kind: &str,
) -> Result<Vec<u8>, Error> {
    put_event(event, |out| {
        put_envelope(out, api_version, kind, |at, out| transcode::message(at, object, out))
    })
}

fn put_event(event: &str, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Result<Vec<u8>, Error> {
    const LENGTH: usize = size_of::<u32>();
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&[0; LENGTH]);
    put_bytes(&mut out, 1, event.as_bytes());
    let extension = begin(&mut out, 2);
    let raw = begin(&mut out, 1);
    write(&mut out)?;
    end(&mut out, raw);
    end(&mut out, extension);
    let length = u32::try_from(out.len() - LENGTH).map_err(|_| Error::TooMany)?;
    out[..LENGTH].copy_from_slice(&length.to_be_bytes());
    Ok(out)
}

/// Writes a list item by item, so that the values of all need not be in memory at once.
pub struct ListWriter {
    /// The list's message.
    list: usize,
    /// The items' message.
    at: usize,
    /// The number of the list's items.
    number: u32,
    api_version: String,
    kind: String,
    items: Vec<u8>,
}

impl ListWriter {
    /// A list of the kind `kind` (`PodList`); `None` where it has no form in protobuf.
    #[must_use]
    pub fn new(api_version: &str, kind: &str) -> Option<Self> {
        let list = messages().kind(api_version, kind)?;
        let items = messages().get(list).fields.iter().find(|f| f.name == "items")?;
        let crate::descriptor::Type::Message(at) = items.of else { return None };
        Some(Self {
            list,
            at,
            number: items.number,
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            items: Vec::new(),
        })
    }

    /// Adds an item.
    pub fn item(&mut self, object: &Value) -> Result<(), Error> {
        let at = begin(&mut self.items, self.number);
        crate::encode::message(self.at, object, &mut self.items)?;
        end(&mut self.items, at);
        Ok(())
    }

    /// Adds an item that comes as JSON, without parsing it into a value.
    pub fn item_json(&mut self, object: &[u8]) -> Result<(), Error> {
        let at = begin(&mut self.items, self.number);
        transcode::message(self.at, object, &mut self.items)?;
        end(&mut self.items, at);
        Ok(())
    }

    /// The bytes of the list with this `metadata`.
    pub fn finish(self, metadata: &Value) -> Result<Vec<u8>, Error> {
        let head = Value::Object([("metadata".to_owned(), metadata.clone())].into_iter().collect());
        let mut start = Vec::new();
        crate::encode::message(self.list, &head, &mut start)?;
        let mut out = Vec::with_capacity(self.items.len() + start.len() + 128);
        out.extend_from_slice(MAGIC);
        let meta = begin(&mut out, 1);
        put_bytes(&mut out, 1, self.api_version.as_bytes());
        put_bytes(&mut out, 2, self.kind.as_bytes());
        end(&mut out, meta);
        put_tag(&mut out, 2, BYTES);
        put_varint(&mut out, (start.len() + self.items.len()) as u64);
        // Fields stand in the order of their numbers.
        let parts = if self.number == 1 { [&self.items, &start] } else { [&start, &self.items] };
        out.extend(parts.into_iter().flatten());
        put_bytes(&mut out, 3, &[]);
        put_bytes(&mut out, 4, &[]);
        Ok(out)
    }
}
