//! What Go's JSON scanner says of bytes that are no JSON. Only run once another parser has failed.
//!
//! Invariant: no recursion; the depth is counted on a stack of its own.

/// Said of values that are nested deeper than allowed.
pub(super) const TOO_DEEP: &str = "exceeded max depth";

const END: &str = "unexpected end of JSON input";

/// The error of Go's scanner; `None` if it finds none.
pub(super) fn error(bytes: &[u8], max_depth: usize) -> Option<String> {
    Scan { bytes, at: 0 }.document(max_depth).err()
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

#[derive(Clone, Copy)]
enum In {
    Object,
    Array,
}

impl Scan<'_> {
    fn space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn fail<T>(&self, context: &str) -> Result<T, String> {
        match self.bytes.get(self.at) {
            None => Err(END.to_owned()),
            Some(b) => Err(format!("invalid character {} {context}", quote(*b))),
        }
    }

    fn document(&mut self, max_depth: usize) -> Result<(), String> {
        let mut stack: Vec<In> = Vec::new();
        loop {
            // A value begins here.
            match self.space() {
                Some(b'{') => {
                    self.at += 1;
                    stack.push(In::Object);
                    if stack.len() > max_depth {
                        return Err(TOO_DEEP.to_owned());
                    }
                    if self.space() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    stack.push(In::Array);
                    if stack.len() > max_depth {
                        return Err(TOO_DEEP.to_owned());
                    }
                    if self.space() != Some(b']') {
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // A value has ended here, or an empty container is about to.
            loop {
                let next = self.space();
                match (stack.last(), next) {
                    (None, None) => return Ok(()),
                    (None, Some(_)) => return self.fail("after top-level value"),
                    (Some(In::Object), Some(b'}')) | (Some(In::Array), Some(b']')) => {
                        self.at += 1;
                        stack.pop();
                    }
                    (Some(In::Object), Some(b',')) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (Some(In::Array), Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (Some(In::Object), _) => return self.fail("after object key:value pair"),
                    (Some(In::Array), _) => return self.fail("after array element"),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), String> {
        if self.space() != Some(b'"') {
            return self.fail("looking for beginning of object key string");
        }
        self.string()?;
        if self.space() != Some(b':') {
            return self.fail("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), String> {
        match self.bytes.get(self.at) {
            Some(b'"') => self.string(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail("looking for beginning of value"),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        for expected in word.bytes() {
            if self.bytes.get(self.at) != Some(&expected) {
                return self.fail(&format!("in literal {word} (expecting {})", quote(expected)));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.bytes.get(self.at) {
                        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
                        Some(b'u') => {
                            for _ in 0..4 {
                                self.at += 1;
                                if !self.bytes.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                                    return self.fail("in \\u hexadecimal character escape");
                                }
                            }
                            self.at += 1;
                        }
                        _ => return self.fail("in string escape code"),
                    }
                }
                Some(b) if *b >= 0x20 => self.at += 1,
                _ => return self.fail("in string literal"),
            }
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Result<(), String> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else if !self.digits() {
            return self.fail("in numeric literal");
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.digits() {
                return self.fail("after decimal point in numeric literal");
            }
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            if !self.digits() {
                return self.fail("in exponent of numeric literal");
            }
        }
        Ok(())
    }
}

/// A byte as Go quotes it in these errors.
fn quote(b: u8) -> String {
    match b {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        0x7f..=0xa0 | 0xad => format!("'\\u{b:04x}'").replace("\\u007f", "\\x7f"),
        b => {
            let quoted = homeostat_model::field::quote(&char::from(b).to_string());
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// Replaces `\ud800` and the like, where they are not one of a pair, by `\ufffd`.
pub(super) fn without_lone_surrogates(text: &str) -> String {
    let unit = |s: &str| -> Option<u32> {
        let hex = s.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(hex, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (taken, text) = match unit(rest) {
            Some(0xd800..0xdc00) => match rest.get(6..).and_then(unit) {
                Some(0xdc00..0xe000) => (12, &rest[..12]),
                _ => (6, "\\ufffd"),
            },
            Some(0xdc00..0xe000) => (6, "\\ufffd"),
            _ => {
                let next = rest[1..].chars().next().map_or(0, char::len_utf8);
                (1 + next, &rest[..1 + next])
            }
        };
        out.push_str(text);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_gos() {
        let cases = [
            ("not json", "invalid character 'o' in literal null (expecting 'u')"),
            ("{\"spec\": {\"repl", END),
            ("", END),
            ("  ", END),
            ("{", END),
            ("{}x", "invalid character 'x' after top-level value"),
            ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("\"a\nb\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("01", "invalid character '1' after top-level value"),
            ("'a'", "invalid character '\\'' looking for beginning of value"),
            ("<a>", "invalid character '<' looking for beginning of value"),
            ("[[[[", TOO_DEEP),
            ("{\"a\":[1,{\"b\":null}]}", ""),
        ];
        for (text, want) in cases {
            assert_eq!(error(text.as_bytes(), 3).unwrap_or_default(), want, "{text}");
        }
    }
}
