//! JSON as the recorder wrote it: a space after each comma and colon, nothing but ASCII.
//!
//! The reference quotes bodies in some errors, so their spacing is part of the conversation.

use std::io;

use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for unit in fragment.encode_utf16() {
            match u8::try_from(unit) {
                Ok(byte) if byte.is_ascii() => writer.write_all(&[byte])?,
                _ => write!(writer, "\\u{unit:04x}")?,
            }
        }
        Ok(())
    }
}

/// A body's text.
pub(super) fn text(value: &Value) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, Spaced);
    serde::Serialize::serialize(value, &mut serializer).map_err(|e| e.to_string())?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spaces_and_ascii() {
        let value = json!({"a": [1, "ü\"𝄞"], "b": {}});
        assert_eq!(
            String::from_utf8(text(&value).unwrap()).unwrap(),
            r#"{"a": [1, "\u00fc\"\ud834\udd1e"], "b": {}}"#
        );
    }
}
