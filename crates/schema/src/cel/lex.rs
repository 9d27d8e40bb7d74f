//! Tokens of the Common Expression Language.

use std::sync::Arc;

use super::value::Val;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Ident(Box<str>),
    /// `` `a-b` ``: a field's name as it is.
    Quoted(Box<str>),
    Literal(Val),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// Longer signs first.
const SIGNS: [&str; 26] = [
    "&&", "||", "<=", ">=", "==", "!=", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "!", "<", ">", "+",
    "-", "*", "/", "%", "=", "|",
];

/// Words that are no names.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Splits a source; the error has the byte where it is.
pub(super) fn tokens(source: &str) -> Result<Vec<(usize, Token)>, (usize, String)> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let start = at;
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let token = if let Some((token, used)) = text(rest).map_err(|why| (start, why))? {
            at += used;
            token
        } else if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit())) {
            let (token, used) = number(rest).map_err(|why| (start, why))?;
            at += used;
            token
        } else if c.is_ascii_alphabetic() || c == '_' {
            let used = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            at += used;
            match &rest[..used] {
                "true" => Token::Literal(Val::Bool(true)),
                "false" => Token::Literal(Val::Bool(false)),
                "null" => Token::Literal(Val::Null),
                "in" => Token::Sign("in"),
                word => Token::Ident(word.into()),
            }
        } else if c == '`' {
            let used = rest[1..].find('`').ok_or((start, "unterminated field name".to_owned()))?;
            at += used + 2;
            Token::Quoted(rest[1..=used].into())
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            at += sign.len();
            Token::Sign(sign)
        } else {
            return Err((start, format!("Syntax error: token recognition error at: '{c}'")));
        };
        out.push((start, token));
    }
    out.push((source.len(), Token::End));
    Ok(out)
}

fn number(rest: &str) -> Result<(Token, usize), String> {
    let bad = |text: &str| format!("invalid numeric literal '{text}'");
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let digits = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let n = u64::from_str_radix(&hex[..digits], 16).map_err(|_| bad(rest))?;
        if hex[digits..].starts_with(['u', 'U']) {
            return Ok((Token::Literal(Val::Uint(n)), digits + 3));
        }
        let n = i64::try_from(n).map_err(|_| bad(rest))?;
        return Ok((Token::Literal(Val::Int(n)), digits + 2));
    }
    let b = rest.as_bytes();
    let digits = |mut i: usize| {
        while i < b.len() && b[i].is_ascii_digit() {
            i += 1;
        }
        i
    };
    let mut end = digits(0);
    let mut float = false;
    if b.get(end) == Some(&b'.') && b.get(end + 1).is_some_and(u8::is_ascii_digit) {
        float = true;
        end = digits(end + 1);
    }
    if let Some(b'e' | b'E') = b.get(end) {
        let sign = usize::from(matches!(b.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            float = true;
            end = exponent;
        }
    }
    let text = &rest[..end];
    if float {
        let v: f64 = text.parse().map_err(|_| bad(text))?;
        return Ok((Token::Literal(Val::Double(v)), end));
    }
    if rest[end..].starts_with(['u', 'U']) {
        let n = text.parse().map_err(|_| bad(text))?;
        return Ok((Token::Literal(Val::Uint(n)), end + 1));
    }
    // The least integer has no positive twin; the parser gives it its sign.
    match text.parse::<u64>().map_err(|_| bad(text))? {
        n if n <= i64::MAX as u64 => Ok((Token::Literal(Val::Int(n as i64)), end)),
        n if n == 1 << 63 => Ok((Token::Literal(Val::Int(i64::MIN)), end)),
        _ => Err(bad(text)),
    }
}

/// A string or bytes literal, if one begins here.
fn text(rest: &str) -> Result<Option<(Token, usize)>, String> {
    let prefix = rest.bytes().take_while(|b| matches!(b, b'r' | b'R' | b'b' | b'B')).count();
    let (flags, body) = rest.split_at(prefix.min(2));
    let Some(quote) = body.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return Ok(None) };
    let raw = flags.contains(['r', 'R']);
    let bytes = flags.contains(['b', 'B']);
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let (mark, long) = if body.starts_with(&triple) { (triple.as_str(), true) } else { (&body[..1], false) };
    let inner = &body[mark.len()..];
    let mut out: Vec<u8> = Vec::new();
    let mut i = 0;
    loop {
        let here = &inner[i..];
        if here.starts_with(mark) {
            let used = flags.len() + mark.len() + i + mark.len();
            let token = if bytes {
                Val::Bytes(out.into())
            } else {
                Val::String(Arc::from(
                    String::from_utf8(out).map_err(|_| "invalid UTF-8 in a string".to_owned())?,
                ))
            };
            return Ok(Some((Token::Literal(token), used)));
        }
        let Some(c) = here.chars().next() else { return Err("unterminated string literal".into()) };
        if c == '\n' && !long {
            return Err("unterminated string literal".into());
        }
        if c == '\\' && !raw {
            let used = escape(&here[1..], bytes, &mut out)?;
            i += 1 + used;
            continue;
        }
        if c == '\\' {
            // In a raw string a backslash still keeps the quote behind it from ending the string.
            let next = here[1..].chars().next().map_or(0, char::len_utf8);
            out.extend_from_slice(&here.as_bytes()[..1 + next]);
            i += 1 + next;
            continue;
        }
        out.extend_from_slice(&here.as_bytes()[..c.len_utf8()]);
        i += c.len_utf8();
    }
}

/// What follows a backslash; returns how much of it was used.
fn escape(rest: &str, bytes: bool, out: &mut Vec<u8>) -> Result<usize, String> {
    let bad = || "invalid escape sequence in a string".to_owned();
    let Some(c) = rest.chars().next() else { return Err(bad()) };
    let simple = match c {
        'a' => Some(7),
        'b' => Some(8),
        'f' => Some(12),
        'n' => Some(b'\n'),
        'r' => Some(b'\r'),
        't' => Some(b'\t'),
        'v' => Some(11),
        '\\' | '\'' | '"' | '`' | '?' => Some(c as u8),
        _ => None,
    };
    if let Some(b) = simple {
        out.push(b);
        return Ok(1);
    }
    let (digits, radix, skip) = match c {
        'x' | 'X' => (2, 16, 1),
        'u' => (4, 16, 1),
        'U' => (8, 16, 1),
        '0'..='3' => (3, 8, 0),
        _ => return Err(bad()),
    };
    let text = rest.get(skip..skip + digits).ok_or_else(bad)?;
    let n = u32::from_str_radix(text, radix).map_err(|_| bad())?;
    match c {
        'x' | 'X' | '0'..='3' if bytes => out.push(u8::try_from(n).map_err(|_| bad())?),
        _ => {
            let c = char::from_u32(n).ok_or_else(bad)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(skip + digits)
}
