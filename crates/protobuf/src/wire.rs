//! The protobuf wire format: tags, numbers and lengths. It knows no messages.
//!
//! Invariant: a reader never goes beyond its bytes; every loop takes at least one byte.
//! Source: protobuf's encoding document; errors as the Go code generated for Kubernetes has them.

use crate::Error;

/// Wire type of numbers of variable length.
pub(crate) const VARINT: u8 = 0;
/// Wire type of eight bytes.
pub(crate) const FIXED64: u8 = 1;
/// Wire type of bytes with a length before them.
pub(crate) const BYTES: u8 = 2;

const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// Reads one message.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field's number and wire type. `message` is what errors call the message.
    pub(crate) fn tag(&mut self, message: &'static str) -> Result<(u32, u8), Error> {
        let wire = self.varint()?;
        let kind = (wire & 7) as u8;
        if kind == END_GROUP {
            return Err(Error::NotAGroup(message));
        }
        // Go keeps the lower 32 bits, and takes them as a signed number.
        let number = (wire >> 3) as u32 as i32;
        if number <= 0 {
            return Err(Error::IllegalTag { message, number, wire });
        }
        Ok((number as u32, kind))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            if shift >= 64 {
                return Err(Error::Overflow);
            }
            let (first, rest) = self.rest.split_first().ok_or(Error::Truncated)?;
            self.rest = rest;
            value |= u64::from(first & 0x7f) << shift;
            if *first < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    pub(crate) fn double(&mut self) -> Result<f64, Error> {
        let (first, rest) = self.rest.split_first_chunk::<8>().ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(f64::from_le_bytes(*first))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.varint()?;
        if length > i64::MAX as u64 {
            return Err(Error::NegativeLength);
        }
        self.take(length)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Error> {
        let length = usize::try_from(length).map_err(|_| Error::Truncated)?;
        let (first, rest) = self.rest.split_at_checked(length).ok_or(Error::Truncated)?;
        self.rest = rest;
        Ok(first)
    }

    /// Passes over the value of a field that nobody knows.
    pub(crate) fn skip(&mut self, kind: u8) -> Result<(), Error> {
        let mut depth = 0usize;
        let mut kind = kind;
        loop {
            match kind {
                VARINT => {
                    self.varint()?;
                }
                FIXED64 => {
                    self.take(8)?;
                }
                BYTES => {
                    self.bytes()?;
                }
                FIXED32 => {
                    self.take(4)?;
                }
                START_GROUP => depth += 1,
                END_GROUP => depth = depth.checked_sub(1).ok_or(Error::EndOfGroup)?,
                other => return Err(Error::IllegalWireType(other)),
            }
            if depth == 0 {
                return Ok(());
            }
            kind = (self.varint()? & 7) as u8;
        }
    }
}

/// Appends a number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a tag.
pub(crate) fn put_tag(out: &mut Vec<u8>, number: u32, kind: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(kind));
}

/// Appends a field of bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, number, BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Begins a field of bytes whose length is not known yet; what is appended until [`end`] is its content.
#[must_use]
pub(crate) fn begin(out: &mut Vec<u8>, number: u32) -> usize {
    put_tag(out, number, BYTES);
    // Most lengths take one byte.
    out.push(0);
    out.len()
}

/// Ends the field whose content began at `at`: its length is put before it.
pub(crate) fn end(out: &mut Vec<u8>, at: usize) {
    let length = out.len() - at;
    if length < 0x80 {
        out[at - 1] = length as u8;
    } else {
        // The length goes after the content, and then before it.
        let tail = out.len();
        put_varint(out, length as u64);
        let size = out.len() - tail;
        let mut prefix = [0; 10];
        prefix[..size].copy_from_slice(&out[tail..]);
        out.truncate(tail + size - 1);
        out.copy_within(at..tail, at + size - 1);
        out[at - 1..at - 1 + size].copy_from_slice(&prefix[..size]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.varint(), Ok(value));
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn nested_bytes_get_their_length() {
        for length in [0usize, 1, 127, 128, 20_000] {
            let mut out = vec![9];
            let at = begin(&mut out, 2);
            out.extend(std::iter::repeat_n(7, length));
            end(&mut out, at);
            let mut expect = vec![9];
            put_bytes(&mut expect, 2, &vec![7; length]);
            assert_eq!(out, expect);
        }
    }

    fn check(bytes: &[u8], expect: Result<(), Error>) {
        let mut reader = Reader::new(bytes);
        let mut got = Ok(());
        while !reader.is_empty() && got.is_ok() {
            got = reader.tag("Pod").and_then(|(_, kind)| reader.skip(kind));
        }
        assert_eq!(got, expect, "{bytes:?}");
    }

    #[test]
    fn broken_bytes_are_told_as_the_reference_does() {
        check(&[], Ok(()));
        check(&[0x08, 0x01, 0x12, 0x01, 0xff, 0x1d, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8], Ok(()));
        check(&[0x0b, 0x08, 0x01, 0x13, 0x14, 0x0c], Ok(()));
        check(&[0x08], Err(Error::Truncated));
        check(&[0x80], Err(Error::Truncated));
        check(&[0x12, 0x05, 1, 2], Err(Error::Truncated));
        check(&[0x0b, 0x08, 0x01], Err(Error::Truncated));
        check(&[0xff; 11], Err(Error::Overflow));
        check(
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            Err(Error::NegativeLength),
        );
        check(&[0x0c], Err(Error::NotAGroup("Pod")));
        check(&[0x0e], Err(Error::IllegalWireType(6)));
        check(&[0x00], Err(Error::IllegalTag { message: "Pod", number: 0, wire: 0 }));
    }
}
