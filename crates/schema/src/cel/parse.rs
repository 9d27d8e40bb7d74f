//! From a source to a syntax tree.
//!
//! Places and texts of errors are cel-go's (which are ANTLR's for syntax); of several syntax errors the parser knows the
//! first. Invariant: nesting is limited, so that neither parsing nor evaluation can exhaust the stack.

use super::ast::{Expr, Field, Kind, Loop, Op, Which};
use super::check;
use super::lex::{Spot, Token, tokens};
use super::names::is_reserved;
use super::report::{self, Fault};
use super::value::Val;

/// Levels of nesting.
const MAX_DEPTH: usize = 60;
/// Characters of an expression.
const MAX_SIZE: usize = 100_000;

/// What may begin an expression, as errors list it.
const BEGINS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                      BYTES, IDENTIFIER}";
const BEGINS_ARGUMENT: &str = "{'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                               NUM_UINT, STRING, BYTES, IDENTIFIER}";
const BEGINS_ITEM: &str = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, \
                           NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const BEGINS_ENTRY: &str = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, \
                            NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const BEGINS_FIELD: &str = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}";

/// Parses an expression. The error is complete: `ERROR: <input>:1:5: Syntax error: …`.
pub(super) fn parse(source: &str) -> Result<Expr, String> {
    if source.len() > MAX_SIZE {
        let size = source.chars().count();
        if size > MAX_SIZE {
            let why = format!("expression code point size exceeds limit: size: {size}, limit {MAX_SIZE}");
            return Err(report::nowhere(&why));
        }
    }
    let (tokens, mut faults) = tokens(source);
    let mut parser = Parser { source, tokens, next: 0, depth: 0 };
    let parsed = parser.expr().and_then(|expr| match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.unexpected("<EOF>", &|t| *t == Token::End)),
    });
    match parsed {
        Ok(expr) if faults.is_empty() => Ok(expr),
        Ok(_) => Err(report::display(source, faults)),
        Err(fault) => {
            faults.push(fault);
            Err(report::display(source, faults))
        }
    }
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Spot>,
    next: usize,
    depth: usize,
}

type Parsed<T> = Result<T, Fault>;

/// Whether an expression may begin with a token.
fn begins(token: &Token) -> bool {
    match token {
        Token::Literal(_) | Token::Ident(_) => true,
        Token::Sign(s) => matches!(*s, "[" | "{" | "(" | "." | "-" | "!"),
        Token::Quoted(_) | Token::End => false,
    }
}

impl Parser<'_> {
    fn spot(&self, ahead: usize) -> &Spot {
        &self.tokens[(self.next + ahead).min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> &Token {
        &self.spot(0).token
    }

    fn at(&self) -> usize {
        self.spot(0).at
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = self.is(sign);
        self.next += usize::from(found);
        found
    }

    /// A token as it stands in the source.
    fn shown(&self, spot: &Spot) -> String {
        match spot.token {
            Token::End => "<EOF>".to_owned(),
            _ => self.source[spot.at..spot.end].to_owned(),
        }
    }

    /// What stands here does not fit; it is one too much if what follows would.
    fn unexpected(&self, expected: &str, fits: &dyn Fn(&Token) -> bool) -> Fault {
        let (here, next) = (self.spot(0), self.spot(1));
        let extra = here.token != Token::End && fits(&next.token);
        let what = if extra { "extraneous" } else { "mismatched" };
        let shown = self.shown(here);
        (here.at, format!("Syntax error: {what} input '{shown}' expecting {expected}"))
    }

    /// A closing sign. It is missing, where what stands here could follow it.
    fn close(&mut self, sign: &'static str) -> Parsed<()> {
        if self.sign(sign) {
            return Ok(());
        }
        let here = self.spot(0);
        let follows = match &here.token {
            Token::End => true,
            Token::Sign(s) => !matches!(*s, "!" | "{"),
            _ => false,
        };
        let extra = matches!(&self.spot(1).token, Token::Sign(s) if *s == sign);
        if follows && !extra {
            return Err((here.at, format!("Syntax error: missing '{sign}' at '{}'", self.shown(here))));
        }
        Err(self.unexpected(&format!("'{sign}'"), &|t| matches!(t, Token::Sign(s) if *s == sign)))
    }

    /// What ends a list, after its last element and maybe a comma.
    fn end(&mut self, sign: &'static str) -> Parsed<()> {
        if self.sign(sign) {
            return Ok(());
        }
        let fits = |t: &Token| matches!(t, Token::Sign(s) if *s == sign || *s == ",");
        Err(self.unexpected(&format!("{{'{sign}', ','}}"), &fits))
    }

    /// An expression must begin here.
    fn begin(&self, expected: &str) -> Parsed<()> {
        if begins(self.peek()) { Ok(()) } else { Err(self.unexpected(expected, &begins)) }
    }

    fn expr(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((self.at(), "expression recursion limit exceeded".to_owned()));
        }
        let condition = self.binary(0)?;
        let at = self.at();
        let expr = if self.sign("?") {
            let yes = self.binary(0)?;
            self.colon()?;
            let no = self.expr()?;
            Expr::new(at, Kind::Cond(Box::new(condition), Box::new(yes), Box::new(no)))?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn colon(&mut self) -> Parsed<usize> {
        let at = self.at();
        if self.sign(":") {
            return Ok(at);
        }
        if begins(self.peek()) && !self.is("-") && !self.is("[") && !self.is(".") && !self.is("(") {
            let here = self.spot(0);
            return Err((here.at, format!("Syntax error: missing ':' at '{}'", self.shown(here))));
        }
        Err(self.unexpected("':'", &|t| matches!(t, Token::Sign(":"))))
    }

    /// Binary operators by precedence, lowest first.
    fn binary(&mut self, level: usize) -> Parsed<Expr> {
        const LEVELS: [&[(&str, Op)]; 5] = [
            &[("||", Op::Or)],
            &[("&&", Op::And)],
            &[
                ("<=", Op::LessOrEqual),
                ("<", Op::Less),
                (">=", Op::GreaterOrEqual),
                (">", Op::Greater),
                ("==", Op::Equal),
                ("!=", Op::NotEqual),
                ("in", Op::In),
            ],
            &[("+", Op::Add), ("-", Op::Subtract)],
            &[("*", Op::Multiply), ("/", Op::Divide), ("%", Op::Remainder)],
        ];
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let at = self.at();
            let Some((_, op)) = operators.iter().find(|(sign, _)| self.sign(sign)) else { return Ok(left) };
            let right = self.binary(level + 1)?;
            left = Expr::new(at, Kind::Binary(*op, Box::new(left), Box::new(right)))?;
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let at = self.at();
        let mut nots = 0;
        while self.sign("!") {
            nots += 1;
        }
        if nots > 0 {
            let operand = self.member()?;
            return if nots % 2 == 1 { Expr::new(at, Kind::Not(Box::new(operand))) } else { Ok(operand) };
        }
        let mut minuses = 0;
        while self.sign("-") {
            minuses += 1;
        }
        if minuses == 0 {
            if let Token::Literal(Val::Int(i64::MIN)) = self.peek() {
                return Err((at, "invalid int literal".to_owned()));
            }
            return self.member();
        }
        if *self.peek() == Token::End {
            return Err((self.at(), "Syntax error: no viable alternative at input '-'".to_owned()));
        }
        // A minus before a number belongs to it.
        let number = match self.peek() {
            Token::Literal(Val::Int(n)) => Some(Val::Int(n.wrapping_neg())),
            Token::Literal(Val::Double(v)) => Some(Val::Double(-v)),
            _ => None,
        };
        if let Some(number) = number {
            minuses -= 1;
            self.tokens[self.next].token = Token::Literal(number);
        }
        let operand = self.member()?;
        if minuses % 2 == 1 { Expr::new(at, Kind::Negate(Box::new(operand))) } else { Ok(operand) }
    }

    fn member(&mut self) -> Parsed<Expr> {
        let named = matches!(self.peek(), Token::Ident(_) | Token::Sign("."));
        let mut expr = self.primary()?;
        // Whether it is a name with dots so far, which a message may have.
        let mut bare = named && matches!(expr.kind, Kind::Ident(_));
        loop {
            let at = self.at();
            if self.sign(".") {
                let optional = self.sign("?");
                let (field, plain) = self.field(at, optional)?;
                let open = self.at();
                if !optional && plain && self.sign("(") {
                    let args = self.args()?;
                    expr = call(expr, field, args, open)?;
                    bare = false;
                } else {
                    bare &= plain && !optional;
                    let field = field.into();
                    expr = Expr::new(at, Kind::Select { operand: Box::new(expr), field, optional })?;
                }
            } else if self.sign("[") {
                let optional = self.sign("?");
                self.begin(BEGINS)?;
                let index = self.expr()?;
                self.close("]")?;
                let kind = Kind::Index { operand: Box::new(expr), index: Box::new(index), optional };
                expr = Expr::new(at, kind)?;
                bare = false;
            } else if bare && self.is("{") {
                let Some(name) = dotted(&expr) else { return Ok(expr) };
                expr = self.message(name)?;
                bare = false;
            } else {
                return Ok(expr);
            }
        }
    }

    /// The name of a field after a dot, and whether it stands without quotes.
    fn field(&mut self, dot: usize, optional: bool) -> Parsed<(Box<str>, bool)> {
        let spot = self.spot(0).clone();
        match spot.token {
            Token::Ident(name) => {
                self.next += 1;
                Ok((name, true))
            }
            Token::Quoted(name) => {
                self.next += 1;
                Ok((name, false))
            }
            _ if optional => {
                let fits = |t: &Token| matches!(t, Token::Ident(_) | Token::Quoted(_));
                Err(self.unexpected("{IDENTIFIER, ESC_IDENTIFIER}", &fits))
            }
            _ => {
                let text = &self.source[dot..spot.end];
                Err((
                    spot.at,
                    match text {
                        ".true" | ".false" | ".null" => {
                            format!("Syntax error: mismatched input '{}' expecting IDENTIFIER", &text[1..])
                        }
                        _ => format!("Syntax error: no viable alternative at input '{}'", text.trim_end()),
                    },
                ))
            }
        }
    }

    fn args(&mut self) -> Parsed<Vec<Expr>> {
        let mut args = Vec::new();
        if self.sign(")") {
            return Ok(args);
        }
        self.begin(BEGINS_ARGUMENT)?;
        loop {
            args.push(self.expr()?);
            if !self.sign(",") {
                self.close(")")?;
                return Ok(args);
            }
        }
    }

    /// The fields of a message, from its brace on.
    fn message(&mut self, name: Box<str>) -> Parsed<Expr> {
        let at = self.at();
        self.next += 1;
        let mut fields = Vec::new();
        let mut comma = self.sign(",");
        while !self.sign("}") {
            if comma && fields.is_empty() {
                self.end("}")?;
                break;
            }
            let optional = self.sign("?");
            let field = match self.peek().clone() {
                Token::Ident(name) | Token::Quoted(name) => name,
                _ => {
                    let fits = |t: &Token| matches!(t, Token::Ident(_) | Token::Quoted(_));
                    return Err(self.unexpected(BEGINS_FIELD, &fits));
                }
            };
            self.next += 1;
            let colon = self.colon()?;
            let value = self.expr()?;
            fields.push(Field { at: colon, name: field, value, optional });
            comma = self.sign(",");
            if !comma {
                self.end("}")?;
                break;
            }
        }
        Expr::new(at, Kind::Struct { name, fields })
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let at = self.at();
        self.begin(BEGINS)?;
        let kind = match self.take() {
            Token::Literal(value) => Kind::Literal(value),
            Token::Ident(name) => return self.name(name, at),
            Token::Sign(".") => {
                let name_at = self.at();
                match self.peek().clone() {
                    Token::Ident(name) => {
                        self.next += 1;
                        return self.name(name, name_at);
                    }
                    _ => {
                        let text = &self.source[at..self.spot(0).end];
                        let why =
                            format!("Syntax error: no viable alternative at input '{}'", text.trim_end());
                        return Err((name_at, why));
                    }
                }
            }
            Token::Sign("(") => {
                self.begin(BEGINS)?;
                let expr = self.expr()?;
                self.close(")")?;
                return Ok(expr);
            }
            Token::Sign("[") => {
                let mut items = Vec::new();
                while !self.sign("]") {
                    let optional = self.sign("?");
                    self.begin(if optional || !items.is_empty() { BEGINS } else { BEGINS_ITEM })?;
                    items.push((self.expr()?, optional));
                    if !self.sign(",") {
                        self.end("]")?;
                        break;
                    }
                }
                Kind::List(items)
            }
            _ => {
                let mut entries = Vec::new();
                while !self.sign("}") {
                    let optional = self.sign("?");
                    self.begin(if optional || !entries.is_empty() { BEGINS } else { BEGINS_ENTRY })?;
                    let key = self.expr()?;
                    self.colon()?;
                    entries.push((key, self.expr()?, optional));
                    if !self.sign(",") {
                        self.end("}")?;
                        break;
                    }
                }
                Kind::Map(entries)
            }
        };
        Expr::new(at, kind)
    }

    /// A variable, or a call of a function.
    fn name(&mut self, name: Box<str>, at: usize) -> Parsed<Expr> {
        if is_reserved(&name) {
            return Err((at, format!("reserved identifier: {name}")));
        }
        let open = self.at();
        if self.sign("(") {
            let args = self.args()?;
            return global(name, args, open);
        }
        Expr::new(at, Kind::Ident(name))
    }
}

/// `a.b.c`, where an expression is nothing else.
fn dotted(expr: &Expr) -> Option<Box<str>> {
    match &expr.kind {
        Kind::Ident(name) => Some(name.clone()),
        Kind::Select { operand, field, optional: false } => {
            Some(format!("{}.{}", dotted(operand)?, &**field).into())
        }
        _ => None,
    }
}

fn global(function: Box<str>, mut args: Vec<Expr>, at: usize) -> Parsed<Expr> {
    if &*function == "has" && args.len() == 1 {
        let arg = args.remove(0);
        return match arg.kind {
            Kind::Select { operand, field, optional: false } => {
                Expr::new(arg.at, Kind::Has { operand, field })
            }
            _ => Err((arg.at, "invalid argument to has() macro".to_owned())),
        };
    }
    Expr::new(at, Kind::Call { target: None, function, args })
}

fn call(target: Expr, function: Box<str>, mut args: Vec<Expr>, at: usize) -> Parsed<Expr> {
    // `sets.contains(a, b)` is no method of a variable `sets`.
    if let Kind::Ident(namespace) = &target.kind {
        let full = format!("{namespace}.{function}");
        if check::is_function(&full) {
            return Expr::new(at, Kind::Call { target: None, function: full.into(), args });
        }
    }
    let Some(which) = Which::named(&function, args.len()) else {
        return Expr::new(at, Kind::Call { target: Some(Box::new(target)), function, args });
    };
    let plain = matches!(which, Which::Map | Which::Filter);
    let name = |expr: Expr| match expr.kind {
        Kind::Ident(name) => Ok(name),
        _ if plain => Err((expr.at, "argument is not an identifier".to_owned())),
        _ => Err((expr.at, "argument must be a simple name".to_owned())),
    };
    let two_variables = match which {
        Which::TransformList | Which::TransformMap | Which::TransformMapEntry => true,
        Which::All | Which::Exists | Which::ExistsOne => args.len() == 3,
        _ => false,
    };
    let first = name(args.remove(0))?;
    let second = if two_variables { Some(name(args.remove(0))?) } else { None };
    let filter = if args.len() == 2 { Some(args.remove(0)) } else { None };
    let Some(body) = args.pop() else { return Err((at, "too few arguments".to_owned())) };
    Expr::new(at, Kind::Loop(Box::new(Loop { which, range: target, first, second, filter, body })))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first line of the error, without `ERROR: <input>:`.
    fn check(cases: &[(&str, &str)]) {
        for (source, want) in cases {
            let got = parse(source).map(drop).unwrap_err();
            let line = got.lines().next().unwrap_or_default();
            assert_eq!(line.strip_prefix("ERROR: <input>:").unwrap_or(line), *want, "{source}");
        }
    }

    #[test]
    fn errors_point_at_their_place() {
        check(&[
            ("self.if(1) +", &format!("1:13: Syntax error: mismatched input '<EOF>' expecting {BEGINS}")),
            ("a\n+ )", &format!("2:3: Syntax error: mismatched input ')' expecting {BEGINS}")),
            ("1 + * 2", &format!("1:5: Syntax error: extraneous input '*' expecting {BEGINS}")),
            ("object.spec. == 1", "1:14: Syntax error: no viable alternative at input '. =='"),
            ("{\"a\": 1}.\"a\"", "1:10: Syntax error: no viable alternative at input '.\"a\"'"),
            ("self.true == 1", "1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER"),
            ("a b", "1:3: Syntax error: extraneous input 'b' expecting <EOF>"),
            ("1 + 2\n3 +", "2:1: Syntax error: mismatched input '3' expecting <EOF>"),
            ("T(){}", "1:4: Syntax error: mismatched input '{' expecting <EOF>"),
            ("T{}()", "1:4: Syntax error: mismatched input '(' expecting <EOF>"),
            ("{a}", "1:3: Syntax error: mismatched input '}' expecting ':'"),
            ("func{{a}}", &format!("1:6: Syntax error: extraneous input '{{' expecting {BEGINS_FIELD}")),
            ("msg{:a}", &format!("1:5: Syntax error: extraneous input ':' expecting {BEGINS_FIELD}")),
            ("{", &format!("1:2: Syntax error: mismatched input '<EOF>' expecting {BEGINS_ENTRY}")),
            ("{:a}", &format!("1:2: Syntax error: extraneous input ':' expecting {BEGINS_ENTRY}")),
            ("(1", "1:3: Syntax error: missing ')' at '<EOF>'"),
            ("[1", "1:3: Syntax error: mismatched input '<EOF>' expecting {']', ','}"),
            ("--", "1:3: Syntax error: no viable alternative at input '-'"),
            ("has(m)", "1:5: invalid argument to has() macro"),
            ("1.all(2, 3)", "1:7: argument must be a simple name"),
            ("m.filter(a.b, false)", "1:11: argument is not an identifier"),
            ("if == 1", "1:1: reserved identifier: if"),
            ("'abc", "1:1: Syntax error: token recognition error at: ''abc'"),
            ("'\\xFh'", "1:1: Syntax error: token recognition error at: ''\\xFh'"),
            ("a | b", "1:3: Syntax error: token recognition error at: '| '"),
            ("1 + $", "1:5: Syntax error: token recognition error at: '$'"),
            ("0xFFFFFFFFFFFFFFFFF", "1:1: invalid int literal"),
            ("1.99e90000009", "1:1: invalid double literal"),
        ]);
        assert!(parse(&"(".repeat(10_000)).is_err());
        assert!(parse(&"!".repeat(10_000)).is_err());
        assert!(parse(&format!("1{}", "+1".repeat(10_000))).is_err());
        let long = format!("'{}'", "x".repeat(MAX_SIZE));
        assert!(parse(&long).unwrap_err().contains("size: 100002, limit 100000"));
    }

    #[test]
    fn one_text_can_have_several_errors() {
        let errors = parse("1 + $").unwrap_err();
        assert_eq!(errors.matches("ERROR: ").count(), 2, "{errors}");
    }
}
