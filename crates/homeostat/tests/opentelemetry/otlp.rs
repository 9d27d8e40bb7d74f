//! Reads what an `ExportTraceServiceRequest` says of resources and spans, by the numbers of its fields.
//!
//! See `opentelemetry/proto/trace/v1/trace.proto` of opentelemetry-proto. It panics on what is no protobuf.

use std::collections::BTreeMap;

type Attributes = BTreeMap<String, String>;

/// A span, as far as the test asks about it.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) id: Vec<u8>,
    /// Empty where there is none.
    pub(crate) parent: Vec<u8>,
    pub(crate) name: String,
    pub(crate) attributes: Attributes,
    /// 0: unset, 1: ok, 2: error.
    pub(crate) status: u64,
    pub(crate) description: String,
}

impl Span {
    pub(crate) fn is(&self, key: &str, value: &str) -> bool {
        self.attributes.get(key).is_some_and(|v| v == value)
    }
}

/// The attributes of all resources.
pub(crate) fn resource(request: &[u8]) -> Attributes {
    let resources = messages(request, 1).into_iter().flat_map(|spans| messages(spans, 1));
    resources.flat_map(|resource| attributes(resource, 1)).collect()
}

/// All spans.
pub(crate) fn spans(request: &[u8]) -> Vec<Span> {
    let scopes = messages(request, 1).into_iter().flat_map(|spans| messages(spans, 2));
    scopes.flat_map(|scope| messages(scope, 2)).map(span).collect()
}

fn span(bytes: &[u8]) -> Span {
    let status = messages(bytes, 15).pop().unwrap_or_default();
    Span {
        id: messages(bytes, 2).concat(),
        parent: messages(bytes, 4).concat(),
        name: text(bytes, 5),
        attributes: attributes(bytes, 9),
        status: fields(status)
            .find_map(|field| match field {
                (3, Field::Number(code)) => Some(code),
                _ => None,
            })
            .unwrap_or(0),
        description: text(status, 2),
    }
}

/// Attributes that are texts.
fn attributes(bytes: &[u8], field: u64) -> Attributes {
    let pair = |pair| (text(pair, 1), messages(pair, 2).into_iter().map(|v| text(v, 1)).collect());
    messages(bytes, field).into_iter().map(pair).collect()
}

fn text(bytes: &[u8], field: u64) -> String {
    String::from_utf8(messages(bytes, field).concat()).unwrap()
}

/// All that a field with a length holds.
fn messages(bytes: &[u8], wanted: u64) -> Vec<&[u8]> {
    fields(bytes)
        .filter_map(|field| match field {
            (number, Field::Bytes(inner)) if number == wanted => Some(inner),
            _ => None,
        })
        .collect()
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, with their numbers.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let tag = number(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(number(&mut bytes)),
            1 => Field::Bytes(take(&mut bytes, 8)),
            2 => {
                let length = number(&mut bytes).try_into().unwrap();
                Field::Bytes(take(&mut bytes, length))
            }
            5 => Field::Bytes(take(&mut bytes, 4)),
            other => panic!("no wire type: {other}"),
        };
        Some((tag >> 3, field))
    })
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

/// A varint.
fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}
