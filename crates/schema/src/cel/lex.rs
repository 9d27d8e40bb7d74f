//! Tokens of the Common Expression Language.
//!
//! What is no token is reported and passed over, so that one text can have several errors. Invariant: tokens begin and
//! end between characters.

use std::sync::Arc;

use super::report::Fault;
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

/// A token, and the bytes that it stands at.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) token: Token,
}

/// Longer signs first.
const SIGNS: [&str; 24] = [
    "&&", "||", "<=", ">=", "==", "!=", "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "!", "<", ">", "+",
    "-", "*", "/", "%",
];

/// Splits a source. The last token is [`Token::End`].
pub(super) fn tokens(source: &str) -> (Vec<Spot>, Vec<Fault>) {
    let (mut out, mut faults) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        if c.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        match token(rest, c) {
            Ok((token, used)) => {
                out.push(Spot { at, end: at + used, token });
                at += used;
            }
            Err(Bad::Literal(why, used)) => {
                faults.push((at, why));
                // Something stands there, so that only this is said of it.
                out.push(Spot { at, end: at + used, token: Token::Literal(Val::Null) });
                at += used;
            }
            Err(Bad::Token(used)) => {
                faults.push((at, format!("Syntax error: token recognition error at: '{}'", &rest[..used])));
                at += used;
            }
        }
    }
    out.push(Spot { at: source.len(), end: source.len(), token: Token::End });
    (out, faults)
}

/// What is no token, and how many bytes of it.
enum Bad {
    /// It reads like a literal: why it is none.
    Literal(String, usize),
    Token(usize),
}

fn token(rest: &str, c: char) -> Result<(Token, usize), Bad> {
    if let Some(found) = text(rest)? {
        return Ok(found);
    }
    if c.is_ascii_digit() || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit())) {
        return number(rest);
    }
    if c.is_ascii_alphabetic() || c == '_' {
        let used = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let token = match &rest[..used] {
            "true" => Token::Literal(Val::Bool(true)),
            "false" => Token::Literal(Val::Bool(false)),
            "null" => Token::Literal(Val::Null),
            "in" => Token::Sign("in"),
            word => Token::Ident(word.into()),
        };
        return Ok((token, used));
    }
    if c == '`' {
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ');
        let used = rest[1..].find(|c| !name(c)).unwrap_or(rest.len() - 1);
        return match rest[1 + used..].chars().next() {
            Some('`') if used > 0 => Ok((Token::Quoted(rest[1..=used].into()), used + 2)),
            next => Err(Bad::Token(1 + used + next.map_or(0, char::len_utf8))),
        };
    }
    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        return Ok((Token::Sign(sign), sign.len()));
    }
    // Of an operator of two characters the second was looked at.
    let two = matches!(c, '&' | '|' | '=').then(|| rest[1..].chars().next()).flatten();
    Err(Bad::Token(c.len_utf8() + two.map_or(0, char::len_utf8)))
}

fn number(rest: &str) -> Result<(Token, usize), Bad> {
    let bad = |what: &str, used| Bad::Literal(format!("invalid {what} literal"), used);
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let digits = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let n = u64::from_str_radix(&hex[..digits], 16);
        if hex[digits..].starts_with(['u', 'U']) {
            return n
                .map(|n| (Token::Literal(Val::Uint(n)), digits + 3))
                .map_err(|_| bad("uint", digits + 3));
        }
        let n = n.ok().and_then(|n| i64::try_from(n).ok()).ok_or_else(|| bad("int", digits + 2))?;
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
        let v = text.parse().ok().filter(|v: &f64| v.is_finite()).ok_or_else(|| bad("double", end))?;
        return Ok((Token::Literal(Val::Double(v)), end));
    }
    if rest[end..].starts_with(['u', 'U']) {
        let n = text.parse().map_err(|_| bad("uint", end + 1))?;
        return Ok((Token::Literal(Val::Uint(n)), end + 1));
    }
    // The least integer has no positive twin; the parser gives it its sign.
    match text.parse::<u64>().map_err(|_| bad("int", end))? {
        n if n <= i64::MAX as u64 => Ok((Token::Literal(Val::Int(n as i64)), end)),
        n if n == 1 << 63 => Ok((Token::Literal(Val::Int(i64::MIN)), end)),
        _ => Err(bad("int", end)),
    }
}

/// A string or bytes literal, if one begins here.
fn text(rest: &str) -> Result<Option<(Token, usize)>, Bad> {
    let prefix = rest.bytes().take_while(|b| matches!(b, b'r' | b'R' | b'b' | b'B')).count();
    let (flags, body) = rest.split_at(prefix.min(2));
    let Some(quote) = body.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return Ok(None) };
    let raw = flags.contains(['r', 'R']);
    let bytes = flags.contains(['b', 'B']);
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let (mark, long) = if body.starts_with(&triple) { (triple.as_str(), true) } else { (&body[..1], false) };
    let begin = flags.len() + mark.len();
    let inner = &body[mark.len()..];
    let mut out: Vec<u8> = Vec::new();
    let mut i = 0;
    loop {
        let here = &inner[i..];
        if here.starts_with(mark) {
            let used = begin + i + mark.len();
            let token = if bytes {
                Val::Bytes(out.into())
            } else {
                Val::String(Arc::from(String::from_utf8(out).map_err(|_| Bad::Token(used))?))
            };
            return Ok(Some((Token::Literal(token), used)));
        }
        let Some(c) = here.chars().next() else { return Err(Bad::Token(rest.len())) };
        if matches!(c, '\n' | '\r') && !long {
            return Err(Bad::Token(begin + i + 1));
        }
        if c == '\\' && !raw {
            let read = |n: usize| begin + i + 1 + n;
            let used =
                escape(&here[1..], bytes, &mut out).map_err(|n| Bad::Token(read(n).min(rest.len())))?;
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

/// What follows a backslash; returns how much of it was used. The error is how much of it was read.
fn escape(rest: &str, bytes: bool, out: &mut Vec<u8>) -> Result<usize, usize> {
    let Some(c) = rest.chars().next() else { return Err(0) };
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
        _ => return Err(c.len_utf8()),
    };
    let good = rest[skip..].chars().take(digits).take_while(|c| c.is_digit(radix)).count();
    let bad = skip + good + rest[skip + good..].chars().next().map_or(0, char::len_utf8);
    let text = rest.get(skip..skip + digits).filter(|_| good == digits).ok_or(bad)?;
    let n = u32::from_str_radix(text, radix).map_err(|_| bad)?;
    match c {
        'x' | 'X' | '0'..='3' if bytes => out.push(u8::try_from(n).map_err(|_| bad)?),
        _ => {
            let c = char::from_u32(n).ok_or(bad)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(skip + digits)
}
