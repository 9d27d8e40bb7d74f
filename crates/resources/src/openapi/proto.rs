//! OpenAPI 2 as protobuf, in the messages of gnostic's `openapi.v2` package, written by hand.
//!
//! Only fields that our documents have are written. Values of any shape (defaults, enums, extensions) travel as
//! text: YAML in the message, for which JSON serves.

use serde_json::{Map, Value};

/// A message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push((n as u8) | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }

    /// Text; the empty one is not written.
    fn text(&mut self, field: u32, value: Option<&Value>) {
        if let Some(Value::String(s)) = value
            && !s.is_empty()
        {
            self.bytes(field, s.as_bytes());
        }
    }

    fn texts(&mut self, field: u32, value: Option<&Value>) {
        for item in value.and_then(Value::as_array).into_iter().flatten() {
            if let Some(s) = item.as_str() {
                self.bytes(field, s.as_bytes());
            }
        }
    }

    fn flag(&mut self, field: u32, value: Option<&Value>) {
        if value == Some(&Value::Bool(true)) {
            self.tag(field, 0);
            self.varint(1);
        }
    }

    fn integer(&mut self, field: u32, value: Option<&Value>) {
        if let Some(n) = value.and_then(Value::as_i64).filter(|n| *n != 0) {
            self.tag(field, 0);
            self.varint(n as u64);
        }
    }

    fn double(&mut self, field: u32, value: Option<&Value>) {
        if let Some(n) = value.and_then(Value::as_f64).filter(|n| *n != 0.0) {
            self.tag(field, 1);
            self.0.extend_from_slice(&n.to_le_bytes());
        }
    }

    /// `Any`, of which only the text is set.
    fn any(&mut self, field: u32, value: &Value) {
        let mut any = Message::default();
        any.bytes(2, format!("{value}\n").as_bytes());
        self.message(field, &any);
    }

    /// `NamedAny` for each `x-` field.
    fn extensions(&mut self, field: u32, object: &Map<String, Value>) {
        for (name, value) in object.iter().filter(|(k, _)| k.starts_with("x-")) {
            let mut named = Message::default();
            named.bytes(1, name.as_bytes());
            named.any(2, value);
            self.message(field, &named);
        }
    }
}

/// `Document`, with the repeated entries of its paths and definitions.
pub(super) fn document(title: &str, version: &str, paths: &[u8], definitions: &[u8]) -> Vec<u8> {
    let mut info = Message::default();
    info.bytes(1, title.as_bytes());
    info.bytes(2, version.as_bytes());
    let mut out = Message(Vec::with_capacity(paths.len() + definitions.len() + 128));
    out.bytes(1, b"2.0");
    out.message(2, &info);
    out.bytes(8, paths);
    out.bytes(9, definitions);
    out.0
}

/// Entries of `Paths`.
pub(super) fn paths(paths: &Map<String, Value>) -> Vec<u8> {
    named(2, paths, path_item)
}

/// Entries of `Definitions`.
pub(super) fn definitions(definitions: &Map<String, Value>) -> Vec<u8> {
    named(1, definitions, schema)
}

/// Entries of any map: messages of a name and a value.
fn named(field: u32, map: &Map<String, Value>, write: fn(&Map<String, Value>) -> Message) -> Vec<u8> {
    let mut out = Message::default();
    for (name, value) in map {
        let Value::Object(value) = value else { continue };
        let mut entry = Message::default();
        entry.bytes(1, name.as_bytes());
        entry.message(2, &write(value));
        out.message(field, &entry);
    }
    out.0
}

fn path_item(item: &Map<String, Value>) -> Message {
    let mut out = Message::default();
    let methods =
        [("get", 2), ("put", 3), ("post", 4), ("delete", 5), ("options", 6), ("head", 7), ("patch", 8)];
    for (method, field) in methods {
        if let Some(Value::Object(o)) = item.get(method) {
            out.message(field, &operation(o));
        }
    }
    parameters(&mut out, 9, item);
    out.extensions(10, item);
    out
}

fn operation(o: &Map<String, Value>) -> Message {
    let mut out = Message::default();
    out.texts(1, o.get("tags"));
    out.text(3, o.get("description"));
    out.text(5, o.get("operationId"));
    out.texts(6, o.get("produces"));
    out.texts(7, o.get("consumes"));
    parameters(&mut out, 8, o);
    if let Some(Value::Object(responses)) = o.get("responses") {
        let list = named(1, responses, |r| {
            let mut response = Message::default();
            response.text(1, r.get("description"));
            if let Some(Value::Object(s)) = r.get("schema") {
                let mut item = Message::default();
                item.message(1, &schema(s));
                response.message(2, &item);
            }
            let mut value = Message::default();
            value.message(1, &response);
            value
        });
        out.bytes(9, &list);
    }
    out.texts(10, o.get("schemes"));
    out.extensions(13, o);
    out
}

fn parameters(out: &mut Message, field: u32, of: &Map<String, Value>) {
    for p in of.get("parameters").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
    {
        let mut parameter = Message::default();
        match p.get("in").and_then(Value::as_str) {
            Some("body") => {
                let mut body = Message::default();
                body.text(1, p.get("description"));
                body.text(2, p.get("name"));
                body.text(3, p.get("in"));
                body.flag(4, p.get("required"));
                if let Some(Value::Object(s)) = p.get("schema") {
                    body.message(5, &schema(s));
                }
                parameter.message(1, &body);
            }
            place => {
                // The fields of query parameters are shifted by one that path parameters lack.
                let (kind, shift) = if place == Some("path") { (4, 0) } else { (3, 1) };
                let mut other = Message::default();
                other.flag(1, p.get("required"));
                other.text(2, p.get("in"));
                other.text(3, p.get("description"));
                other.text(4, p.get("name"));
                other.text(5 + shift, p.get("type"));
                other.text(6 + shift, p.get("format"));
                other.flag(19 + shift, p.get("uniqueItems"));
                let mut non_body = Message::default();
                non_body.message(kind, &other);
                parameter.message(2, &non_body);
            }
        }
        let mut item = Message::default();
        item.message(1, &parameter);
        out.message(field, &item);
    }
}

fn schema(s: &Map<String, Value>) -> Message {
    let mut out = Message::default();
    out.text(1, s.get("$ref"));
    out.text(2, s.get("format"));
    out.text(3, s.get("title"));
    out.text(4, s.get("description"));
    if let Some(default) = s.get("default") {
        out.any(5, default);
    }
    out.double(6, s.get("multipleOf"));
    out.double(7, s.get("maximum"));
    out.flag(8, s.get("exclusiveMaximum"));
    out.double(9, s.get("minimum"));
    out.flag(10, s.get("exclusiveMinimum"));
    out.integer(11, s.get("maxLength"));
    out.integer(12, s.get("minLength"));
    out.text(13, s.get("pattern"));
    out.integer(14, s.get("maxItems"));
    out.integer(15, s.get("minItems"));
    out.flag(16, s.get("uniqueItems"));
    out.integer(17, s.get("maxProperties"));
    out.integer(18, s.get("minProperties"));
    out.texts(19, s.get("required"));
    for value in s.get("enum").and_then(Value::as_array).into_iter().flatten() {
        out.any(20, value);
    }
    match s.get("additionalProperties") {
        Some(Value::Object(inner)) => {
            let mut item = Message::default();
            item.message(1, &schema(inner));
            out.message(21, &item);
        }
        Some(Value::Bool(b)) => {
            let mut item = Message::default();
            item.tag(2, 0);
            item.varint(u64::from(*b));
            out.message(21, &item);
        }
        _ => {}
    }
    if let Some(Value::String(kind)) = s.get("type") {
        let mut item = Message::default();
        item.bytes(1, kind.as_bytes());
        out.message(22, &item);
    }
    if let Some(Value::Object(inner)) = s.get("items") {
        let mut item = Message::default();
        item.message(1, &schema(inner));
        out.message(23, &item);
    }
    if let Some(Value::Object(properties)) = s.get("properties") {
        out.bytes(25, &named(1, properties, schema));
    }
    if let Some(example) = s.get("example") {
        out.any(30, example);
    }
    out.extensions(31, s);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn a_definition_is_written_field_by_field() {
        let definitions = json!({"a": {"type": "string"}});
        let written = super::definitions(definitions.as_object().unwrap());
        // NamedSchema{name: "a", value: Schema{type: TypeItem{value: "string"}}}
        assert_eq!(written, b"\x0a\x10\x0a\x01a\x12\x0b\xb2\x01\x08\x0a\x06string");
    }

    #[test]
    fn numbers_flags_and_extensions_have_their_wire_types() {
        let s = json!({"minLength": 300, "maximum": 1.5, "uniqueItems": true, "x-k": [1]});
        let written = super::schema(s.as_object().unwrap()).0;
        let want = [
            b"\x39\x00\x00\x00\x00\x00\x00\xf8\x3f".as_slice(),
            b"\x60\xac\x02",
            b"\x80\x01\x01",
            b"\xfa\x01\x0d\x0a\x03x-k\x12\x06\x12\x04[1]\n",
        ]
        .concat();
        assert_eq!(written, want);
    }
}
